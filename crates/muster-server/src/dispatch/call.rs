//! One call to an agent, from its permit to the event that tells how it ended.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, header};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::capture_connection;
use muster_engine::Event;
use muster_engine::effect::Dispatch;
use muster_engine::event::{AttemptKey, Outcome};
use muster_engine::row::PayloadKind;
use muster_wire::{AttemptId, FunctionKind};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::answer::{self, Meaning};
use super::peer::{Body, Peer};
use super::{Dispatcher, IN_FLIGHT_MAX};
use crate::bodies::{NotRead, Patience, SMALL};
use crate::telemetry::Propagation;

const EXECUTION: HeaderName = HeaderName::from_static("x-execution-id");
const RUN: HeaderName = HeaderName::from_static("x-run-id");
const WORKFLOW: HeaderName = HeaderName::from_static("x-workflow-id");
const ROOT_WORKFLOW: HeaderName = HeaderName::from_static("x-root-workflow-id");
const PARENT: HeaderName = HeaderName::from_static("x-parent-execution-id");
const SESSION: HeaderName = HeaderName::from_static("x-session-id");
const ACTOR: HeaderName = HeaderName::from_static("x-actor-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const REPLAY_SOURCE: HeaderName = HeaderName::from_static("x-agentfield-replay-source-run-id");
const REPLAY_BEFORE: HeaderName =
    HeaderName::from_static("x-agentfield-replay-before-execution-id");
const REPLAY_MODE: HeaderName = HeaderName::from_static("x-agentfield-replay-mode");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("muster/", env!("CARGO_PKG_VERSION")));

/// After so long without an answer, a call whose connection stands counts as taken: an agent that
/// takes its time must not keep those waiting who could not be sent while it was away.
const TAKEN_AFTER: Duration = Duration::from_millis(500);

/// A dial that takes longer can be taken back: the usual one is over by then, and costs nothing.
const DIALLING_AFTER: Duration = Duration::from_millis(20);

/// How far an exchange came.
enum Far {
    /// Nothing was sent.
    NotSent(String),
    /// Something may have been sent.
    Broke(String),
    /// There is an answer.
    Answer(Box<Outcome>),
    /// It was told already: 202.
    Told,
    /// It was taken back before there was a connection.
    NeverSent,
}

/// A call that can be taken back, for as long as this lives.
struct Dialling<'a> {
    dispatcher: &'a Dispatcher,
    attempt: &'a AttemptKey,
    taken_back: Arc<Notify>,
}

impl Drop for Dialling<'_> {
    fn drop(&mut self) {
        self.dispatcher.0.dialling.remove(self.attempt);
    }
}

impl Dispatcher {
    pub(super) async fn call(&self, dispatch: Dispatch) {
        let attempt = dispatch.attempt.clone();
        let event = self.exchange(dispatch).await;
        self.forget_wanted_back(&attempt);
        let Some(event) = event else {
            return;
        };
        let event = match event {
            Event::Answered { attempt, outcome } => Event::Answered {
                outcome: Box::new(self.with_result_stored(&attempt, *outcome).await),
                attempt,
            },
            other => other,
        };
        tracing::trace!(execution.id = %attempt.execution, attempt = attempt.n, "an exchange ended");
        self.0.driver.tell(event);
    }

    /// The whole exchange; `None` when all was told or the work was disowned meanwhile.
    async fn exchange(&self, dispatch: Dispatch) -> Option<Event> {
        let attempt = dispatch.attempt.clone();
        let peer = match self.peer(&dispatch.to, &dispatch.base_url) {
            Ok(peer) => peer,
            Err(why) => return Some(not_sent(attempt, &why)),
        };
        let (_host, _flight) = self.permits(&peer.host).await?;
        // It may have waited, or a cancel or a pause may have overtaken it.
        if (self.0.ended)(attempt.execution.as_str()) {
            return None;
        }
        if self.is_wanted_back(&attempt) {
            return Some(Event::TakenBack { attempt });
        }
        let input = match self.input(&dispatch).await {
            Ok(input) => input,
            Err(why) => return Some(not_sent(attempt, &why)),
        };
        let request = match request(&peer, &dispatch, input, &self.0.traces) {
            Ok(request) => request,
            Err(why) => return Some(not_sent(attempt, &why)),
        };
        let sending = self.send(&peer, request, &attempt, dispatch.tell_when_taken);
        let far = tokio::time::timeout(dispatch.call_timeout, sending);
        Some(match far.await {
            Err(_) => Event::TimedOut { attempt },
            Ok(Far::Told) => return None,
            Ok(Far::NeverSent) if (self.0.ended)(attempt.execution.as_str()) => return None,
            Ok(Far::NeverSent) => Event::TakenBack { attempt },
            Ok(Far::NotSent(error)) => not_sent(attempt, &error),
            Ok(Far::Broke(error)) => Event::BrokeAfterSend {
                attempt,
                error: error.into(),
            },
            Ok(Far::Answer(outcome)) => Event::Answered { attempt, outcome },
        })
    }

    fn dialling<'a>(&'a self, attempt: &'a AttemptKey) -> Dialling<'a> {
        let taken_back = Arc::new(Notify::new());
        self.0.dialling.insert(attempt.clone(), taken_back.clone());
        Dialling {
            dispatcher: self,
            attempt,
            taken_back,
        }
    }

    /// Notes that a call is wanted back, wherever it is on its way.
    pub(super) fn wants_back(&self, attempt: AttemptKey) {
        let mut wanted = self.0.wanted_back.lock();
        if wanted.len() >= 2 * IN_FLIGHT_MAX {
            // What was over before it was wanted back is never forgotten one by one.
            wanted.clear();
        }
        wanted.insert(attempt.clone());
        self.0
            .wanted_back_count
            .store(wanted.len(), Ordering::Release);
        drop(wanted);
        self.take_back(&attempt);
    }

    fn is_wanted_back(&self, attempt: &AttemptKey) -> bool {
        self.0.wanted_back_count.load(Ordering::Acquire) > 0
            && self.0.wanted_back.lock().contains(attempt)
    }

    /// The exchange is over: it does not matter any more.
    fn forget_wanted_back(&self, attempt: &AttemptKey) {
        if self.0.wanted_back_count.load(Ordering::Acquire) > 0 {
            let mut wanted = self.0.wanted_back.lock();
            wanted.remove(attempt);
            self.0
                .wanted_back_count
                .store(wanted.len(), Ordering::Release);
        }
    }

    /// Takes a call back if no byte of it can have left.
    pub(super) fn take_back(&self, attempt: &AttemptKey) {
        if let Some(dialling) = self.0.dialling.get(attempt) {
            dialling.notify_one();
        }
    }

    /// A permit of the host, then one of all.
    async fn permits<'a>(
        &'a self,
        host: &'a Semaphore,
    ) -> Option<(SemaphorePermit<'a>, SemaphorePermit<'a>)> {
        let host = host.acquire().await.ok()?;
        let flight = self.0.flights.acquire().await.ok()?;
        Some((host, flight))
    }

    /// The input: at hand, or in the store.
    async fn input(&self, dispatch: &Dispatch) -> Result<Bytes, String> {
        if let Some(input) = &dispatch.input
            && !input.is_empty()
        {
            return Ok(input.0.clone());
        }
        if dispatch.input.is_some() {
            return Ok(Bytes::from_static(b"{}"));
        }
        let stores = self.0.stores.clone();
        let execution = dispatch.attempt.execution.clone();
        let read = move || stores.decisions.payload(&execution, PayloadKind::Input);
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(input)) => Ok(input.map_or_else(|| Bytes::from_static(b"{}"), |i| i.0)),
            Ok(Err(error)) => Err(format!("the input could not be read: {error}")),
            Err(error) => Err(format!("the input could not be read: {error}")),
        }
    }

    async fn send(
        &self,
        peer: &Arc<Peer>,
        mut request: Request<Body>,
        attempt: &AttemptKey,
        tell_when_taken: bool,
    ) -> Far {
        let capture = capture_connection(&mut request);
        let mut connection = capture.clone();
        let taken = async {
            tokio::time::sleep(TAKEN_AFTER).await;
            drop(connection.wait_for_connection_metadata().await);
            let attempt = attempt.clone();
            self.0.driver.tell(Event::Taken { attempt });
            std::future::pending::<Infallible>().await
        };
        let standing = capture.clone();
        let taken_back = async {
            tokio::time::sleep(DIALLING_AFTER).await;
            let dialling = self.dialling(attempt);
            // It may be wanted back since before it could be.
            if !(self.0.ended)(attempt.execution.as_str()) && !self.is_wanted_back(attempt) {
                dialling.taken_back.notified().await;
            }
            if standing.connection_metadata().is_some() {
                std::future::pending::<()>().await;
            }
        };
        let response = tokio::select! {
            response = peer.client.request(request) => response,
            () = taken_back => return Far::NeverSent,
            never = taken, if tell_when_taken => match never {},
        };
        let response = match response {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Far::NotSent(causes(&error)),
            Err(error) => return Far::Broke(causes(&error)),
        };
        let status = response.status();
        if status.is_server_error()
            && let Some(connection) = connection.connection_metadata().as_ref()
        {
            // Servers of agents close after an error of their own. The next call would be sent
            // into a connection that is about to break, and nobody could tell what became of it.
            connection.poison();
        }
        if self
            .0
            .config
            .agents
            .not_sent_status
            .contains(&status.as_u16())
        {
            return Far::NotSent(format!("the balancer answered {status}"));
        }
        if status == http::StatusCode::ACCEPTED {
            // The agent has it from here on; its body is read only to use the connection again.
            self.0.driver.tell(Event::Accepted {
                attempt: attempt.clone(),
            });
            let _ = self.body(response, SMALL).await;
            return Far::Told;
        }
        let body = match self.body(response, self.max_result()).await {
            Ok(body) => body,
            Err(outcome) => return Far::Answer(outcome),
        };
        match answer::meaning(status, body) {
            Meaning::Ended(outcome) => Far::Answer(outcome),
            Meaning::Accepted => Far::Told,
        }
    }

    /// The whole body of an answer, or the outcome of one that cannot be used.
    async fn body(
        &self,
        response: Response<Incoming>,
        limit: usize,
    ) -> Result<Bytes, Box<Outcome>> {
        let read = self
            .0
            .room
            .read(response.into_body(), limit, Patience::Callback);
        match read.await {
            Ok(held) => Ok(held.bytes),
            Err(NotRead::TooLarge(kept)) => Err(Box::new(answer::bad(
                format!("the agent's answer is over the limit of {limit} bytes"),
                &kept,
            ))),
            Err(NotRead::Cut(error)) => Err(Box::new(answer::bad(
                format!("the agent's answer was cut short: {error}"),
                b"",
            ))),
            Err(NotRead::NoRoom | NotRead::Slow) => Err(Box::new(answer::bad(
                "there was no room for the agent's answer",
                b"",
            ))),
        }
    }

    /// Stores a large result before the event that names it.
    async fn with_result_stored(&self, attempt: &AttemptKey, outcome: Outcome) -> Outcome {
        crate::payloads::store_result(&self.0.stores, &attempt.execution, outcome).await
    }
}

fn not_sent(attempt: AttemptKey, error: &str) -> Event {
    Event::DialFailed {
        attempt,
        error: error.into(),
    }
}

fn request(
    peer: &Peer,
    dispatch: &Dispatch,
    input: Bytes,
    traces: &Propagation,
) -> Result<Request<Body>, String> {
    let folder = match dispatch.kind {
        FunctionKind::Reasoner => "reasoners",
        FunctionKind::Skill => "skills",
    };
    let id = AttemptId {
        execution: dispatch.attempt.execution.clone(),
        n: dispatch.attempt.n,
        secret: dispatch.secret,
    };
    let mut request = Request::new(Body::new(input));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = peer.uri(&format!("/{folder}/{}", dispatch.function))?;
    let headers = request.headers_mut();
    headers.reserve(16);
    let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::USER_AGENT, AGENT);
    headers.insert(EXECUTION, value(&id.text())?);
    let run = value(dispatch.run.as_str())?;
    headers.insert(RUN, run.clone());
    headers.insert(ROOT_WORKFLOW, run.clone());
    headers.insert(WORKFLOW, run);
    if let Some(parent) = &dispatch.parent {
        headers.insert(PARENT, value(parent.as_str())?);
    }
    let optional = [(SESSION, &dispatch.session), (ACTOR, &dispatch.actor)];
    for (name, text) in optional {
        if let Some(text) = text {
            headers.insert(name, value(text)?);
        }
    }
    let (parent, state) = traces.outgoing(dispatch);
    for (name, value) in [(TRACEPARENT, parent), (TRACESTATE, state)] {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    if let Some(replay) = &dispatch.replay {
        headers.insert(REPLAY_SOURCE, value(replay.source.as_str())?);
        headers.insert(REPLAY_MODE, value(replay.mode.word())?);
        if let Some(before) = &replay.before {
            headers.insert(REPLAY_BEFORE, value(before.as_str())?);
        }
    }
    if let Some(token) = &peer.token {
        headers.insert(header::AUTHORIZATION, token.clone());
    }
    Ok(request)
}

/// An error with its causes, shortest useful text.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    if text.is_empty() {
        text = error.to_string();
    }
    text
}
