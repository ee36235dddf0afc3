//! What is read when somebody scrapes: queues and slots, the store, duties, the process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use muster_engine::effect::{AgentState, Reply};
use muster_engine::event::{Event, Question};
use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_wire::{Status, Timestamp};

use super::{Text, names, process};
use crate::app::App;

/// How long a scrape waits for the engine or the store before it goes on without them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Everything, as lines to append to what was counted. What cannot be read now is left out:
/// an absent series is honest, a zero is not.
pub(crate) async fn lines(app: &App) -> String {
    let now = app.clock.now();
    let mut text = Text::default();
    if let Some(dispatches) = app.meters.dispatches() {
        text.number(names::DISPATCHES, dispatches as f64);
    }
    states_into(&mut text, app, now);
    engine_into(&mut text, app, now).await;
    fleet_into(&mut text, app).await;
    store_into(&mut text, app).await;
    webhooks_into(&mut text, app, now).await;
    duties_into(&mut text, app, now);
    traces_into(&mut text, app);
    process_into(&mut text, app);
    text.finish()
}

fn states_into(text: &mut Text, app: &App, now: Timestamp) {
    let mut states: BTreeMap<&'static str, f64> = BTreeMap::new();
    for agent in app.directory.agents() {
        let verdict = agent.verdict(now, &app.limits);
        let word = verdict.map_or("unknown", |verdict| verdict.state.word());
        *states.entry(word).or_default() += 1.0;
    }
    text.family(names::AGENTS, "state", states);
}

async fn engine_into(text: &mut Text, app: &App, now: Timestamp) {
    let vitals = app.driver.vitals();
    let boxes = ["returned", "outcomes", "control", "submissions"];
    let depths = boxes
        .into_iter()
        .zip(vitals.depths.map(|depth| depth as f64));
    text.family(names::INBOX_DEPTH, "inbox", depths);
    text.number(names::WAITERS, vitals.waiters as f64);
    text.number(names::LAST_SEQ, vitals.last_seq as f64);
    text.number(names::RESTORED, vitals.restored as f64);
    text.number(names::QUARANTINED, vitals.quarantined as f64);

    let ask = |question: Question| {
        app.driver
            .ask(move |waiter| Event::Asked { question, waiter })
    };
    if let Ok(Ok(Reply::HeldBack { reason, .. })) =
        tokio::time::timeout(PATIENCE, ask(Question::HeldBack)).await
    {
        text.number(names::HELD, f64::from(u8::from(reason.is_some())));
    }
    if !app.limits.llm.endpoints.is_empty()
        && let Ok(Ok(Reply::Circuits(circuits))) =
            tokio::time::timeout(PATIENCE, ask(Question::Circuits)).await
    {
        let open = circuits.iter().map(|circuit| {
            let open = match circuit.state {
                "open" => 1.0,
                "half_open" => 0.5,
                _ => 0.0,
            };
            (&*circuit.endpoint, open)
        });
        text.family(names::LLM_OPEN, "endpoint", open);
    }
    if let Ok(Ok(Reply::Agents(agents))) =
        tokio::time::timeout(PATIENCE, ask(Question::Agents)).await
    {
        agents_into(text, &agents, now);
    }
}

fn agents_into(text: &mut Text, agents: &[AgentState], now: Timestamp) {
    let age = |agent: &AgentState| agent.oldest_queued_at.map(|at| now.since(at).as_secs_f64());
    let queued = |agent: &AgentState| agent.queued as f64 + f64::from(agent.places);
    agent_family(
        text,
        names::AGENT_RUNNING,
        agents,
        |agent| Some(f64::from(agent.running)),
        |a, b| a + b,
    );
    agent_family(
        text,
        names::AGENT_CAP,
        agents,
        |agent| agent.cap.map(f64::from),
        |a, b| a + b,
    );
    agent_family(
        text,
        names::AGENT_QUEUED,
        agents,
        |agent| Some(queued(agent)),
        |a, b| a + b,
    );
    agent_family(text, names::AGENT_QUEUE_AGE, agents, age, f64::max);
    agent_family(
        text,
        names::AGENT_ABSORBED,
        agents,
        |agent| Some(f64::from(agent.absorbed)),
        |a, b| a + b,
    );
}

/// One family over agents: the first so many by id have a series each, the rest share one.
fn agent_family(
    text: &mut Text,
    name: &str,
    agents: &[AgentState],
    value: impl Fn(&AgentState) -> Option<f64>,
    fold: impl Fn(f64, f64) -> f64,
) {
    let mut values: Vec<(&str, f64)> = agents
        .iter()
        .filter_map(|agent| Some((agent.id.as_str(), value(agent)?)))
        .collect();
    values.sort_by(|a, b| a.0.cmp(b.0));
    let rest = values.split_off(values.len().min(names::AGENTS_MAX));
    let rest = rest.into_iter().map(|(_, number)| number).reduce(&fold);
    values.extend(rest.map(|number| ("_other", number)));
    text.family(name, "agent", values);
}

async fn fleet_into(text: &mut Text, app: &App) {
    let links = &app.fleet.links;
    text.number(names::NODE_LINKS, links.len() as f64);
    text.number(names::NODE_LINKS_OPENED, links.opened() as f64);
    let question = Question::Fleet(FleetQuestion::Summary);
    let ask = app
        .driver
        .ask(move |waiter| Event::Asked { question, waiter });
    let Ok(Ok(Reply::Fleet(reply))) = tokio::time::timeout(PATIENCE, ask).await else {
        return;
    };
    let FleetReply::Summary(summary) = *reply else {
        return;
    };
    let nodes = summary.nodes.iter();
    let nodes = nodes.map(|(state, count)| (state.word(), f64::from(*count)));
    text.family(names::NODES, "state", nodes);
    let workers = summary.workers.iter();
    let workers = workers.map(|(state, count)| (state.word(), f64::from(*count)));
    text.family(names::WORKERS, "state", workers);
    if let Some(share) = summary.reachable_share.value {
        text.number(names::PLACES_REACHABLE, share);
    }
    text.number(names::PLACEMENTS_QUEUED, f64::from(summary.queued));
    text.number(names::NODES_DRIFTING, f64::from(summary.drifting));
    let doubt = f64::from(u8::from(summary.doubt.is_some()));
    text.number(names::FLEET_DOUBT, doubt);
    text.number(names::LATE_FRAMES, summary.late_frames as f64);
}

async fn store_into(text: &mut Text, app: &App) {
    let read = app.blocking(|stores| stores.decisions.sizes());
    let Ok(Ok(sizes)) = tokio::time::timeout(PATIENCE, read).await else {
        return;
    };
    let kinds = sizes
        .kinds
        .iter()
        .map(|(kind, bytes)| (*kind, *bytes as f64));
    text.family(names::STORE_BYTES, "kind", kinds);
    if let Some(free) = sizes.free {
        text.number(names::STORE_FREE, free as f64);
    }
}

async fn webhooks_into(text: &mut Text, app: &App, now: Timestamp) {
    let read = app.blocking(|stores| stores.decisions.delivery_counts());
    let Ok(Ok(counts)) = tokio::time::timeout(PATIENCE, read).await else {
        return;
    };
    let read = app.blocking(|stores| stores.decisions.open_counts());
    if let Ok(Ok(open)) = tokio::time::timeout(PATIENCE, read).await {
        // None of a status is a zero that is known.
        let known = [
            Status::Queued,
            Status::Running,
            Status::Waiting,
            Status::Paused,
        ];
        let of = |status: Status| open.iter().find(|(word, _)| *word == status);
        let series =
            known.map(|status| (status.word(), of(status).map_or(0.0, |(_, n)| *n as f64)));
        text.family(names::OPEN, "status", series);
    }
    text.number(names::WEBHOOKS_PENDING, counts.pending as f64);
    text.number(names::WEBHOOKS_DEAD, counts.dead as f64);
    let age = counts
        .oldest
        .map_or(0.0, |since| now.since(since).as_secs_f64());
    text.number(names::WEBHOOKS_AGE, age);
}

fn duties_into(text: &mut Text, app: &App, now: Timestamp) {
    let duties = app.duties.report(now);
    let flag = |on: bool| f64::from(u8::from(on));
    let age = |at: Timestamp| now.since(at).as_secs_f64();
    let ages = duties
        .iter()
        .filter_map(|duty| Some((duty.name, age(duty.last_run?))));
    text.family(names::DUTY_AGE, "duty", ages);
    text.family(
        names::DUTY_LATE,
        "duty",
        duties.iter().map(|duty| (duty.name, flag(duty.late))),
    );
    text.family(
        names::DUTY_FAILED,
        "duty",
        duties.iter().map(|duty| (duty.name, flag(duty.failed))),
    );
}

fn traces_into(text: &mut Text, app: &App) {
    let Some(tally) = app.telemetry.tally() else {
        return;
    };
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64;
    let ends = [
        ("exported", read(&tally.exported)),
        ("dropped", read(&tally.dropped)),
        ("failed", read(&tally.failed)),
    ];
    text.family(names::TRACES, "end", ends);
}

fn process_into(text: &mut Text, app: &App) {
    let seen = process::look();
    text.family(names::BUILD, "version", [(env!("CARGO_PKG_VERSION"), 1.0)]);
    for (name, number) in [
        (names::PROCESS_MEMORY, seen.memory.map(|n| n as f64)),
        (names::PROCESS_FDS, seen.fds.map(|n| n as f64)),
        (names::PROCESS_FDS_MAX, seen.fds_max.map(|n| n as f64)),
        (names::PROCESS_CPU, seen.cpu_seconds),
        (
            names::PROCESS_START,
            Some(app.clock.started_at().0 as f64 / 1e6),
        ),
    ] {
        if let Some(number) = number {
            text.number(name, number);
        }
    }
}
