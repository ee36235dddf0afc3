//! Telling a client how far something is, where it asked for that. The first thing told turns
//! the answer into a stream of events, so nobody who did not ask is told.

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};

/// Where progress is told, if anywhere.
pub(super) struct Progress(Option<Listener>);

struct Listener {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// The last number; the protocol wants each to be larger.
    told: Option<u64>,
}

impl Progress {
    /// Of this request.
    pub(super) fn to(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self(token.map(|token| Listener {
            peer: context.peer.clone(),
            token,
            told: None,
        }))
    }

    /// Whether anybody wants to know.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Tells that so much of so much is done; nothing when that is no progress.
    pub(super) async fn tell(&mut self, done: u64, total: u64, message: String) {
        let Some(listener) = &mut self.0 else { return };
        if listener.told.is_some_and(|told| told >= done) {
            return;
        }
        listener.told = Some(done);
        // Counts of executions, far below what a double keeps.
        let told = ProgressNotificationParam::new(listener.token.clone(), done as f64)
            .with_total(total as f64)
            .with_message(message);
        // Whoever has left is noticed elsewhere.
        let _ = listener.peer.notify_progress(told).await;
    }
}
