//! `GET /api/ui/v1/executions/events`: the stream that the SDK may open beside its polls. One
//! message for each change of an execution; the result always comes from a poll, which returns
//! it before this stream tells of the end.
//!
//! Ends are told late on purpose. The published SDK takes an execution for finished when this
//! stream says so, before it has the result, and a caller that wakes in between gets `None` for
//! it. Its polls go on beside the stream, at most 1.5 s apart: told later than that, an end is
//! no news to it. Who wants ends at once reads `/api/v1/events`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use muster_engine::row::{EventKind, EventRow};
use muster_wire::{Status, Timestamp};
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Caller;
use super::problem::Problem;
use crate::app::App;
use crate::meters::{Open, Stream};
use crate::tail::{Step, Tail};

/// How late an end is told.
const END_LATE: Duration = Duration::from_secs(2);
/// Ends of one reader that wait to be told; the oldest goes when there are more, for a poll
/// tells of it as well.
const ENDS_MAX: usize = 16_384;

/// How often something is sent while nothing happens.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const STILL_HERE: &[u8] = b": still here\n\n";

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(events))
}

/// A change of an execution.
#[derive(Debug, Serialize, ToSchema)]
struct Change<'a> {
    /// `execution_queued`, `execution_started`, `execution_updated`, `execution_completed`,
    /// `execution_failed`, `execution_cancelled` or `execution_timeout`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The execution.
    execution_id: &'a str,
    /// Its status after the change, in the SDK's words.
    status: &'static str,
    /// Its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    /// The same as `run_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow_id: Option<&'a str>,
    /// Its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_node_id: Option<&'a str>,
    /// When.
    timestamp: String,
}

/// Changes of executions as server-sent events, from now on: `data: {…}`, no names, LF only.
/// Ends come two seconds late, so that the published SDK has polled the result before.
#[utoipa::path(get, path = "/api/ui/v1/executions/events", tag = "executions",
    responses((status = 200, description = "The stream",
               content((Change<'static> = "text/event-stream")))))]
async fn events(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    let reader = Reader {
        tail: Tail::from_now(app.clone()),
        caller,
        is_fresh: true,
        keep_alive: Instant::now() + KEEP_ALIVE,
        ends: VecDeque::new(),
        _open: app.meters.reading(Stream::Sse),
        app,
    };
    let frames = unfold(reader, |mut reader| async {
        let frame = reader.next().await?;
        Some((Ok::<_, Infallible>(frame), reader))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(frames)).into_response())
}

struct Reader {
    app: App,
    caller: Caller,
    tail: Tail,
    is_fresh: bool,
    keep_alive: Instant,
    /// Ends, with the moment at which each is told.
    ends: VecDeque<(Instant, Bytes)>,
    _open: Open,
}

impl Reader {
    /// The next bytes; `None` when the stream is over.
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_fresh) {
            // The head goes out at once, so that the other side knows that it is connected.
            return Some(Bytes::from_static(b": connected\n\n"));
        }
        loop {
            let due = self.ends.front().map(|(at, _)| *at);
            if due.is_some_and(|at| at <= Instant::now()) {
                let (_, frame) = self.ends.pop_front()?;
                return Some(self.told(frame));
            }
            let wake = due.map_or(self.keep_alive, |at| at.min(self.keep_alive));
            let step = tokio::select! {
                biased;
                step = self.tail.next() => step,
                () = tokio::time::sleep_until(wake) => {
                    if Instant::now() < self.keep_alive {
                        continue;
                    }
                    return Some(self.told(Bytes::from_static(STILL_HERE)));
                }
            };
            match step {
                Ok(Step::Event(row)) => {
                    if let Some(frame) = self.frame(&row) {
                        if !row.status.is_some_and(Status::is_terminal) {
                            return Some(self.told(frame));
                        }
                        if self.ends.len() == ENDS_MAX {
                            self.ends.pop_front();
                            self.app.meters.gap(Stream::Sse);
                        }
                        self.ends.push_back((Instant::now() + END_LATE, frame));
                    }
                    // A long run of what is not told must not keep the other side waiting.
                    if Instant::now() >= self.keep_alive {
                        return Some(self.told(Bytes::from_static(STILL_HERE)));
                    }
                }
                // What was missed comes from the store now.
                Ok(Step::Gap(_)) => self.app.meters.gap(Stream::Sse),
                Ok(Step::Reset(_)) => {}
                Ok(Step::End) => return None,
                Err(error) => {
                    tracing::error!(error = %error, "a stream of executions could not read the store");
                    return None;
                }
            }
        }
    }

    /// Something goes out: the next sign of life is not due for a while.
    fn told(&mut self, frame: Bytes) -> Bytes {
        self.keep_alive = Instant::now() + KEEP_ALIVE;
        frame
    }

    fn frame(&self, row: &EventRow) -> Option<Bytes> {
        let change = change(row)?;
        // A caller who sees only its own results is told of nothing else; what is no longer at
        // hand is not worth a read for a nudge.
        if self.caller.grants.only_own_results()
            && !self
                .app
                .views
                .get(change.execution_id)
                .is_some_and(|view| self.caller.sees(&view.row.principal))
        {
            return None;
        }
        let mut frame = Vec::with_capacity(320);
        frame.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut frame, &change).ok()?;
        frame.extend_from_slice(b"\n\n");
        Some(Bytes::from(frame))
    }
}

/// What an event says to the SDK; `None` for what is no change of an execution's status.
fn change(row: &EventRow) -> Option<Change<'_>> {
    let kind = match row.kind {
        EventKind::ExecutionQueued => "execution_queued",
        EventKind::ExecutionStarted => "execution_started",
        EventKind::ExecutionAbsorbed
        | EventKind::ExecutionResent
        | EventKind::ExecutionContinued => "execution_updated",
        EventKind::ExecutionWaiting => "execution_waiting",
        EventKind::ExecutionPaused => "execution_paused",
        EventKind::ExecutionResumed => "execution_resumed",
        EventKind::ExecutionSucceeded => "execution_completed",
        EventKind::ExecutionFailed => "execution_failed",
        EventKind::ExecutionCancelled => "execution_cancelled",
        EventKind::ExecutionTimedOut => "execution_timeout",
        EventKind::ExecutionLateOutcome
        | EventKind::ExecutionCancelReceipt
        | EventKind::ExecutionRestarted
        | EventKind::ApprovalRequested
        | EventKind::ApprovalDecided
        | EventKind::ApprovalTold
        | EventKind::RunPaused
        | EventKind::RunResumed
        | EventKind::AgentTagsChanged
        | EventKind::LlmCircuitChanged
        | EventKind::RunCancelled
        | EventKind::InstanceRegistered
        | EventKind::InstanceMoved
        | EventKind::InstanceGoodbye
        | EventKind::InstanceDegraded
        | EventKind::InstanceActive
        | EventKind::InstanceDown
        | EventKind::InstanceRestarting
        | EventKind::InstanceUnreachableCallback
        | EventKind::InstanceGone
        | EventKind::AgentCapChanged
        | EventKind::AgentRetired
        | EventKind::HoldChanged
        | EventKind::NodeStateChanged
        | EventKind::NodeWished
        | EventKind::NodeLink
        | EventKind::NodeDrift
        | EventKind::WorkerQueued
        | EventKind::WorkerStarting
        | EventKind::WorkerRunning
        | EventKind::WorkerRestarting
        | EventKind::WorkerExited
        | EventKind::WorkerLost
        | EventKind::WorkerUnknown
        | EventKind::WorkerDriven
        | EventKind::FleetAlarm
        | EventKind::PlaneStarted
        | EventKind::PlaneDraining => return None,
    };
    let execution_id = row.execution.as_ref()?.as_str();
    let run = row.run.as_ref().map(muster_wire::RunId::as_str);
    Some(Change {
        kind,
        execution_id,
        status: row.status.unwrap_or(Status::Running).for_sdk(),
        run_id: run,
        workflow_id: run,
        agent_node_id: row.agent.as_ref().map(muster_wire::AgentId::as_str),
        timestamp: Timestamp::rfc3339(row.at),
    })
}

#[cfg(test)]
mod tests {
    use muster_wire::ExecutionId;

    use super::*;

    fn row(kind: EventKind, status: Option<Status>) -> EventRow {
        EventRow {
            seq: 1,
            at: Timestamp(0),
            kind,
            execution: Some(ExecutionId::trusted("exec_1")),
            run: None,
            agent: None,
            function: None,
            instance: None,
            node: None,
            worker: None,
            attempt: None,
            status,
            reason: None,
            category: None,
            text: None,
        }
    }

    #[test]
    fn each_end_has_the_word_that_the_sdk_reads() {
        for (kind, status, want) in [
            (
                EventKind::ExecutionSucceeded,
                Status::Succeeded,
                "execution_completed",
            ),
            (
                EventKind::ExecutionFailed,
                Status::Failed,
                "execution_failed",
            ),
            (
                EventKind::ExecutionCancelled,
                Status::Cancelled,
                "execution_cancelled",
            ),
            (
                EventKind::ExecutionTimedOut,
                Status::Timeout,
                "execution_timeout",
            ),
        ] {
            let row = row(kind, Some(status));
            let change = change(&row).unwrap();
            assert_eq!((change.kind, change.status), (want, status.word()));
        }
        let paused = row(EventKind::ExecutionResent, Some(Status::Paused));
        assert_eq!(change(&paused).unwrap().status, "waiting");
    }

    #[test]
    fn other_events_are_not_told() {
        assert!(change(&row(EventKind::PlaneStarted, None)).is_none());
        assert!(change(&row(EventKind::ExecutionLateOutcome, None)).is_none());
        let mut of_nothing = row(EventKind::ExecutionStarted, None);
        of_nothing.execution = None;
        assert!(change(&of_nothing).is_none());
    }
}
