//! A small agent: skills that answer with what they were sent, fail, or hold on to the call.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::World;

/// A running agent. It ends when it is dropped.
pub(crate) struct Agent {
    /// Its id.
    pub(crate) id: String,
    /// How often it was called.
    pub(crate) calls: Arc<AtomicU64>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Agent {
    /// Starts one with the skills `echo` and `fail`, and registers it.
    pub(crate) async fn start(world: &World, id: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let calls = Arc::new(AtomicU64::new(0));
        let (name, counted) = (id.to_owned(), calls.clone());
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (name, counted) = (name.clone(), counted.clone());
                tokio::spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        answer(request, name.clone(), counted.clone())
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        let agent = Self {
            id: id.to_owned(),
            calls,
            address,
            serving,
        };
        agent.register(world).await;
        agent
    }

    async fn register(&self, world: &World) {
        let schema = json!({ "type": "object", "properties": {} });
        let skill = |id: &str| json!({ "id": id, "input_schema": schema, "tags": [] });
        let body = json!({
            "id": self.id,
            "base_url": format!("http://{}", self.address),
            "version": "1.0.0",
            "instance_id": format!("{}-one", self.id),
            "reasoners": [],
            "skills": [skill("echo"), skill("fail")],
            "lifecycle_status": "ready",
        });
        let answer = world
            .as_owner("POST", "/api/v1/nodes/register", &body)
            .await;
        assert!(
            answer.status == 200 || answer.status == 201,
            "{} {}",
            answer.status,
            answer.text()
        );
        let beat = format!("/api/v1/nodes/{}/heartbeat", self.id);
        let body = json!({ "status": "ready", "instance_id": format!("{}-one", self.id) });
        assert_eq!(world.as_owner("POST", &beat, &body).await.status, 200);
    }

    /// How often it was called so far.
    pub(crate) fn called(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

async fn answer(
    request: Request<Incoming>,
    name: String,
    calls: Arc<AtomicU64>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request
        .into_body()
        .collect()
        .await
        .map(|b| b.to_bytes())
        .unwrap_or_default();
    let (status, body) = match path.as_str() {
        "/health" => (
            200,
            json!({ "status": "healthy", "node_id": name })
                .to_string()
                .into(),
        ),
        "/skills/echo" => {
            calls.fetch_add(1, Ordering::SeqCst);
            (200, body)
        }
        "/skills/fail" => {
            calls.fetch_add(1, Ordering::SeqCst);
            let said: Value = serde_json::from_slice(&body).unwrap_or_default();
            (500, json!({ "error": said["say"] }).to_string().into())
        }
        _ => (404, Bytes::from_static(b"{\"detail\":\"Not Found\"}")),
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Full::new(body))
        .expect("a response");
    Ok(response)
}
