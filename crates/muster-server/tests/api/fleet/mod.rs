//! The fleet from the side of callers and of nodes, with a scripted node over real sockets.

mod items;
mod keys;
mod link;
mod pages;
mod placement;
mod restart;
mod terminal;
mod tunnel;

use std::time::Duration;

use muster_server::Config;
use muster_server::config::Span;
use serde_json::Value;

use crate::support::{TestPlane, eventually};

/// Short graces, so that a story takes seconds.
pub(crate) fn quick(config: &mut Config) {
    config.fleet.heartbeat = Span(Duration::from_millis(200));
    config.fleet.node_grace = Span(Duration::from_secs(2));
}

/// Asks for a node until it is in a state.
pub(crate) async fn node_is(plane: &TestPlane, node: &str, state: &str) -> Value {
    eventually(&format!("{node} is {state}"), || async {
        let shown = plane
            .client
            .get(&format!("/api/v1/fleet/nodes/{node}"))
            .await;
        let shown = shown.json();
        (shown["state"] == state).then_some(shown)
    })
    .await
}

/// Asks for a worker until something holds of it.
pub(crate) async fn worker_when(
    plane: &TestPlane,
    worker: &str,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) -> Value {
    eventually(what, || async {
        let path = format!("/api/v1/fleet/workers/{worker}");
        let shown = plane.client.get(&path).await.json();
        holds(&shown).then_some(shown)
    })
    .await
}
