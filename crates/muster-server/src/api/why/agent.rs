//! Why an agent, one of its instances or its queue is where it is.

use muster_engine::effect::AgentState;
use muster_wire::Timestamp;
use muster_wire::api::why::{Why, WhyChange, WhyFact, WhyKind, WhyNext, WhyRule};
use muster_wire::plain;

use super::facts;
use super::rules::{change, rule};
use crate::api::hold::BY_UNKNOWN;
use crate::api::problem::Problem;
use crate::api::queues;
use crate::app::App;
use crate::directory::{AgentEntry, InstanceEntry, liveness_of};

/// Why an agent is as it is.
pub(super) async fn of(app: &App, entry: &AgentEntry) -> Result<Why, Problem> {
    let state = queues::ask(app, entry.id.as_str()).await?;
    let now = app.clock.now();
    let best = entry.verdict(now, &app.limits);
    let word = best.as_ref().map_or("down", |verdict| verdict.state.word());
    let mut verdict = best.as_ref().map_or_else(
        || format!("{} has no instance", entry.id),
        |verdict| format!("{} is {word}: {}", entry.id, verdict.evidence),
    );
    let unapproved = entry.unapproved();
    let (mut changes, rule) = if state.held {
        verdict.push_str("; nothing is dispatched to it: ");
        verdict.push_str(&queues::hold_text(&state));
        (
            vec![lift(&state)],
            rule(
                "hold",
                "while a hold is set calls are queued; `muster unhold` lifts it",
            ),
        )
    } else if unapproved.is_empty() {
        (
            Vec::new(),
            rule("agent", "an agent is as good as its best instance"),
        )
    } else {
        let tags = unapproved.join(", ");
        verdict.push_str("; it is not called, because tags of it are not approved: ");
        verdict.push_str(&tags);
        (
            vec![change(
                "approve them",
                format!("muster tags approve {}", entry.id),
            )],
            rule(
                "tags",
                "an agent that asks for a tag which needs an approval is not called before; `muster tags approve` approves",
            ),
        )
    };
    if word == "down" {
        changes.push(change("start it", "muster dev -- COMMAND"));
    }
    let instances = entry.instances();
    let mut facts: Vec<WhyFact> = instances
        .iter()
        .filter_map(|instance| seen(app, entry, instance, now))
        .collect();
    facts.sort_by_key(|fact| fact.at);
    facts.extend(hold_facts(&state));
    facts.push(slots(&state));
    let since = match best {
        Some(verdict) => since_of(word, verdict.at),
        None => Err("no instance of it is known"),
    };
    Ok(whole(
        app,
        entry.id.as_str(),
        WhyKind::Agent,
        (word, since),
        verdict,
        rule,
        facts,
        changes,
    ))
}

/// Since when it is so. What is well has its last sign for evidence, and that is not when it
/// became well.
fn since_of(state: &str, at: Timestamp) -> Result<Timestamp, &'static str> {
    match state {
        "active" => Err("its evidence is the last sign of life; its history has when it began"),
        _ => Ok(at),
    }
}

/// Why an instance is as it is; `None` when no agent has one of that id.
pub(super) fn instance(app: &App, id: &str) -> Option<Why> {
    let now = app.clock.now();
    app.directory.agents().iter().find_map(|entry| {
        let instances = entry.instances();
        let instance = instances.iter().find(|one| one.id.as_str() == id)?;
        let known = instance.facts_now()?;
        let verdict = known.verdict(now, liveness_of(&app.limits, &entry.id));
        let mut facts = vec![facts::at(
            known.registered_at,
            "agent",
            format!("it registered at {}", known.base_url),
        )];
        let seen = [
            (known.beat_at, "agent", "it beat last".to_owned()),
            (known.goodbye_at, "agent", "it said goodbye".to_owned()),
        ];
        for (at, by, text) in seen {
            facts.extend(at.map(|at| facts::at(at, by, text)));
        }
        if known.beat_at.is_none() {
            facts.push(facts::unknown("agent", "its beats", "none was heard"));
        }
        if let Some((at, error)) = &known.dial_failed {
            facts.push(facts::at(*at, "plane", format!("a dial failed: {error}")));
        }
        facts.sort_by_key(|fact| (fact.at.is_none(), fact.at));
        let word = verdict.state.word();
        Some(whole(
            app,
            id,
            WhyKind::Instance,
            (word, since_of(word, verdict.at)),
            format!("instance {id} of {} is {word}: {}", entry.id, verdict.evidence),
            rule(
                "instance",
                "an instance is what its facts amount to: beats, goodbyes, dials and answers, each with its age",
            ),
            facts,
            vec![change("see its agent", format!("muster why {}", entry.id))],
        ))
    })
}

/// Why a queue moves or stands still.
pub(super) async fn queue(app: &App, agent: &str) -> Result<Why, Problem> {
    let state = queues::ask(app, agent).await?;
    let held_by = queues::held_by(&state);
    let waiting = state.queued + u64::from(state.places);
    let verdict = match &held_by {
        Some(held) if waiting > 0 => {
            let wait = plain::they(waiting, "waits", "wait");
            format!("{wait} for {agent}: {}", held.text)
        }
        _ if waiting == 1 => format!("1 waits for {agent}, and starts when it can"),
        _ if waiting > 0 => {
            let wait = plain::they(waiting, "waits", "wait");
            format!("{wait} for {agent}, and start in their order")
        }
        _ => format!("nothing waits for {agent}"),
    };
    let mut facts = Vec::new();
    facts.extend(
        state
            .oldest_queued_at
            .map(|at| facts::at(at, "plane", "the oldest that waits was accepted")),
    );
    facts.extend(hold_facts(&state));
    facts.push(slots(&state));
    match state.starts_per_minute {
        Some(rate) => facts.push(facts::now("plane", format!("{rate:.1} start in a minute"))),
        None => facts.push(facts::unknown(
            "plane",
            "how fast they start",
            "too few have started lately",
        )),
    }
    let mut changes = Vec::new();
    if state.held {
        changes.push(lift(&state));
    }
    if waiting > 0 {
        let holders = format!("muster executions --agent {agent} --state running");
        changes.push(change("see who holds the slots", holders));
    }
    let word = if held_by.is_some() { "held" } else { "moving" };
    let held_at = || {
        let by = match &state.hold {
            Some(_) => state.hold_by.as_ref(),
            None => state.held_by.as_ref(),
        };
        by.map(|by| by.at)
    };
    let since = match state.held {
        true => held_at().ok_or(BY_UNKNOWN),
        false => state
            .oldest_queued_at
            .ok_or("nothing is kept of when it last stood still"),
    };
    let rule = rule(
        "queue",
        "order is class, turn of the run, acceptance; a slot is held from the start of a call to its end",
    );
    let mut why = whole(
        app,
        agent,
        WhyKind::Queue,
        (word, since),
        verdict,
        rule,
        facts,
        changes,
    );
    if let Some(ms) = state.starts_in_ms.filter(|_| waiting > 0) {
        why.next.push(WhyNext {
            at: Some((app.clock.now() + std::time::Duration::from_millis(ms)).into()),
            text: "the last that waits now starts, estimated from the last starts".to_owned(),
        });
    }
    Ok(why)
}

fn lift(state: &AgentState) -> WhyChange {
    let command = match &state.hold {
        Some(_) => "muster unhold".to_owned(),
        None => format!("muster unhold {}", state.id),
    };
    change("lift the hold", command)
}

/// Who holds an agent, since when.
fn hold_facts(state: &AgentState) -> Option<WhyFact> {
    if !state.held {
        return None;
    }
    let by = match &state.hold {
        Some(_) => state.hold_by.as_ref(),
        None => state.held_by.as_ref(),
    };
    Some(match by {
        Some(by) => facts::at(by.at, &by.by, format!("held: {}", by.reason)),
        None => facts::unknown("person", "who holds it", BY_UNKNOWN),
    })
}

fn slots(state: &AgentState) -> WhyFact {
    let text = match state.cap {
        Some(cap) => format!(
            "{} of {cap} slots are held, {} queued",
            state.running, state.queued
        ),
        None => format!(
            "{} run, without a cap; {} queued",
            state.running, state.queued
        ),
    };
    facts::now("plane", text)
}

fn seen(app: &App, entry: &AgentEntry, one: &InstanceEntry, now: Timestamp) -> Option<WhyFact> {
    let known = one.facts_now()?;
    let verdict = known.verdict(now, liveness_of(&app.limits, &entry.id));
    let text = format!(
        "instance {} at {} is {}: {}",
        one.id,
        known.base_url,
        verdict.state.word(),
        verdict.evidence
    );
    Some(facts::at(verdict.at, "plane", text))
}

#[allow(
    clippy::too_many_arguments,
    reason = "the parts of one answer, each once"
)]
fn whole(
    app: &App,
    id: &str,
    kind: WhyKind,
    (state, since): (&str, Result<Timestamp, &str>),
    verdict: String,
    rule: WhyRule,
    facts: Vec<WhyFact>,
    changes: Vec<WhyChange>,
) -> Why {
    Why {
        id: id.to_owned(),
        kind: kind.into(),
        as_of: app.clock.now().into(),
        state: state.to_owned(),
        status: None,
        status_reason: None,
        since: since.ok().map(Into::into),
        since_unknown: since.err().map(str::to_owned),
        name: id.to_owned(),
        run_id: None,
        run_name: None,
        verdict,
        rule,
        facts,
        next: Vec::new(),
        changes,
        ruled_out: Vec::new(),
        execution: None,
        attempts: None,
    }
}
