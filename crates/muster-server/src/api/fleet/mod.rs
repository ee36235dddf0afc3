//! The fleet over HTTP: the sockets of nodes, and what people ask and want of nodes and workers.

mod consequence;
mod enrol;
pub(crate) mod history;
pub(crate) mod nodes;
pub(crate) mod placement;
mod placements;
pub(crate) mod release;
mod restart;
mod show;
mod sockets;
mod summary;
mod terminal;
pub(crate) mod workers;

use muster_engine::event::{Question, Waiter};
use muster_engine::fleet::effect::{NodeView, NodesAsk, WorkerView};
use muster_engine::fleet::{FleetEvent, FleetQuestion, FleetReply};
use muster_engine::{Event, Reply};
use muster_wire::fleet::NodeKind;
use utoipa_axum::router::OpenApiRouter;

use super::caller::Caller;
pub(crate) use super::keys::audit;
use super::problem::Problem;
use crate::app::App;
use crate::driver::record::{About, Line};
pub(crate) use consequence::really;
pub(crate) use show::by_word;

/// The longest reason that a person may give.
const REASON_MAX: usize = 500;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(sockets::routes())
        .merge(summary::routes())
        .merge(nodes::routes())
        .merge(enrol::routes())
        .merge(placement::routes())
        .merge(placements::routes())
        .merge(history::routes())
        .merge(workers::routes())
        .merge(release::routes())
        .merge(restart::routes())
        .merge(terminal::routes())
}

/// Asks the engine about the fleet.
///
/// # Errors
/// 503 when it cannot answer.
pub(crate) async fn ask(app: &App, question: FleetQuestion) -> Result<FleetReply, Problem> {
    let question = Question::Fleet(question);
    let reply = app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await?;
    unwrap(reply)
}

/// Tells the engine what somebody wants, and waits for what became of it.
///
/// # Errors
/// 503 when it cannot answer.
pub(crate) async fn wish(
    app: &App,
    make: impl FnOnce(Waiter) -> FleetEvent,
) -> Result<FleetReply, Problem> {
    let reply = app
        .driver
        .ask(|waiter| Event::Fleet(Box::new(make(waiter))))
        .await?;
    unwrap(reply)
}

/// Like [`wish`], with a line for the audit log: what was done to what, if anything was.
pub(crate) async fn wish_on_record(
    app: &App,
    caller: &Caller,
    action: &'static str,
    about: impl Fn(Option<&FleetReply>) -> Option<About> + Send + Sync + 'static,
    make: impl FnOnce(Waiter) -> FleetEvent,
) -> Result<FleetReply, Problem> {
    let line = Line::new(&caller.principal, action, move |reply| match reply {
        Some(Reply::Fleet(reply)) => about(Some(reply)),
        Some(_) => None,
        None => about(None),
    });
    let make = |waiter| Event::Fleet(Box::new(make(waiter)));
    unwrap(app.driver.ask_on_record(line, make).await?)
}

fn unwrap(reply: Reply) -> Result<FleetReply, Problem> {
    match reply {
        Reply::Fleet(reply) => Ok(*reply),
        Reply::Refused(refusal) => Err(refusal.into()),
        other => Err(Problem::internal(&format!(
            "the fleet was asked, and the answer was {other:?}"
        ))),
    }
}

/// Nodes and living workers whose name or id has a part, at most so many of each.
///
/// # Errors
/// 503 when the engine cannot answer.
pub(crate) async fn named(
    app: &App,
    part: &str,
    limit: usize,
) -> Result<(Vec<NodeView>, Vec<WorkerView>), Problem> {
    let part = part.to_lowercase();
    let asked = NodesAsk {
        part: Some(part.clone()),
        limit,
        ..NodesAsk::default()
    };
    let FleetReply::NodesPage(page) = ask(app, FleetQuestion::NodesPage(Box::new(asked))).await?
    else {
        return Err(unexpected("a question about nodes"));
    };
    let asked = FleetQuestion::WorkersNamed(part.into(), limit);
    let FleetReply::Workers(workers) = ask(app, asked).await? else {
        return Err(unexpected("a question about workers"));
    };
    let nodes = page.nodes.into_iter().map(|(_, view)| view);
    Ok((nodes.collect(), workers))
}

/// An answer that does not go with its question: a fault of ours. Never printed whole: a row may
/// hold what a person typed.
fn unexpected(what: &str) -> Problem {
    Problem::internal(&format!("{what} was answered with something else"))
}

fn no_node(node: &str) -> Problem {
    Problem::not_found(format!(
        "no node {:?} is enrolled; see `muster nodes`",
        short(node)
    ))
}

fn no_worker(worker: &str) -> Problem {
    Problem::not_found(format!(
        "no worker {:?}; see `muster workers`, with --ended for those of the past",
        short(worker)
    ))
}

fn conflict(message: String) -> Problem {
    Problem::new(muster_wire::Category::Conflict, message)
}

fn short(text: &str) -> String {
    text.chars().take(128).collect()
}

/// A reason as a person gave it, checked.
fn reason(text: Option<String>) -> Result<Option<std::sync::Arc<str>>, Problem> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let text = text.trim();
    if text.len() > REASON_MAX || text.chars().any(char::is_control) {
        return Err(Problem::validation(format!(
            "reason: at most {REASON_MAX} bytes without control characters"
        )));
    }
    Ok(Some(text.into()))
}

/// What may be absent: an empty body is an empty object.
fn optional<'a, T: serde::Deserialize<'a> + Default>(
    bytes: &'a [u8],
    shape: &str,
) -> Result<T, Problem> {
    if bytes.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    super::body::json(bytes, shape)
}

/// How a worker ended, in a sentence; `None` while it has not, or nobody can say.
pub(crate) async fn end_of(app: &App, worker: &muster_wire::WorkerId) -> Option<String> {
    let found = workers::find(app, worker.as_str()).await.ok()?;
    let row = found.row();
    row.ended.is_some().then(|| show::end_of(row))
}

/// Whether a worker is called through the link of its node. One of a broker is not: it opens no
/// tunnels; and a supervisor's that is no node runs on this machine.
///
/// # Errors
/// 503 when the engine cannot answer.
pub(crate) async fn is_called_through_its_node(app: &App, worker: &str) -> Result<bool, Problem> {
    match ask(app, FleetQuestion::Worker(worker.into())).await? {
        FleetReply::Worker(view) => {
            let node = view.row.node.as_ref();
            let link = node.and_then(|node| app.fleet.links.of(node.as_str()));
            Ok(node.is_some() && link.is_none_or(|link| link.kind == NodeKind::Daemon))
        }
        _ => Ok(false),
    }
}
