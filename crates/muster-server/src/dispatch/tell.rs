//! The small exchanges: telling an agent of a cancel, dialling an address, probing `/health`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Limited};
use muster_engine::Event;
use muster_engine::effect::TellCancel;
use muster_engine::event::{CancelReceipt, InstanceKey, Probe};
use muster_wire::{AttemptId, FunctionKind, Timestamp};

use super::Dispatcher;
use super::call::{AGENT, causes};
use super::peer::{Body, Peer};

/// How long each of these exchanges may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Waits between the tries to tell an agent of a cancel.
const TELL_WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// The largest answer that is read.
const ANSWER_MAX: usize = 64 * 1024;

/// An answer to a small exchange.
pub(super) struct Small {
    pub(super) status: http::StatusCode,
    pub(super) body: Bytes,
}

/// Why there is none.
pub(super) enum NoAnswer {
    /// Nobody took the connection.
    Refused(String),
    /// It was taken, and no answer came.
    Silent(String),
}

impl Dispatcher {
    pub(super) async fn tell_cancel(&self, tell: TellCancel) {
        self.take_back(&tell.attempt);
        let receipt = if tell.kind == FunctionKind::Skill {
            CancelReceipt::StillRunning("a skill cannot be stopped".into())
        } else {
            self.tell_reasoner(&tell).await
        };
        self.0.driver.tell(Event::CancelTold {
            attempt: tell.attempt,
            receipt,
        });
    }

    async fn tell_reasoner(&self, tell: &TellCancel) -> CancelReceipt {
        let peer = match self.peer(&tell.to, &tell.base_url) {
            Ok(peer) => peer,
            Err(why) => return CancelReceipt::NotTold(why.into()),
        };
        let mut waits = TELL_WAITS.iter();
        loop {
            let why = match self.tell_once(&peer, tell).await {
                Ok(receipt) => return receipt,
                Err(NoAnswer::Refused(why) | NoAnswer::Silent(why)) => why,
            };
            match waits.next() {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => return CancelReceipt::NotTold(why.into()),
            }
        }
    }

    async fn tell_once(&self, peer: &Peer, tell: &TellCancel) -> Result<CancelReceipt, NoAnswer> {
        let id = AttemptId {
            execution: tell.attempt.execution.clone(),
            n: tell.attempt.n,
            secret: tell.secret,
        }
        .text();
        let body = serde_json::json!({
            "execution_id": id,
            "workflow_id": tell.run,
            "reason": &*tell.reason,
            "emitted_at": Timestamp::wall_clock().rfc3339(),
        });
        let path = format!("/_internal/executions/{id}/cancel");
        let mut request = Request::new(Body::new(body.to_string().into()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = peer.uri(&path).map_err(NoAnswer::Silent)?;
        let headers = request.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(
            "x-agentfield-source",
            HeaderValue::from_static("cancel-dispatcher"),
        );
        for (name, text) in [
            ("x-execution-id", &*id),
            ("x-workflow-id", tell.run.as_str()),
        ] {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        }
        let answer = self.small(peer, request).await?;
        Ok(receipt(&answer))
    }

    pub(super) async fn dial(&self, key: InstanceKey, base_url: Arc<str>, after: Duration) {
        tokio::time::sleep(after).await;
        let error: Option<Arc<str>> = match base_url.parse() {
            Ok(uri) => match self.0.connector.knock(&uri).await {
                Ok(()) => None,
                Err(error) => Some(error.to_string().into()),
            },
            Err(_) => Some("the base URL is no address".into()),
        };
        self.0.driver.tell(Event::Dialled {
            key,
            base_url,
            error,
        });
    }

    pub(super) async fn probe(&self, key: InstanceKey, base_url: Arc<str>) {
        let Ok(_permit) = self.0.probes.acquire().await else {
            return;
        };
        let seen = match self.ask_health(&key, &base_url).await {
            Ok(answer) => seen(&key, &answer),
            Err(NoAnswer::Refused(why)) => Probe::Refused(why.into()),
            Err(NoAnswer::Silent(why)) => Probe::Silent(why.into()),
        };
        self.0.driver.tell(Event::Probed { key, seen });
    }

    /// Asks at one address after another whether it is this agent that answers there.
    pub(super) async fn seek(&self, key: InstanceKey, at: Vec<Arc<str>>) {
        let mut found = None;
        for base_url in at {
            let Ok(_permit) = self.0.probes.acquire().await else {
                return;
            };
            let peer = self.stranger(&base_url);
            let answer = self.ask_peer(&peer).await;
            if answer.is_ok_and(|answer| seen(&key, &answer) == Probe::Alive) {
                found = Some(base_url);
                break;
            }
        }
        self.0.driver.tell(Event::Sought { key, found });
    }

    async fn ask_health(&self, key: &InstanceKey, base_url: &Arc<str>) -> Result<Small, NoAnswer> {
        let peer = self.peer(key, base_url).map_err(NoAnswer::Silent)?;
        self.ask_peer(&peer).await
    }

    async fn ask_peer(&self, peer: &Peer) -> Result<Small, NoAnswer> {
        let mut request = Request::new(Body::default());
        *request.uri_mut() = peer.uri("/health").map_err(NoAnswer::Silent)?;
        self.small(peer, request).await
    }

    pub(super) async fn small(
        &self,
        peer: &Peer,
        mut request: Request<Body>,
    ) -> Result<Small, NoAnswer> {
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, AGENT);
        if let Some(token) = &peer.token {
            headers.insert(header::AUTHORIZATION, token.clone());
        }
        let exchange = async {
            let response = peer.client.request(request).await.map_err(|error| {
                let why = causes(&error);
                if error.is_connect() {
                    NoAnswer::Refused(why)
                } else {
                    NoAnswer::Silent(why)
                }
            })?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_MAX)
                .collect()
                .await;
            let body = body.map_err(|error| NoAnswer::Silent(error.to_string()))?;
            Ok(Small {
                status,
                body: body.to_bytes(),
            })
        };
        tokio::time::timeout(PATIENCE, exchange)
            .await
            .unwrap_or_else(|_| Err(NoAnswer::Silent(format!("no answer within {PATIENCE:?}"))))
    }
}

fn receipt(answer: &Small) -> CancelReceipt {
    if answer.status == http::StatusCode::NOT_FOUND {
        return CancelReceipt::StillRunning("the agent has no route for cancels".into());
    }
    if !answer.status.is_success() {
        return CancelReceipt::NotTold(format!("the agent answered {}", answer.status).into());
    }
    #[derive(serde::Deserialize)]
    struct Said {
        #[serde(default)]
        cancelled: bool,
    }
    match serde_json::from_slice::<Said>(&answer.body) {
        Ok(Said { cancelled: true }) => CancelReceipt::Stopped,
        Ok(Said { cancelled: false }) => CancelReceipt::NotActive,
        Err(_) => CancelReceipt::StillRunning("the agent's answer says nothing of it".into()),
    }
}

fn seen(key: &InstanceKey, answer: &Small) -> Probe {
    #[derive(serde::Deserialize)]
    struct Said {
        node_id: Option<String>,
    }
    let said = serde_json::from_slice::<Said>(&answer.body).ok();
    match said.and_then(|said| said.node_id) {
        Some(id) if id == key.agent.as_str() && answer.status.is_success() => Probe::Alive,
        Some(id) if id == key.agent.as_str() => {
            Probe::Silent(format!("/health answered {}", answer.status).into())
        }
        Some(id) => Probe::SomebodyElse(id.chars().take(128).collect::<String>().into()),
        // Who says no name has not shown to be somebody else.
        None => {
            Probe::Silent(format!("/health answered {} without a node_id", answer.status).into())
        }
    }
}
