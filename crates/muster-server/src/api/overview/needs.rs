//! What needs somebody: the few things that a person can do something about, most pressing first.
//! Sentences here have no ages: they change when something changes, and the page counts on.

use std::collections::HashMap;
use std::sync::Arc;

use muster_engine::effect::AgentState;
use muster_engine::fleet::effect::FleetSummary;
use muster_engine::liveness::InstanceState;
use muster_engine::row::{ApprovalRow, HeldBy};
use muster_store::outbox::DeliveryCounts;
use muster_store::{
    ApprovalFilter, Glance, Glanced, HeldKind, Page, QuarantineItem, StoreResult, Stores,
};
use muster_wire::api::At;
use muster_wire::api::overview::{Need, NeedKind};
use muster_wire::fleet::NodeState;
use muster_wire::{AgentId, Timestamp, plain};

use crate::api::agents::{self, Judged};
use crate::api::hold::HeldBack;
use crate::app::App;

/// Needs that are shown.
const SHOWN_MAX: usize = 20;
/// Of each kind that can be many.
const OF_A_KIND: usize = 8;
/// Of what is set aside so many are counted.
const COUNTED_MAX: usize = 1_000;
/// Agents that are down of which the store is asked.
const DOWN_MAX: usize = 20;
/// A disk that is full in fewer days needs somebody.
const DAYS_LEAST: f64 = 3.0;

/// What of it is read from the store.
pub(super) struct Stored {
    /// Counts.
    pub(super) glanced: Glanced,
    approvals: Vec<ApprovalRow>,
    deliveries: DeliveryCounts,
    set_aside: Vec<QuarantineItem>,
    /// Calls that failed of agents since they are down.
    failed_on: HashMap<AgentId, u64>,
}

impl Stored {
    pub(super) fn read(
        stores: &Stores,
        ask: &Glance,
        down: &[(AgentId, Timestamp)],
    ) -> StoreResult<Self> {
        let store = &stores.decisions;
        let pending = ApprovalFilter {
            pending: Some(true),
            ..ApprovalFilter::default()
        };
        let page = Page {
            after: None,
            limit: OF_A_KIND,
        };
        Ok(Self {
            glanced: store.glance(ask)?,
            approvals: store.approvals(&pending, &page)?,
            deliveries: store.delivery_counts()?,
            set_aside: store.quarantine(COUNTED_MAX)?,
            failed_on: failed_on(stores, ask, down)?,
        })
    }
}

/// The needs that are shown, and how many there are.
pub(super) struct Needs {
    pub(super) first: Vec<Need>,
    pub(super) total: u64,
}

impl Needs {
    fn push(&mut self, need: Need) {
        self.total += 1;
        if self.first.len() < SHOWN_MAX {
            self.first.push(need);
        }
    }

    /// Adds the first of several, and counts the rest.
    fn some(&mut self, needs: Vec<Need>, all: usize) {
        let shown = needs.len().min(OF_A_KIND);
        self.total += all.saturating_sub(shown) as u64;
        needs
            .into_iter()
            .take(OF_A_KIND)
            .for_each(|need| self.push(need));
    }
}

fn need(kind: NeedKind, id: &str, state: &str, text: String, path: String) -> Need {
    Need {
        kind,
        id: id.to_owned(),
        state: state.to_owned(),
        text,
        since: None,
        by: None,
        until: None,
        path,
    }
}

/// The agents that are down, up to a bound, and since when.
pub(super) fn down(judged: &[Judged]) -> Vec<(AgentId, Timestamp)> {
    let down = judged.iter().filter_map(|(agent, verdict)| {
        let verdict = verdict.as_ref()?;
        let down = verdict.state == InstanceState::Down;
        down.then(|| (agent.id.clone(), verdict.at))
    });
    down.take(DOWN_MAX).collect()
}

/// How many calls failed of each of these agents since it went down, in the last hour at most.
fn failed_on(
    stores: &Stores,
    ask: &Glance,
    down: &[(AgentId, Timestamp)],
) -> StoreResult<HashMap<AgentId, u64>> {
    let mut failed = HashMap::new();
    for (agent, since) in down {
        let from = ask.from.max(*since);
        let counts = stores.decisions.ended_by_agent(from, Some(agent))?;
        failed.extend(counts.into_iter().map(|count| (count.agent, count.failed)));
    }
    Ok(failed)
}

/// Everything that needs somebody.
pub(super) async fn all(
    app: &App,
    now: Timestamp,
    states: &[AgentState],
    held: &HeldBack,
    summary: &FleetSummary,
    seen: &Stored,
) -> Needs {
    let mut needs = Needs {
        first: Vec::new(),
        total: 0,
    };
    holds(states, held, &mut needs);
    if let Some((since, evidence)) = &summary.doubt {
        let mut one = need(
            NeedKind::Doubt,
            "fleet",
            "doubt",
            evidence.clone(),
            fleet_page(),
        );
        one.since = Some(At(*since));
        needs.push(one);
    }
    disk(app, &mut needs).await;
    approvals(seen, &mut needs);
    down_agents(app, now, states, seen, &mut needs);
    nodes(summary, &mut needs);
    if let Some(text) = &summary.capacity_alarm {
        let text = plain_alarm(text);
        needs.push(need(
            NeedKind::Alarm,
            "capacity",
            "alarm",
            text,
            fleet_page(),
        ));
    }
    duties(app, now, &mut needs);
    beside(seen, &mut needs);
    needs
}

/// An alarm without its age: `for 3 s: 50 % of …`.
fn plain_alarm(text: &str) -> String {
    let rest = text
        .split_once(": ")
        .filter(|(age, _)| age.starts_with("for "));
    rest.map_or(text, |(_, rest)| rest).to_owned()
}

fn fleet_page() -> String {
    "/ui/fleet".to_owned()
}

fn health_page() -> String {
    "/ui/health".to_owned()
}

fn holds(states: &[AgentState], back: &HeldBack, needs: &mut Needs) {
    let hold = |id: &str, text: String, by: Option<&HeldBy>, path: String| Need {
        since: by.map(|by| At(by.at)),
        by: by.map(|by| by.by.to_string()),
        ..need(NeedKind::Hold, id, "hold", text, path)
    };
    let said = |by: Option<&HeldBy>| by.map_or(String::new(), |by| format!("{} holds it: ", by.by));
    if let Some(reason) = &back.reason {
        let by = back.by.as_ref();
        let text = format!("nothing is dispatched; {}{reason}", said(by));
        needs.push(hold("all", text, by, "/ui/queues".into()));
    }
    let held: Vec<&AgentState> = states.iter().filter(|state| state.held_itself).collect();
    let all = held.len();
    let held = held.into_iter().take(OF_A_KIND).map(|state| {
        let by = state.held_by.as_ref();
        let mut text = format!("nothing is dispatched to {}", state.id);
        if let Some(by) = by {
            text.push_str(&format!("; {}{}", said(Some(by)), by.reason));
        }
        if state.queued > 0 {
            text.push_str("; ");
            text.push_str(&plain::they(state.queued, "waits", "wait"));
        }
        let path = format!("/ui/queues/{}", state.id);
        hold(state.id.as_str(), text, by, path)
    });
    needs.some(held.collect(), all);
}

async fn disk(app: &App, needs: &mut Needs) {
    let shown = crate::api::health::store_shown(app).await;
    if app.growth.is_full() {
        let text = "the disk is full up to its reserve: new work is refused".to_owned();
        needs.push(need(NeedKind::Disk, "disk", "full", text, health_page()));
    } else if let Some(days) = shown.days_until_full().filter(|days| *days < DAYS_LEAST) {
        let text = format!("the disk is full in {days:.0} days at this rate");
        needs.push(need(NeedKind::Disk, "disk", "filling", text, health_page()));
    }
}

fn approvals(seen: &Stored, needs: &mut Needs) {
    let waiting = seen
        .glanced
        .held
        .iter()
        .find(|held| held.kind == HeldKind::Approval);
    let all = waiting.map_or(0, |held| usize::try_from(held.count).unwrap_or(usize::MAX));
    let all = all.max(seen.approvals.len());
    let mut rows: Vec<&ApprovalRow> = seen.approvals.iter().collect();
    rows.sort_by_key(|row| row.expires_at);
    let shown = rows.into_iter().map(|row| {
        let text = format!("{} waits for a person: {}", row.agent, row.request);
        let path = format!("/ui/executions/{}", row.execution);
        Need {
            since: Some(At(row.requested_at)),
            until: Some(At(row.expires_at)),
            ..need(
                NeedKind::Approval,
                row.execution.as_str(),
                "waiting",
                text,
                path,
            )
        }
    });
    needs.some(shown.collect(), all);
}

/// Agents that cannot be called although somebody wants to: one that is stopped and that nobody
/// misses needs nobody.
fn down_agents(app: &App, now: Timestamp, states: &[AgentState], seen: &Stored, needs: &mut Needs) {
    let mut found = Vec::new();
    for (agent, verdict) in agents::judged(app, now) {
        let id = &agent.id;
        let path = format!("/ui/agents/{id}");
        let unapproved = agent.unapproved();
        if !unapproved.is_empty() {
            let text = format!(
                "{id} asks for tags that need an approval: {}",
                unapproved.join(", ")
            );
            found.push(need(
                NeedKind::Agent,
                id.as_str(),
                "pending_approval",
                text,
                path,
            ));
            continue;
        }
        let word = agents::word(&verdict);
        let state = verdict
            .as_ref()
            .map_or(InstanceState::Down, |verdict| verdict.state);
        let text = match state {
            InstanceState::UnreachableCallback => format!(
                "{id} beats and cannot be dialled; set AGENT_CALLBACK_URL to an address the plane reaches"
            ),
            InstanceState::Down => {
                let state = states.iter().find(|state| state.id == *id);
                let missed = Missed {
                    refused: app.meters.refusals.of(id.as_str()),
                    failed: seen.failed_on.get(id).copied().unwrap_or(0),
                    running: state.map_or(0, |state| u64::from(state.running)),
                    waiting: state.map_or(0, |state| state.queued + u64::from(state.absorbed)),
                };
                let Some(missed) = missed.said() else {
                    continue;
                };
                let newest = agent.instances().last().and_then(|one| one.facts_now());
                let why = match newest.and_then(|facts| facts.goodbye_at) {
                    Some(_) => "it said goodbye",
                    None => "it cannot be reached",
                };
                format!("{id} is down, {why}; {missed}")
            }
            _ => continue,
        };
        let mut one = need(NeedKind::Agent, id.as_str(), word, text, path);
        one.since = verdict.map(|verdict| At(verdict.at));
        found.push(one);
    }
    let all = found.len();
    needs.some(found, all);
}

/// Who misses an agent that is down.
struct Missed {
    /// Calls refused in the last hour.
    refused: u64,
    /// Calls that failed in it, since it is down.
    failed: u64,
    /// Calls that it has, as far as is known.
    running: u64,
    /// Calls that wait for it.
    waiting: u64,
}

impl Missed {
    /// The parts that are not zero; `None` when nobody misses it.
    fn said(&self) -> Option<String> {
        let past = [(self.refused, "refused"), (self.failed, "failed")];
        let past = past.iter().filter(|(n, _)| *n > 0);
        let past: Vec<String> = past
            .map(|(n, what)| format!("{} {what}", plain::count(*n, "call")))
            .collect();
        let now = [
            (self.running, "not ended"),
            (
                self.waiting,
                if self.waiting == 1 { "waits" } else { "wait" },
            ),
        ];
        let now = now.iter().filter(|(n, _)| *n > 0);
        let now: Vec<String> = now.map(|(n, what)| format!("{n} {what}")).collect();
        let past = match past.as_slice() {
            [] => None,
            past => Some(format!("in the last hour {}", past.join(", "))),
        };
        let parts: Vec<String> = past.into_iter().chain(now).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn nodes(summary: &FleetSummary, needs: &mut Needs) {
    let shown = summary.missing.iter().map(|node| {
        let name: &Arc<str> = &node.name;
        let workers = match node.workers {
            0 => String::new(),
            1 => "; nobody knows about its worker".to_owned(),
            n => format!("; nobody knows about its {n} workers"),
        };
        let (state, text) = match (node.state, node.flapping) {
            (NodeState::Unreachable | NodeState::Lost, _) | (_, false) => {
                let word = node.state.word();
                (word, format!("node {name} is {word}{workers}"))
            }
            (_, true) => ("flapping", format!("node {name} comes and goes")),
        };
        Need {
            since: Some(At(node.since)),
            ..need(
                NeedKind::Node,
                name,
                state,
                text,
                format!("/ui/fleet/nodes/{name}"),
            )
        }
    });
    needs.some(shown.collect(), summary.missing_total as usize);
    let shown = summary.drifting_names.iter().map(|name| {
        let text = format!("node {name} says other than what is believed");
        need(
            NeedKind::Drift,
            name,
            "drift",
            text,
            format!("/ui/fleet/nodes/{name}"),
        )
    });
    needs.some(shown.collect(), summary.drifting as usize);
}

fn duties(app: &App, now: Timestamp, needs: &mut Needs) {
    let report = app.duties.report(now);
    let bad: Vec<Need> = report
        .iter()
        .filter(|duty| duty.late || duty.failed)
        .map(|duty| {
            let (state, text) = if duty.late {
                ("late", format!("the duty {} is late", duty.name))
            } else {
                (
                    "failed",
                    format!("the duty {} failed: {}", duty.name, duty.said),
                )
            };
            Need {
                since: Some(At(duty.last_run.unwrap_or(duty.since))),
                ..need(NeedKind::Duty, duty.name, state, text, health_page())
            }
        })
        .collect();
    let all = bad.len();
    needs.some(bad, all);
}

fn beside(seen: &Stored, needs: &mut Needs) {
    if seen.deliveries.dead > 0 {
        let text = format!(
            "{} messages for webhooks were given up",
            seen.deliveries.dead
        );
        let kind = NeedKind::DeadLetters;
        needs.push(need(kind, "webhooks", "dead", text, health_page()));
    }
    if let Some(last) = seen.set_aside.first() {
        let text = format!("{} things were set aside", seen.set_aside.len());
        let mut one = need(
            NeedKind::Quarantine,
            "quarantine",
            "set_aside",
            text,
            health_page(),
        );
        one.since = Some(At(last.at));
        needs.push(one);
    }
}
