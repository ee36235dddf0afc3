//! What an act on a node or a worker would come to: names and counts, from what is known now.
//! Changes nothing. Whether the act is allowed when it comes is the engine's to say then.

use muster_engine::fleet::effect::{NodeView, WorkerView};
use muster_engine::fleet::{FleetQuestion, FleetReply, WorkerRow};
use muster_wire::api::At;
use muster_wire::api::fleet::{NodeConsequence, ReleaseConsequence, TouchedWorker};
use muster_wire::fleet::{NodeState, NodeWish, WorkerState};
use serde::Deserialize;
use utoipa::IntoParams;

use super::workers::Found;
use super::{ask, nodes, unexpected};
use crate::api::body::Query;
use crate::api::problem::Problem;
use crate::app::App;

/// Workers that a consequence names.
const NAMED_MAX: usize = 200;

/// Whether to do it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dry {
    /// Only say what would happen; change nothing.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// Do it.
pub(crate) fn really() -> Query<Dry> {
    Query(Dry::default())
}

/// An act on a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Act {
    /// A wish.
    Wish(NodeWish),
    /// It is given up.
    Lost,
    /// It and its history go.
    Delete,
}

fn workers(n: usize) -> String {
    match n {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    }
}

/// What an act on a node would come to.
pub(super) async fn of(app: &App, node: &str, act: Act) -> Result<NodeConsequence, Problem> {
    let view = nodes::find(app, node).await?;
    let question = FleetQuestion::Workers {
        node: Some(view.row.id.as_str().into()),
        ended: false,
    };
    let FleetReply::Workers(living) = ask(app, question).await? else {
        return Err(unexpected("a question about workers"));
    };
    Ok(weigh(&view, &living, act))
}

fn weigh(view: &NodeView, living: &[WorkerView], act: Act) -> NodeConsequence {
    let (name, n) = (&view.row.name, living.len());
    let unknown = living
        .iter()
        .filter(|one| one.state == WorkerState::Unknown)
        .count();
    let may_run = match unknown {
        0 => String::new(),
        unknown => format!(", of which {unknown} are unknown and may still run"),
    };
    let online = view.state == NodeState::Online && view.link.is_some();
    let (allowed, touches, text, then) = match act {
        Act::Wish(NodeWish::Draining) => (
            true,
            true,
            format!(
                "{name} takes no new work, and its {} are released one after another{may_run}",
                workers(n)
            ),
            Some("when it has none left it stays as it is: retire it, or let it take work again"),
        ),
        Act::Wish(NodeWish::Cordoned) => (
            true,
            false,
            format!("{name} takes no new work; its {} go on", workers(n)),
            None,
        ),
        Act::Wish(NodeWish::Active) => (
            true,
            false,
            format!("{name} takes work again"),
            Some("placements that wait are tried again"),
        ),
        Act::Wish(NodeWish::Retired) if n > 0 => (
            false,
            true,
            format!(
                "{name} has {}{may_run}: drain it first, or declare it lost",
                workers(n)
            ),
            None,
        ),
        Act::Wish(NodeWish::Retired) => (
            true,
            false,
            format!("{name} becomes history: its link is closed and it is left out of lists"),
            None,
        ),
        Act::Lost if online => (
            false,
            true,
            format!("{name} is online: drain or retire it"),
            None,
        ),
        Act::Lost => (
            true,
            true,
            format!(
                "{name} is given up and its {} are lost{may_run}; nothing places them again by itself",
                workers(n)
            ),
            None,
        ),
        Act::Delete if n > 0 => (
            false,
            true,
            format!(
                "{name} has {} that have not ended{may_run}: drain it, or declare it lost first",
                workers(n)
            ),
            None,
        ),
        Act::Delete => (
            true,
            false,
            format!("{name} goes, with its history; its key is revoked"),
            None,
        ),
    };
    let touched = if touches { living } else { &[] };
    let shown = |view: &WorkerView| TouchedWorker {
        id: view.row.id.clone(),
        name: view.row.name.to_string(),
        state: view.state,
        agent: view.row.agent.as_ref().map(ToString::to_string),
    };
    NodeConsequence {
        dry_run: true,
        node: view.row.id.to_string(),
        name: name.to_string(),
        allowed,
        text,
        workers: touched.iter().take(NAMED_MAX).map(shown).collect(),
        workers_total: touched.len() as u64,
        workers_unknown: touched
            .iter()
            .filter(|one| one.state == WorkerState::Unknown)
            .count() as u64,
        then: then.map(str::to_owned),
    }
}

/// What a release would come to.
pub(super) fn of_release(
    app: &App,
    found: &Found,
    grace: Option<std::time::Duration>,
    force: bool,
) -> ReleaseConsequence {
    let row = found.row();
    let name = &row.name;
    let state = match found {
        Found::Held(view) => view.state,
        Found::Past(row) => row.state,
    };
    let kill = kill_after(grace);
    let (allowed, text) = match state {
        _ if row.ended.is_some() => (true, format!("{name} has ended already; nothing happens")),
        WorkerState::Queued => (true, format!("{name} waits for a place and is cancelled")),
        WorkerState::Unknown if force => (
            true,
            format!(
                "the record of {name} is closed although its node cannot be told; it may still run"
            ),
        ),
        WorkerState::Unknown => (
            true,
            format!(
                "the node of {name} cannot be told now; it is told when it comes back, and until then it may run"
            ),
        ),
        _ => (true, format!("{name} gets SIGTERM now, and {kill}")),
    };
    let heard_at = match state {
        WorkerState::Unknown => row.confirmed_at.map(At),
        _ => None,
    };
    consequence(app, row, allowed, text, heard_at)
}

/// What a restart would come to, or why there is none.
pub(super) fn of_restart(
    app: &App,
    row: &WorkerRow,
    grace: Option<std::time::Duration>,
    refused: Option<String>,
) -> ReleaseConsequence {
    let (allowed, text) = match refused {
        Some(why) => (false, why),
        None => (
            true,
            format!(
                "{} gets SIGTERM now, and {}; then it is started again under the same id, with the same variables, and whoever watches its terminal stays",
                row.name,
                kill_after(grace)
            ),
        ),
    };
    consequence(app, row, allowed, text, None)
}

fn kill_after(grace: Option<std::time::Duration>) -> String {
    match grace {
        Some(grace) => format!("SIGKILL after {} s", grace.as_secs_f64()),
        None => "SIGKILL after its own grace".to_owned(),
    }
}

/// With the agent that it is, and how much that has in flight.
fn consequence(
    app: &App,
    row: &WorkerRow,
    allowed: bool,
    text: String,
    node_heard_at: Option<At>,
) -> ReleaseConsequence {
    let worker = row.id.as_str();
    let agent = row.agent.as_ref();
    let in_flight = agent
        .and_then(|id| app.directory.agent(id.as_str()))
        .map(|entry| {
            let instances = entry.instances();
            let facts = instances.iter().filter_map(|one| one.facts_now());
            let own = facts.filter(|facts| facts.worker.as_deref() == Some(worker));
            own.map(|facts| facts.in_flight).sum()
        });
    ReleaseConsequence {
        dry_run: true,
        worker: row.id.clone(),
        name: row.name.to_string(),
        allowed,
        text,
        agent: agent.map(ToString::to_string),
        in_flight,
        node_heard_at,
    }
}
