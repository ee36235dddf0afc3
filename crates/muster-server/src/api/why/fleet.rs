//! Why a node or a worker is where it is.

use muster_engine::fleet::row::FleetHistoryRow;
use muster_wire::Timestamp;
use muster_wire::api::why::{Why, WhyFact, WhyKind, WhyNext};

use super::facts;
use super::rules::{change, rule};
use crate::api::fleet::{nodes, workers};
use crate::api::problem::Problem;
use crate::app::App;

/// Lines of history that are shown as facts.
const HISTORY_MAX: usize = 50;

/// Why a node is as it is.
///
/// # Errors
/// 404 when there is none of that id.
pub(super) async fn node(app: &App, id: &str) -> Result<Why, Problem> {
    let view = nodes::find(app, id).await?;
    let told = view
        .facts
        .iter()
        .map(|fact| match fact.at {
            Some(at) => facts::at(at, fact.by, fact.text.clone()),
            None => facts::unknown(fact.by, fact.what, fact.text.clone()),
        })
        .collect();
    let row = &view.row;
    let mut why = begin(
        app,
        row.id.as_str(),
        WhyKind::Node,
        (view.state.word(), view.state_at),
        &row.name,
    );
    why.verdict = format!("{} is {}: {}", row.name, view.state, view.evidence);
    why.rule = rule(
        "node",
        "a node is online while what it is told is acknowledged; silence makes it suspect, then unreachable, and kills no worker",
    );
    why.facts = told;
    why.next = view
        .next
        .iter()
        .map(|(at, text)| WhyNext {
            at: Some((*at).into()),
            text: text.clone(),
        })
        .collect();
    why.changes = vec![change(
        "see what it told, line by line",
        format!("muster nodes history {}", row.name),
    )];
    Ok(why)
}

/// Why a worker is as it is.
///
/// # Errors
/// 404 when there is none of that id.
pub(super) async fn worker(app: &App, id: &str) -> Result<Why, Problem> {
    let found = workers::find(app, id).await?;
    let wanted = found.id().clone();
    let mut history = app
        .blocking(move |stores| {
            let store = &stores.decisions;
            store.fleet_history(None, Some(&wanted), None, HISTORY_MAX)
        })
        .await?;
    history.reverse();
    let row = found.row();
    let state = found.state();
    let mut why = begin(
        app,
        row.id.as_str(),
        WhyKind::Worker,
        (state.word(), found.state_at()),
        &row.name,
    );
    why.verdict = format!("{} is {state}: {}", row.name, found.shown().evidence);
    why.rule = rule(
        "worker",
        "a worker is dead only on evidence: its exit was reported, two inventories in a row omit it, or somebody says so",
    );
    why.facts = history.iter().map(line).collect();
    if let Some(node) = &row.node {
        why.changes
            .push(change("see its node", format!("muster why {node}")));
    }
    Ok(why)
}

fn line(line: &FleetHistoryRow) -> WhyFact {
    let moved = match (line.from.as_deref(), line.to.as_deref()) {
        (Some(from), Some(to)) => format!("{from} to {to}: "),
        (None, Some(to)) => format!("{to}: "),
        _ => String::new(),
    };
    WhyFact {
        seq: Some(line.seq),
        ..facts::at(line.at, "plane", format!("{moved}{}", line.evidence))
    }
}

fn begin(app: &App, id: &str, kind: WhyKind, (state, since): (&str, Timestamp), name: &str) -> Why {
    Why {
        id: id.to_owned(),
        kind: kind.into(),
        as_of: app.clock.now().into(),
        state: state.to_owned(),
        status: None,
        status_reason: None,
        since: Some(since.into()),
        since_unknown: None,
        name: name.to_owned(),
        run_id: None,
        run_name: None,
        verdict: String::new(),
        rule: rule("node", ""),
        facts: Vec::new(),
        next: Vec::new(),
        changes: Vec::new(),
        ruled_out: Vec::new(),
        execution: None,
        attempts: None,
    }
}
