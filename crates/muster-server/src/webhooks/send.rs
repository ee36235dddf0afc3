//! One exchange with a receiver: within its time, without redirects, its answer's body ignored.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::Webhook;
use crate::config::WebhookRules;
use crate::dispatch::address::DialRules;
use crate::dispatch::connect::Connector;

/// How long a connection is kept for the next message.
const IDLE: Duration = Duration::from_secs(15);
/// How much of an answer's body is read, so that its connection can be used again.
const BODY_MAX: usize = 16 * 1024;
/// The longest wait that a receiver may ask for.
const RETRY_AFTER_MAX: u64 = 3_600;

/// What came of sending a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It was taken.
    Taken(u16),
    /// It was not.
    Refused(Refused),
}

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The answer's status, if there was one.
    pub(super) status: Option<u16>,
    /// A sentence.
    pub(super) error: String,
    /// The receiver wants no more of it.
    pub(super) gone: bool,
    /// It is about the receiver, not about this message.
    pub(super) of_target: bool,
    /// How long the receiver asks to wait.
    pub(super) retry_after: Option<Duration>,
}

/// Sends messages.
#[derive(Clone)]
pub(super) struct Sender {
    client: Client<Connector, Full<Bytes>>,
    timeout: Duration,
}

impl Sender {
    pub(super) fn new(rules: &WebhookRules, dial: DialRules) -> Self {
        let timeout = rules.timeout.0;
        Self {
            client: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .build(Connector::new(dial, timeout)),
            timeout,
        }
    }

    pub(super) async fn send(
        &self,
        webhook: &Webhook,
        headers: http::HeaderMap,
        body: Bytes,
    ) -> Sent {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = webhook.url.parse().unwrap_or_default();
        *request.headers_mut() = headers;
        if !request.headers().contains_key(header::USER_AGENT) {
            request
                .headers_mut()
                .insert(header::USER_AGENT, crate::dispatch::agent_name());
        }
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| {
                let error = crate::dispatch::causes(&error);
                broken(error)
            })?;
            let sent = judge(&answer);
            // Whatever it says, only that it ended matters: then the connection is free again.
            let _ = Limited::new(answer.into_body(), BODY_MAX).collect().await;
            Ok(sent)
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(refused)) => Sent::Refused(refused),
            Err(_) => Sent::Refused(broken(format!("no answer within {:?}", self.timeout))),
        }
    }
}

fn broken(error: String) -> Refused {
    Refused {
        status: None,
        error,
        gone: false,
        of_target: true,
        retry_after: None,
    }
}

/// Whether an answer speaks for the whole receiver. A 500 is one handler's: others behind the same
/// address may be fine.
fn is_of_target(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

fn judge(answer: &Response<Incoming>) -> Sent {
    let status = answer.status();
    if status.is_success() {
        return Sent::Taken(status.as_u16());
    }
    let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let wait = answer.headers().get(header::RETRY_AFTER);
    let seconds = wait.and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
    Sent::Refused(Refused {
        status: Some(status.as_u16()),
        error: if status.is_redirection() {
            format!("it answered {status}; redirects are not followed")
        } else {
            format!("it answered {status}")
        },
        gone: status == StatusCode::GONE,
        of_target: is_of_target(status),
        retry_after: seconds
            .filter(|_| busy)
            .map(|seconds| Duration::from_secs(seconds.min(RETRY_AFTER_MAX))),
    })
}
