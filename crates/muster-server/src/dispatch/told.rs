//! Telling an agent what was decided: posted to where it wanted to be told, tried again until it
//! is taken or time is up. Its executions are named by the attempt, which is what it knows.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use muster_engine::Event;
use muster_engine::effect::TellApproval;
use muster_engine::event::InstanceKey;
use muster_wire::{AttemptId, Decision, InstanceId, Timestamp};

use super::Dispatcher;
use super::peer::{Body, Peer};
use super::tell::{NoAnswer, Small};
use crate::api::write::Writer;

/// The first wait between two tries; it doubles.
const WAIT_FIRST: Duration = Duration::from_millis(250);
/// The longest one.
const WAIT_MAX: Duration = Duration::from_secs(8);
/// How much of an answer is kept.
const SAID_MAX: usize = 200;

const SIGNATURE: HeaderName = HeaderName::from_static("x-hax-signature");

/// Where an address, the second, is called, if it is one that an agent registered.
type Registered = Box<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;
/// The signature of a message, at a moment.
type Sign = Box<dyn Fn(&[u8], Timestamp) -> Option<String> + Send + Sync>;

/// Whether and how an agent may be told somewhere, and the way to nodes.
pub struct Tellers {
    /// Where an address that this agent registered is called.
    pub registered: Registered,
    /// The signature of a message of ours.
    pub sign: Sign,
    /// Carries what goes to nodes.
    pub nodes: super::FleetSender,
    /// Dials what is not registered, by the rules of webhooks.
    pub outside: super::Connector,
}

impl Dispatcher {
    pub(super) async fn tell_approval(&self, tell: TellApproval) {
        let told = self.try_to_tell(&tell).await;
        if let Err(why) = &told {
            tracing::warn!(
                execution.id = %tell.attempt.execution, agent.id = %tell.agent, error = %why,
                "an agent could not be told of a decision"
            );
        }
        self.0.driver.tell(Event::ApprovalTold {
            execution: tell.attempt.execution,
            request: tell.approval.request,
            told,
        });
    }

    async fn try_to_tell(&self, tell: &TellApproval) -> Result<Arc<str>, Arc<str>> {
        let url = tell.approval.callback_url.as_deref().unwrap_or_default();
        let uri: Uri = url
            .parse()
            .map_err(|_| Arc::from("callback_url is no address"))?;
        let body = message(tell);
        let now = Timestamp::wall_clock();
        let patience = tell.until.since(now).max(super::tell::PATIENCE);
        let give_up = tokio::time::Instant::now() + patience;
        let mut wait = WAIT_FIRST;
        loop {
            // Its processes may have come and gone meanwhile.
            let (peer, at) = self.peer_at(tell, url);
            let mut request = Request::new(Body::new(body.clone()));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = at.unwrap_or_else(|| uri.clone());
            let headers = request.headers_mut();
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            let signed = (self.0.tellers.sign)(&body, Timestamp::wall_clock());
            if let Some(value) = signed.and_then(|text| HeaderValue::try_from(text).ok()) {
                headers.insert(SIGNATURE, value);
            }
            let why = match self.small(&peer, request).await {
                Ok(answer) if answer.status.is_success() => return Ok(said(&answer)),
                Ok(answer) if is_final(answer.status) => {
                    return Err(format!("it answered {}", answer.status).into());
                }
                Ok(answer) => format!("it answered {}", answer.status),
                Err(NoAnswer::Refused(why) | NoAnswer::Silent(why)) => why,
            };
            if tokio::time::Instant::now() + wait >= give_up {
                return Err(cut(&why).into());
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    /// A client of the address, and where it is called: the agent's own processes by the rules of
    /// agents, all else by those of webhooks, and shown no token.
    fn peer_at(&self, tell: &TellApproval, url: &str) -> (Peer, Option<Uri>) {
        let host = Arc::new(tokio::sync::Semaphore::new(1));
        if let Some(at) = (self.0.tellers.registered)(tell.agent.as_str(), url) {
            let key = InstanceKey {
                agent: tell.agent.clone(),
                instance: InstanceId::trusted("any"),
            };
            let (uri, token) = (at.parse().ok(), self.token(&key));
            let peer = Peer::new(at.into(), self.0.connector.clone(), host, token);
            return (peer, uri);
        }
        let outside = self.0.tellers.outside.clone();
        (Peer::new(url.into(), outside, host, None), None)
    }
}

/// A refusal that trying again does not change.
fn is_final(status: http::StatusCode) -> bool {
    status.is_client_error()
        && status != http::StatusCode::REQUEST_TIMEOUT
        && status != http::StatusCode::TOO_MANY_REQUESTS
}

fn message(tell: &TellApproval) -> Bytes {
    let approval = &tell.approval;
    let id = AttemptId {
        execution: tell.attempt.execution.clone(),
        n: tell.attempt.n,
        secret: tell.secret,
    };
    let mut writer = Writer::object();
    writer
        .text("execution_id", &id.text())
        .text("approval_request_id", &approval.request)
        .text_if("decision", approval.decision.map(Decision::word))
        .bytes_if("feedback", approval.feedback.as_ref())
        .text("new_status", tell.status.for_sdk())
        .time_if("responded_at", approval.decided_at);
    if let Some(response) = &approval.response {
        writer.raw("response", &response.0);
    }
    writer.end().into()
}

/// What the agent did with it, from its own words.
fn said(answer: &Small) -> Arc<str> {
    #[derive(serde::Deserialize)]
    struct Said {
        resolved: Option<bool>,
    }
    match serde_json::from_slice::<Said>(&answer.body) {
        Ok(Said {
            resolved: Some(true),
        }) => "told: its code goes on".into(),
        Ok(Said {
            resolved: Some(false),
        }) => "told: nobody waited for it there".into(),
        _ => "told".into(),
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(SAID_MAX))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
