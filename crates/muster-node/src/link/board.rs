//! What the link is, as the node itself sees it: one state with its reason, evidence and what
//! happens next. Every change is logged once, here. Decides no change.

use std::time::Duration;

use muster_wire::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tracing::{info, warn};

/// Where the link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// The plane is dialled.
    Connecting,
    /// A socket is open; the plane's application has not acknowledged an inventory yet.
    Connected,
    /// The plane acknowledges what it is told.
    Ready,
    /// A deadline passed over an open socket.
    Unhealthy,
    /// It waits before it dials again.
    Reconnecting,
    /// The daemon stops.
    Stopped,
}

impl LinkState {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            LinkState::Connecting => "connecting",
            LinkState::Connected => "connected",
            LinkState::Ready => "ready",
            LinkState::Unhealthy => "unhealthy",
            LinkState::Reconnecting => "reconnecting",
            LinkState::Stopped => "stopped",
        }
    }
}

/// The link at one moment, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Where it is.
    pub state: LinkState,
    /// Since when, by this machine's clock.
    pub since: Timestamp,
    /// Why it came to be so.
    pub reason: String,
    /// What was seen.
    pub evidence: String,
    /// What happens next.
    pub next: String,
    /// When the plane last acknowledged something that it was told; `None` is not since the start.
    pub last_acknowledged_at: Option<Timestamp>,
    /// How long ago that was, in milliseconds, by a clock that is never set.
    pub last_acknowledged_ms_ago: Option<u64>,
    /// In how many milliseconds it dials again, while it waits for that.
    pub reconnect_in_ms: Option<u64>,
    /// How many sessions were ready since the daemon started.
    pub sessions: u64,
    /// Attempts since the last session that was ready.
    pub attempts: u64,
}

/// Why a state changes: for the log and for `muster node status`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Why {
    pub(crate) reason: String,
    pub(crate) evidence: String,
    pub(crate) next: String,
}

impl Why {
    pub(crate) fn new(
        reason: impl Into<String>,
        evidence: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            reason: reason.into(),
            evidence: evidence.into(),
            next: next.into(),
        }
    }
}

/// Holds the report and tells whoever waits that it changed.
#[derive(Debug)]
pub(crate) struct Board {
    node: String,
    inner: Mutex<Inner>,
    changed: tokio::sync::watch::Sender<LinkState>,
}

#[derive(Debug)]
struct Inner {
    state: LinkState,
    since: Timestamp,
    why: Why,
    acknowledged: Option<(Timestamp, Instant)>,
    reconnect_at: Option<Instant>,
    sessions: u64,
    attempts: u64,
}

impl Board {
    /// A link that was never up.
    pub(crate) fn new(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            inner: Mutex::new(Inner {
                state: LinkState::Connecting,
                since: Timestamp::wall_clock(),
                why: Why::new("the daemon started", "", "the plane is dialled"),
                acknowledged: None,
                reconnect_at: None,
                sessions: 0,
                attempts: 0,
            }),
            changed: tokio::sync::watch::Sender::new(LinkState::Connecting),
        }
    }

    /// A change of state; a state that is entered again only gets its new reason.
    pub(crate) fn enter(&self, state: LinkState, why: Why) {
        self.enter_until(state, why, None);
    }

    /// It waits before it dials again.
    pub(crate) fn wait(&self, wait: Duration, why: Why) {
        self.enter_until(LinkState::Reconnecting, why, Some(Instant::now() + wait));
    }

    fn enter_until(&self, state: LinkState, why: Why, reconnect_at: Option<Instant>) {
        let old = {
            let mut inner = self.inner.lock();
            let old = inner.state;
            match state {
                LinkState::Connecting => inner.attempts += 1,
                LinkState::Ready if old != LinkState::Ready => {
                    inner.sessions += 1;
                    inner.attempts = 0;
                }
                _ => {}
            }
            if old != state {
                inner.since = Timestamp::wall_clock();
            }
            inner.state = state;
            inner.why = why.clone();
            inner.reconnect_at = reconnect_at;
            old
        };
        let (node, from, to) = (&self.node, old.word(), state.word());
        let Why {
            reason,
            evidence,
            next,
        } = &why;
        match state {
            LinkState::Unhealthy | LinkState::Reconnecting => warn!(
                node.id = %node, link.from = from, link.state = to, %reason, %evidence, %next,
                "the link to the plane is {to}"
            ),
            _ => info!(
                node.id = %node, link.from = from, link.state = to, %reason, %evidence, %next,
                "the link to the plane is {to}"
            ),
        }
        self.changed.send_replace(state);
    }

    /// The plane's application answered.
    pub(crate) fn acknowledged(&self) {
        self.inner.lock().acknowledged = Some((Timestamp::wall_clock(), Instant::now()));
    }

    /// How long ago the plane's application last answered.
    pub(crate) fn acknowledged_ago(&self) -> Option<Duration> {
        let inner = self.inner.lock();
        inner.acknowledged.map(|(_, at)| at.elapsed())
    }

    /// The state, for those who wait for a change.
    pub(crate) fn watch(&self) -> tokio::sync::watch::Receiver<LinkState> {
        self.changed.subscribe()
    }

    /// As it is now.
    pub(crate) fn report(&self) -> LinkReport {
        let inner = self.inner.lock();
        let now = Instant::now();
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        LinkReport {
            state: inner.state,
            since: inner.since,
            reason: inner.why.reason.clone(),
            evidence: inner.why.evidence.clone(),
            next: inner.why.next.clone(),
            last_acknowledged_at: inner.acknowledged.map(|(at, _)| at),
            last_acknowledged_ms_ago: inner
                .acknowledged
                .map(|(_, at)| millis(now.saturating_duration_since(at))),
            reconnect_in_ms: inner
                .reconnect_at
                .map(|at| millis(at.saturating_duration_since(now))),
            sessions: inner.sessions,
            attempts: inner.attempts,
        }
    }
}
