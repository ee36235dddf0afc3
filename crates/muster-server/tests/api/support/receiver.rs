//! A receiver of webhooks: remembers what it got, and answers as its path says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::eventually;

/// One message as it came.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Message {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }
    /// Whether both signatures are those of this secret.
    pub(crate) fn is_signed_with(&self, secret: &str, key: &[u8]) -> bool {
        let sign = |key: &[u8], text: &[u8]| {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
            mac.update(text);
            mac.finalize().into_bytes().to_vec()
        };
        let (id, at) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let signed = [id.as_bytes(), b".", at.as_bytes(), b".", &self.bytes[..]].concat();
        let ours = format!("v1,{}", STANDARD.encode(sign(key, &signed)));
        let hex: String = sign(secret.as_bytes(), &self.bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.header("webhook-signature") == ours
            && self.header("x-agentfield-signature") == format!("sha256={hex}")
    }
}

#[derive(Clone, Default)]
struct Inner {
    seen: Arc<Mutex<Vec<Message>>>,
    well: Arc<AtomicBool>,
    at_once: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

pub(crate) struct Receiver {
    pub(crate) port: u16,
    inner: Inner,
    server: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Inner::default();
        let router = Router::new()
            .route("/{how}", post(take))
            .with_state(inner.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            port,
            inner,
            server,
        }
    }

    pub(crate) fn url(&self, how: &str) -> String {
        format!("http://127.0.0.1:{}/{how}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Message> {
        self.inner.seen.lock().clone()
    }

    /// Waits until so many messages came.
    pub(crate) async fn until(&self, count: usize) -> Vec<Message> {
        eventually(&format!("{count} messages"), || async {
            let seen = self.seen();
            (seen.len() >= count).then_some(seen)
        })
        .await
    }

    /// From now on `/flaky` takes messages.
    pub(crate) fn get_well(&self) {
        self.inner.well.store(true, Ordering::SeqCst);
    }

    pub(crate) fn most_at_once(&self) -> usize {
        self.inner.most.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn take(
    State(inner): State<Inner>,
    Path(how): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    let now = inner.at_once.fetch_add(1, Ordering::SeqCst) + 1;
    inner.most.fetch_max(now, Ordering::SeqCst);
    inner.seen.lock().push(Message {
        path: how.clone(),
        headers,
        bytes,
    });
    let answer = match how.as_str() {
        "flaky" if !inner.well.load(Ordering::SeqCst) => {
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        "gone" => StatusCode::GONE.into_response(),
        "bad" => StatusCode::BAD_REQUEST.into_response(),
        "redirect" => (StatusCode::FOUND, [("location", "/ok")]).into_response(),
        "slow" => {
            tokio::time::sleep(std::time::Duration::from_secs(20)).await;
            StatusCode::OK.into_response()
        }
        "short" => {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            StatusCode::OK.into_response()
        }
        _ => (StatusCode::OK, "thank you").into_response(),
    };
    inner.at_once.fetch_sub(1, Ordering::SeqCst);
    answer
}
