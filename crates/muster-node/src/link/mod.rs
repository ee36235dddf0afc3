//! Keeps the link to the plane: one session after another, with waits in between that say why.
//! What a session does is `session`'s.

mod asked;
pub(crate) mod backoff;
pub(crate) mod board;
mod load;
pub(crate) mod session;
pub(crate) mod sleep;
pub(crate) mod watchdog;
pub(crate) mod writer;

use std::time::Duration;

use muster_wire::fleet::frame::NodeFrame;
use tokio::sync::{mpsc, watch};

use crate::daemon::Node;
use crate::supervise::WorkerNews;
use backoff::Backoff;
use board::{LinkState, Why};
use session::End;

/// What the plane is told when the daemon stops.
#[derive(Debug, Clone, Default)]
pub(crate) struct Goodbye {
    pub(crate) reason: String,
    pub(crate) workers_stay: bool,
}

/// What comes from the node's other parts; outlives every session.
pub(crate) struct Feeds {
    /// Changes of workers.
    pub(crate) news: mpsc::Receiver<WorkerNews>,
    /// Results of what the plane had asked for. They wait while there is no link.
    pub(crate) results: mpsc::Receiver<NodeFrame>,
    /// The daemon stops.
    pub(crate) stop: watch::Receiver<Option<Goodbye>>,
}

/// Keeps the link until the daemon stops.
pub(crate) async fn keep(node: &Node, mut feeds: Feeds) {
    let timing = &node.settings.timing;
    let mut backoff = Backoff::new(timing.reconnect_min, timing.reconnect_max);
    loop {
        node.read_identity_again();
        let sessions = node.board.report().sessions;
        node.board.enter(
            LinkState::Connecting,
            Why::new(
                "the plane is dialled",
                node.dialer.address().to_string(),
                format!("gives up after {:?}", timing.connect),
            ),
        );
        let end = session::run(node, &mut feeds).await;
        if node.board.report().sessions > sessions {
            backoff.reset();
        }
        if end == End::Stopped {
            let why = Why::new("the daemon stops", "", "nothing: its workers have holders");
            node.board.enter(LinkState::Stopped, why);
            return;
        }
        if let End::Unhealthy { reason, evidence } = &end {
            let why = Why::new(
                reason,
                evidence,
                "the socket is given up and a new one dialled",
            );
            node.board.enter(LinkState::Unhealthy, why);
        }
        let wait = wait_after(&end, &mut backoff, timing.refused_wait);
        let (reason, evidence) = told(end);
        let next = format!("dials again in {:.1} s", wait.as_secs_f64());
        node.board.wait(wait, Why::new(reason, evidence, next));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = node.reconnect.notified() => {}
            _ = feeds.stop.wait_for(Option::is_some) => {}
        }
    }
}

fn wait_after(end: &End, backoff: &mut Backoff, refused_wait: Duration) -> Duration {
    match end {
        End::Forced => Duration::ZERO,
        // It will be refused again until a person does something.
        End::Refused { code, .. } if lasting(code) => {
            refused_wait.mul_f64(0.5 + backoff::random() / 2.0)
        }
        _ => backoff.next(),
    }
}

/// Refusals that trying again does not lift.
fn lasting(code: &str) -> bool {
    matches!(
        code,
        "unauthorised"
            | "unauthenticated"
            | "permission_denied"
            | "node_not_found"
            | "node_id_mismatch"
            | "node_name_conflict"
            | "node_retired"
    )
}

fn told(end: End) -> (String, String) {
    match end {
        End::Stopped => ("the daemon stops".into(), String::new()),
        End::Forced => ("somebody asked for a new connection".into(), String::new()),
        End::Closed { code, words } if words.is_empty() => (
            "the plane closed the connection".into(),
            format!("close {code}"),
        ),
        End::Closed { code, words } => (
            "the plane closed the connection".into(),
            format!("close {code}: {words}"),
        ),
        End::Broken(words) => ("there is no connection".into(), words),
        End::Unhealthy { reason, evidence } => (reason, evidence),
        End::StoodStill(span) => (
            "this machine or this process stood still".into(),
            format!(
                "{:.1} s; nothing is concluded about the plane",
                span.as_secs_f64()
            ),
        ),
        End::Refused { code, message } if lasting(&code) => (
            format!("the plane does not take this node: {code}"),
            format!("{message}; enrol it again: `muster node enroll --force`"),
        ),
        End::Refused { code, message } => (format!("the plane refused: {code}"), message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_good_is_tried_slowly_and_says_what_to_do() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, second * 10);
        let refused = |code: &str| End::Refused {
            code: code.into(),
            message: "no such node".into(),
        };
        let slow = wait_after(&refused("node_not_found"), &mut backoff, second * 30);
        assert!((15.0..=30.0).contains(&slow.as_secs_f64()), "{slow:?}");
        let quick = wait_after(&refused("overloaded"), &mut backoff, second * 30);
        assert!(quick <= second * 10, "{quick:?}");
        assert_eq!(
            wait_after(&End::Forced, &mut backoff, second),
            Duration::ZERO
        );
        let (reason, evidence) = told(refused("node_not_found"));
        assert!(reason.contains("node_not_found") && evidence.contains("enroll"));
    }
}
