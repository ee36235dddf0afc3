//! An agent whose functions do what their names say, and which remembers what it was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use super::{Client, TestPlane, eventually, nested};

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

#[derive(Clone)]
struct Inner {
    id: Arc<str>,
    plane: Client,
    seen: Arc<Mutex<Vec<Request>>>,
    cancels: Arc<Mutex<Vec<String>>>,
    told: Arc<Mutex<Vec<Request>>>,
    refuses: Arc<AtomicUsize>,
    gate: Arc<Notify>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

pub(crate) struct FakeAgent {
    pub(crate) id: String,
    pub(crate) port: u16,
    pub(crate) instance: String,
    inner: Inner,
    server: JoinHandle<()>,
}

const REASONERS: &[&str] = &[
    "echo", "accept", "never", "gate", "boom", "teapot", "invalid", "redirect", "html", "empty",
    "usage", "large", "toolarge", "early", "fail", "numbers", "sleepy", "strict", "race", "relay",
    "recurse", "bill",
];

impl FakeAgent {
    /// Starts and registers.
    pub(crate) async fn start(plane: &TestPlane, id: &str) -> Self {
        Self::instance(plane, id, "instance-1", 0).await
    }

    /// An instance of an agent on a port; 0 is any.
    pub(crate) async fn instance(plane: &TestPlane, id: &str, instance: &str, port: u16) -> Self {
        let agent = Self::listen(&plane.client, id, instance, port).await;
        agent.register(plane).await;
        agent
    }

    /// Listens without registering.
    pub(crate) async fn listen(plane: &Client, id: &str, instance: &str, port: u16) -> Self {
        let listener = eventually("the port is free", || async {
            TcpListener::bind(("127.0.0.1", port)).await.ok()
        })
        .await;
        let port = listener.local_addr().unwrap().port();
        let inner = Inner {
            id: id.into(),
            plane: plane.clone(),
            seen: Arc::default(),
            cancels: Arc::default(),
            told: Arc::default(),
            refuses: Arc::default(),
            gate: Arc::default(),
            running: Arc::default(),
            most: Arc::default(),
        };
        let router = Router::new()
            .route("/reasoners/{name}", post(call))
            .route("/skills/{name}", post(call))
            .route("/_internal/executions/{id}/cancel", post(cancel))
            .route("/webhooks/approval", post(approval))
            .route("/health", get(health))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(inner.clone());
        let server = tokio::spawn(serve(listener, router));
        Self {
            id: id.to_owned(),
            port,
            instance: instance.to_owned(),
            inner,
            server,
        }
    }

    pub(crate) fn registration(&self) -> Value {
        let reasoners: Vec<Value> = REASONERS
            .iter()
            .map(|name| {
                let required: &[&str] = if *name == "strict" { &["count"] } else { &[] };
                json!({"id": name, "tags": [], "input_schema": {
                    "type": "object", "required": required,
                    "properties": {"count": {"type": "integer", "minimum": 0}},
                }})
            })
            .collect();
        json!({
            "id": self.id, "base_url": format!("http://127.0.0.1:{}", self.port),
            "version": "1.0.0", "instance_id": self.instance, "lifecycle_status": "starting",
            "reasoners": reasoners, "skills": [{"id": "add"}, {"id": "hold"}],
        })
    }

    pub(crate) async fn register(&self, plane: &TestPlane) {
        let answer = plane
            .client
            .post("/api/v1/nodes/register", &self.registration())
            .await;
        assert_eq!(answer.status, 201, "{}", answer.json());
    }

    pub(crate) async fn beat(&self, plane: &TestPlane) -> u16 {
        let path = format!("/api/v1/nodes/{}/heartbeat", self.id);
        let body = json!({"status": "ready", "instance_id": self.instance});
        plane.client.post(&path, &body).await.status.as_u16()
    }

    /// Stops listening, as a killed process does.
    pub(crate) async fn kill(self) -> u16 {
        self.server.abort();
        eventually("the agent is gone", || async {
            self.server.is_finished().then_some(())
        })
        .await;
        self.port
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.inner.seen.lock().clone()
    }

    pub(crate) fn cancels(&self) -> Vec<String> {
        self.inner.cancels.lock().clone()
    }

    /// What it was told of decisions.
    pub(crate) fn told(&self) -> Vec<Value> {
        let told = self.inner.told.lock();
        told.iter()
            .map(|request| serde_json::from_slice(&request.body).unwrap())
            .collect()
    }

    /// The signatures of what it was told.
    pub(crate) fn told_signatures(&self) -> Vec<String> {
        let told = self.inner.told.lock();
        let signed = told.iter().map(|request| request.header("x-hax-signature"));
        signed.map(str::to_owned).collect()
    }

    /// From now on it wants to hear of no decision.
    pub(crate) fn refuse_to_be_told(&self) {
        self.inner.refuses.store(1, Ordering::SeqCst);
    }

    /// The most calls that ran at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.inner.most.load(Ordering::SeqCst)
    }

    /// Lets every call that waits at the gate go on.
    pub(crate) fn open_gate(&self) {
        self.inner.gate.notify_waiters();
    }

    /// Waits until so many requests came.
    pub(crate) async fn until_seen(&self, count: usize) -> Vec<Request> {
        eventually(&format!("{count} requests"), || async {
            let seen = self.seen();
            (seen.len() >= count).then_some(seen)
        })
        .await
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Serves until it is aborted; its connections go with it.
async fn serve(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = TowerToHyperService::new(router.clone());
        let http = hyper::server::conn::http1::Builder::new();
        connections.spawn(async move {
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn health(State(agent): State<Inner>) -> Response {
    axum::Json(json!({"status": "healthy", "node_id": &*agent.id})).into_response()
}

async fn cancel(State(agent): State<Inner>, Path(id): Path<String>) -> Response {
    agent.cancels.lock().push(id.clone());
    agent.gate.notify_waiters();
    axum::Json(json!({"cancelled": true, "execution_id": id})).into_response()
}

async fn approval(
    State(agent): State<Inner>,
    uri: axum::http::Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if agent.refuses.load(Ordering::SeqCst) > 0 {
        return StatusCode::GONE.into_response();
    }
    agent.told.lock().push(Request {
        path: uri.path().to_owned(),
        headers,
        body,
    });
    axum::Json(json!({"status": "received", "resolved": true})).into_response()
}

async fn call(
    State(agent): State<Inner>,
    uri: axum::http::Uri,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    agent.seen.lock().push(Request {
        path: uri.path().to_owned(),
        headers: headers.clone(),
        body: body.clone(),
    });
    let id = headers["x-execution-id"].to_str().unwrap().to_owned();
    let now = agent.running.fetch_add(1, Ordering::SeqCst) + 1;
    agent.most.fetch_max(now, Ordering::SeqCst);
    let run = headers["x-run-id"].to_str().unwrap();
    let answer = answer(&agent, &name, &id, run, body).await;
    agent.running.fetch_sub(1, Ordering::SeqCst);
    answer
}

async fn answer(agent: &Inner, name: &str, id: &str, run: &str, body: Bytes) -> Response {
    let json_answer = |status: u16, text: &'static str| {
        let status = StatusCode::from_u16(status).unwrap();
        (status, [("content-type", "application/json")], text).into_response()
    };
    let large = |bytes: usize| {
        let text = format!("\"{}\"", "x".repeat(bytes));
        ([("content-type", "application/json")], text).into_response()
    };
    match name {
        "echo" | "strict" => ([("content-type", "application/json")], body).into_response(),
        "add" => json_answer(200, "5"),
        "accept" => later(
            agent,
            id,
            json!({"status": "succeeded", "result": {"ok": true}}),
        ),
        "fail" => later(
            agent,
            id,
            json!({"status": "failed", "error": "kaput", "error_details": {"why": 1}, "error_status_code": 404}),
        ),
        "early" => {
            let said = json!({"status": "succeeded", "result": "early"});
            report(agent, id, &said).await;
            json_answer(202, "{\"status\":\"processing\"}")
        }
        "never" => json_answer(202, "{\"status\":\"processing\"}"),
        "race" => {
            let said = |n: u32| json!({"status": "succeeded", "result": n});
            let (one, two) = (said(1), said(2));
            tokio::join!(report(agent, id, &one), report(agent, id, &two));
            json_answer(202, "{\"status\":\"processing\"}")
        }
        "relay" => nested::relay(&agent.id, &agent.plane, id, run, &body).await,
        "recurse" => nested::recurse(&agent.id, &agent.plane, id, run, &body).await,
        "gate" | "hold" => {
            agent.gate.notified().await;
            json_answer(200, "\"through\"")
        }
        "sleepy" => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            json_answer(200, "\"late\"")
        }
        "boom" => (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response(),
        "teapot" => json_answer(418, "{\"error\":\"short and stout\"}"),
        "invalid" => json_answer(422, "{\"detail\":\"field required\"}"),
        "redirect" => (StatusCode::FOUND, [("location", "http://127.0.0.1:1/")]).into_response(),
        "html" => ([("content-type", "text/html")], "<html>").into_response(),
        "empty" => StatusCode::NO_CONTENT.into_response(),
        "usage" => json_answer(
            200,
            r#"{"x":1.50,"__agentfield_usage__":{"total_tokens":3}}"#,
        ),
        // Reports as usage what it was given.
        "bill" => {
            let input = String::from_utf8_lossy(&body);
            let answer = format!(r#"{{"__agentfield_usage__":{input}}}"#);
            (
                StatusCode::OK,
                [("content-type", "application/json")],
                answer,
            )
                .into_response()
        }
        "numbers" => json_answer(200, "[1e400,123456789012345678901234567890,0.10]"),
        "large" => large(300 * 1024),
        "toolarge" => large(2 * 1024 * 1024),
        other => (StatusCode::NOT_FOUND, Body::from(other.to_owned())).into_response(),
    }
}

/// Answers 202 and calls back.
fn later(agent: &Inner, id: &str, said: Value) -> Response {
    let (agent, id) = (agent.clone(), id.to_owned());
    tokio::spawn(async move { report(&agent, &id, &said).await });
    (
        StatusCode::ACCEPTED,
        axum::Json(json!({"status": "processing"})),
    )
        .into_response()
}

async fn report(agent: &Inner, id: &str, said: &Value) {
    let path = format!("/api/v1/executions/{id}/status");
    let answer = agent.plane.post(&path, said).await;
    assert!(
        answer.status.is_success() || answer.status == 409,
        "{}",
        answer.json()
    );
}
