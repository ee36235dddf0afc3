//! Agents and instances as answers show them. The verdicts are the engine's.

use muster_engine::effect::AgentState as Seen;
use muster_engine::liveness::{InstanceFacts, InstanceState, Verdict};
use muster_store::StoredAgent;
use muster_wire::Timestamp;
use muster_wire::api::At;
use muster_wire::api::agents::{
    Agent, AgentFunction, AgentHold, AgentInstance, AgentLine, AgentOffer, AgentQueue, AgentSlots,
    AgentState, LastSign, SignKind,
};
use serde_json::value::RawValue;

use super::Beside;
use crate::api::discovery::Registration;
use crate::api::hold::BY_UNKNOWN;
use crate::api::nodes::PENDING;
use crate::api::stamp::Stamp;
use crate::app::App;
use crate::directory::{AgentEntry, InstanceEntry, liveness_of};
use crate::fleet::routes::Route;

/// The word of an agent: of its best instance, and `down` without any.
pub(crate) fn word(verdict: &Option<Verdict>) -> &'static str {
    verdict
        .as_ref()
        .map_or("down", |verdict| verdict.state.word())
}

/// The word on the wire of an instance's state.
pub(crate) fn state(state: InstanceState) -> AgentState {
    match state {
        InstanceState::Active => AgentState::Active,
        InstanceState::Unknown => AgentState::Unknown,
        InstanceState::Degraded => AgentState::Degraded,
        InstanceState::Restarting => AgentState::Restarting,
        InstanceState::UnreachableCallback => AgentState::UnreachableCallback,
        InstanceState::Down => AgentState::Down,
    }
}

/// An agent as lists show it.
pub(crate) fn line(
    app: &App,
    agent: &AgentEntry,
    verdict: Option<&Verdict>,
    beside: &Beside,
) -> AgentLine {
    let known = verdict.map(|verdict| verdict.state);
    let newest = agent.instances().last().and_then(|one| one.facts_now());
    let unapproved = agent.unapproved();
    let pending: Vec<String> = unapproved.iter().map(ToString::to_string).collect();
    let seen = beside.states.get(&agent.id);
    let function = |function: &muster_engine::row::Function| AgentFunction {
        id: function.name.to_string(),
        r#type: function.kind,
        idempotent: function.idempotent,
    };
    AgentLine {
        id: agent.id.to_string(),
        node_id: agent.id.to_string(),
        state: known.map_or(AgentState::Down, state),
        evidence: verdict.map(|verdict| verdict.evidence.clone()),
        why: why(agent, verdict, &pending, seen),
        lifecycle_status: match pending.as_slice() {
            [] => lifecycle(known).to_owned(),
            _ => PENDING.to_owned(),
        },
        health_status: health(known).to_owned(),
        instance_count: agent.instances().len() as u64,
        base_url: newest.as_ref().map(|facts| facts.base_url.to_string()),
        version: newest.as_ref().map(|facts| facts.version.to_string()),
        last_heartbeat: newest.and_then(|facts| facts.beat_at).map(At),
        pending_tags: (!pending.is_empty()).then_some(pending),
        functions: agent.functions().iter().map(function).collect(),
        instances: instances(app, agent, beside.states.get(&agent.id)),
        slots: AgentSlots {
            used: seen.map_or(0, |seen| seen.running),
            cap: match seen {
                Some(seen) => seen.cap,
                None => app.limits.cap(&agent.id),
            },
        },
        queue: AgentQueue {
            depth: seen.map_or(0, |seen| seen.queued),
            oldest_at: seen.and_then(|seen| seen.oldest_queued_at).map(At),
        },
        window: beside.window(app, &agent.id),
        hold: seen.and_then(hold),
    }
}

fn hold(seen: &Seen) -> Option<AgentHold> {
    let held = seen.held_itself || seen.hold.is_some();
    let by = match seen.hold {
        Some(_) => seen.hold_by.as_ref(),
        None => seen.held_by.as_ref(),
    };
    let reason = seen.hold.as_deref().or(by.map(|by| &*by.reason));
    held.then(|| AgentHold {
        everything: seen.hold.is_some(),
        reason: reason.map(str::to_owned),
        by: by.map(|by| by.by.to_string()),
        by_unknown: by.is_none().then(|| BY_UNKNOWN.to_owned()),
        since: by.map(|by| At(by.at)),
    })
}

/// Why calls to it are not simply sent, in a sentence; `None` when they are.
fn why(
    agent: &AgentEntry,
    verdict: Option<&Verdict>,
    pending: &[String],
    seen: Option<&Seen>,
) -> Option<String> {
    let id = &agent.id;
    if let Some(hold) = seen.and_then(hold) {
        let mut text = format!("nothing is dispatched to {id}");
        if let Some(by) = hold.by {
            text.push_str(&format!(
                ": {by} holds {}",
                if hold.everything { "everything" } else { "it" }
            ));
        }
        if let Some(reason) = hold.reason {
            text.push_str(&format!(": {reason}"));
        }
        return Some(text);
    }
    if !pending.is_empty() {
        return Some(format!(
            "{id} is not called before its tags are approved: {}; muster tags approve {id}",
            pending.join(", ")
        ));
    }
    let Some(verdict) = verdict else {
        return Some(format!(
            "no instance of {id} is known any more; start it, for example with: muster dev -- python main.py"
        ));
    };
    let then = match verdict.state {
        InstanceState::Active => return None,
        InstanceState::Unknown => "calls to it are sent all the same",
        InstanceState::Degraded => "calls to it are sent all the same",
        InstanceState::Restarting => "calls to it wait until it is back",
        InstanceState::UnreachableCallback => "calls to it fail",
        InstanceState::Down => "calls to it are refused at once",
    };
    Some(format!("{}; {then}", verdict.evidence))
}

/// `seen`: what the engine says of the agent now. The directory learns of calls only now and then.
fn instances(app: &App, agent: &AgentEntry, seen: Option<&Seen>) -> Vec<AgentInstance> {
    let now = app.clock.now();
    let in_flight = |facts: &InstanceFacts| {
        let own = seen.map(|seen| seen.instances.iter());
        let own = own.and_then(|mut all| all.find(|one| one.key.instance == facts.key.instance));
        own.map_or(facts.in_flight, |own| own.in_flight)
    };
    let shown = |entry: &std::sync::Arc<InstanceEntry>| {
        let facts = entry.facts_now()?;
        let verdict = facts.verdict(now, liveness_of(&app.limits, &agent.id));
        let route = facts
            .worker
            .as_deref()
            .map(|worker| app.fleet.routes.of(worker));
        let worker = facts
            .worker
            .clone()
            .filter(|_| route != Some(Route::Unknown));
        Some(AgentInstance {
            instance_id: entry.id.to_string(),
            base_url: facts.base_url.to_string(),
            version: facts.version.to_string(),
            state: state(verdict.state),
            evidence: verdict.evidence,
            state_at: At(verdict.at),
            last_sign: last_sign(&facts),
            registered_at: At(facts.registered_at),
            renewed_at: At(facts.renewed_at),
            last_beat: facts.beat_at.map(At),
            goodbye_at: facts.goodbye_at.map(At),
            worker: worker.map(|worker| worker.to_string()),
            node: match route {
                Some(Route::Through(node)) => Some(node.to_string()),
                _ => None,
            },
            in_flight: in_flight(&facts),
        })
    };
    agent.instances().iter().filter_map(shown).collect()
}

/// The newest sign of life, or the goodbye after it.
fn last_sign(facts: &InstanceFacts) -> LastSign {
    let signs: [(SignKind, Option<Timestamp>); 5] = [
        (SignKind::Registration, Some(facts.renewed_at)),
        (SignKind::Probe, facts.probe_alive_at),
        (SignKind::Exchange, facts.exchange_at),
        (SignKind::Beat, facts.beat_at),
        (SignKind::Goodbye, facts.goodbye_at),
    ];
    let known = signs.iter().filter_map(|(what, at)| Some((*what, (*at)?)));
    let (what, at) = known
        .max_by_key(|(_, at)| *at)
        .unwrap_or((SignKind::Registration, facts.renewed_at));
    LastSign { what, at: At(at) }
}

/// One agent with its registration.
pub(super) fn whole(
    app: &App,
    stamp: Stamp,
    agent: &AgentEntry,
    beside: &Beside,
    stored: Option<StoredAgent>,
) -> Agent {
    let verdict = agent.verdict(stamp.as_of.0, &app.limits);
    let row = stored.map(|stored| stored.row);
    let registration = row
        .as_ref()
        .map(|row| Registration::read(&row.registration.0));
    let registration = registration.unwrap_or_default();
    let offer = |function: &muster_engine::row::Function| {
        let offer = registration.offer(function.kind, function.name.as_str());
        AgentOffer {
            id: function.name.to_string(),
            r#type: function.kind,
            target: format!("{}.{}", agent.id, function.name),
            tags: offer.all_tags(),
            description: offer.description,
            input_schema: offer.input_schema,
            output_schema: offer.output_schema,
            examples: offer.examples,
        }
    };
    Agent {
        as_of: stamp.as_of,
        position: stamp.position,
        line: line(app, agent, verdict.as_ref(), beside),
        offers: agent.functions().iter().map(offer).collect(),
        held: row.as_ref().map(|row| row.held),
        created_at: row.as_ref().map(|row| At(row.created_at)),
        registered_at: row.as_ref().map(|row| At(row.registered_at)),
        registration: row.and_then(|row| {
            let text = String::from_utf8(row.registration.0.to_vec()).ok()?;
            RawValue::from_string(text).ok()
        }),
    }
}

/// The SDK's word for a lifecycle.
fn lifecycle(state: Option<InstanceState>) -> &'static str {
    match state {
        Some(InstanceState::Active) => "ready",
        Some(InstanceState::Unknown | InstanceState::Restarting) => "starting",
        Some(InstanceState::Degraded | InstanceState::UnreachableCallback) => "degraded",
        Some(InstanceState::Down) | None => "offline",
    }
}

fn health(state: Option<InstanceState>) -> &'static str {
    match state {
        Some(InstanceState::Active) => "active",
        Some(InstanceState::Unknown | InstanceState::Restarting) => "unknown",
        Some(InstanceState::Degraded | InstanceState::UnreachableCallback) => "degraded",
        Some(InstanceState::Down) | None => "inactive",
    }
}
