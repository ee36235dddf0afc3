//! The last output of a worker that runs, from the screen that its node would paint for a viewer.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::NodeId;
use muster_wire::fleet::terminal::TerminalMode;

use super::feed::{Feed, Item};
use super::filter::Filter;
use crate::app::App;

/// How long a node may take.
const PATIENCE: Duration = Duration::from_secs(5);

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
    let Some(lane) = app.fleet.terminals.lane(node) else {
        return Err((
            "node_unreachable".into(),
            "its node's terminal socket is not open".into(),
        ));
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
    let late = || {
        let text = format!("its node painted no screen within {PATIENCE:?}");
        Err(("node_unreachable".to_owned(), text))
    };
    let end = tokio::select! {
        end = timeout(screen) => end.unwrap_or_else(late),
        () = lane.closed() => late(),
    };
    lane.end(&id);
    end
}

async fn timeout<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(PATIENCE, work).await.ok()
}
