//! The last output of a worker that runs, from the screen that its node would paint for a viewer;
//! and what the plane believes of a node that paints nothing.

use std::sync::Arc;
use std::time::Duration;

use muster_engine::event::Question;
use muster_engine::fleet::effect::NodeView;
use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_engine::{Event, Reply};
use muster_wire::NodeId;
use muster_wire::fleet::NodeState;
use muster_wire::fleet::terminal::TerminalMode;

use super::feed::{Feed, Item};
use super::filter::Filter;
use crate::app::App;

/// How long a node may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// A screen.
pub(crate) struct Snapshot {
    /// What repaints it, without what would steer a terminal.
    pub(crate) screen: String,
    /// Rows.
    pub(crate) rows: u16,
    /// Columns.
    pub(crate) cols: u16,
    /// How much output came before.
    pub(crate) offset: u64,
}

/// Asks a worker's node for its screen.
///
/// # Errors
/// A word and a sentence.
pub(crate) async fn last_output(
    app: &App,
    node: &NodeId,
    agent: &str,
) -> Result<Snapshot, (String, String)> {
    let unreachable = |text: String| Err(("node_unreachable".to_owned(), text));
    if let Some(text) = believed(app, node).await.filter(Belief::is_away) {
        return unreachable(text.sentence);
    }
    let Some(lane) = app.fleet.terminals.lane(node) else {
        return unreachable(said(app, node, "its node's terminal socket is not open").await);
    };
    let feed: Arc<Feed> = Arc::default();
    let id = muster_wire::mint("term");
    lane.open(&id, agent, TerminalMode::View, feed.clone());
    let screen = async {
        loop {
            match feed.next().await {
                Item::Ready {
                    screen,
                    rows,
                    cols,
                    offset,
                } => {
                    return Ok(Snapshot {
                        screen: Filter::default().pass(&String::from_utf8_lossy(&screen)),
                        rows,
                        cols,
                        offset,
                    });
                }
                Item::Error { code, message } | Item::Closed { code, message } => {
                    return Err((code, message));
                }
                Item::Output { .. } | Item::InputAck(_) => {}
            }
        }
    };
    let end = tokio::select! {
        end = tokio::time::timeout(PATIENCE, screen) => end.ok(),
        () = lane.closed() => None,
    };
    lane.end(&id);
    match end {
        Some(end) => end,
        None => {
            let text = format!("its node painted no screen within {PATIENCE:?}");
            unreachable(said(app, node, &text).await)
        }
    }
}

/// What the plane believes of a node.
pub(super) struct Belief {
    /// `mini is unreachable: …`, with the evidence.
    pub(super) sentence: String,
    state: NodeState,
    is_pinned: bool,
}

impl Belief {
    /// Nobody need ask it. A pin is a person's word and no sign that it cannot answer.
    pub(super) fn is_away(&self) -> bool {
        matches!(self.state, NodeState::Unreachable | NodeState::Lost) && !self.is_pinned
    }
}

/// Asks the engine; `None` when it does not answer.
pub(super) async fn believed(app: &App, node: &NodeId) -> Option<Belief> {
    let question = Question::Fleet(FleetQuestion::Node(node.as_str().into()));
    let reply = app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await
        .ok()?;
    let Reply::Fleet(reply) = reply else {
        return None;
    };
    let FleetReply::Node(view) = *reply else {
        return None;
    };
    let NodeView {
        row,
        state,
        evidence,
        ..
    } = *view;
    Some(Belief {
        sentence: format!("{} is {state}: {evidence}", row.name),
        state,
        is_pinned: row.pin.is_some(),
    })
}

/// What was seen, and what is believed of the node.
pub(super) async fn said(app: &App, node: &NodeId, seen: &str) -> String {
    match believed(app, node).await {
        Some(belief) => format!("{seen}; {}", belief.sentence),
        None => seen.to_owned(),
    }
}
