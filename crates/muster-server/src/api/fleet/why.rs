//! Why a node or a worker is where it is: the verdict, the facts behind it, and what comes next.

use serde_json::{Value, json};

use super::nodes;
use super::show;
use super::workers::{self, Found};
use crate::api::problem::Problem;
use crate::api::stamp::Stamp;
use crate::app::App;

/// Lines of history that are shown as evidence.
const EVIDENCE_MAX: usize = 50;

/// The evidence about a node or a worker; `None` when an id names neither by its form.
///
/// # Errors
/// 404 when there is none of that id.
pub(crate) async fn explain(app: &App, id: &str) -> Result<Option<Value>, Problem> {
    if id.starts_with("node_") {
        return node(app, id).await.map(Some);
    }
    if id.starts_with("wrk_") {
        return worker(app, id).await.map(Some);
    }
    Ok(None)
}

async fn node(app: &App, id: &str) -> Result<Value, Problem> {
    let view = nodes::find(app, id).await?;
    let wanted = view.row.id.clone();
    let history = app
        .blocking(move |stores| {
            let store = &stores.decisions;
            store.fleet_history(Some(&wanted), None, None, EVIDENCE_MAX)
        })
        .await?;
    let shown = show::node_whole(Stamp::now(app), &view);
    let next: Vec<Value> = view
        .next
        .iter()
        .map(|(at, what)| json!({"at": at.rfc3339(), "what": what}))
        .collect();
    Ok(json!({
        "id": view.row.id,
        "kind": "node",
        "state": view.state,
        "verdict": format!("{} is {}: {}", view.row.name, view.state, view.evidence),
        "rule": "a node is online while what it is told is acknowledged; silence makes it suspect, then unreachable, and kills no worker",
        "next": next,
        "evidence": shown.facts,
        "node": shown,
        "history": history.iter().map(show::history).collect::<Vec<_>>(),
    }))
}

async fn worker(app: &App, id: &str) -> Result<Value, Problem> {
    let found = workers::find(app, id).await?;
    let wanted = found.id().clone();
    let history = app
        .blocking(move |stores| {
            let store = &stores.decisions;
            store.fleet_history(None, Some(&wanted), None, EVIDENCE_MAX)
        })
        .await?;
    let shown = found.shown();
    let row = found.row();
    let state = match &found {
        Found::Held(view) => view.state,
        Found::Past(row) => row.state,
    };
    let evidence = &shown.evidence;
    Ok(json!({
        "id": row.id,
        "kind": "worker",
        "state": state,
        "verdict": format!("{} is {state}: {evidence}", row.name),
        "rule": "a worker is dead only on evidence: its exit was reported, two inventories in a row omit it, or somebody says so",
        "evidence": history.iter().map(show::history).collect::<Vec<_>>(),
        "worker": shown,
    }))
}
