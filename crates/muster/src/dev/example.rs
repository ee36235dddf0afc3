//! The example agent that `muster dev` runs as a process of its own. It speaks the same wire as
//! a published SDK: registers, beats, answers 202 and calls back, says goodbye and drains. Knows
//! nothing of the plane but its HTTP API.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use muster_wire::{Category, Timestamp};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::ExampleAgent;
use crate::client::{Client, encode};
use crate::commands::server::Stop;
use crate::failure::{Failure, Outcome};
use crate::out;

const BEAT: Duration = Duration::from_secs(2);
const DRAIN: Duration = Duration::from_secs(5);
/// A callback is tried again while the plane is away.
const CALLBACK_TRIES: u32 = 5;

#[derive(Clone)]
struct Agent(Arc<Inner>);

struct Inner {
    id: String,
    version: String,
    instance: String,
    plane: Client,
    working: TaskTracker,
    cancels: Mutex<HashMap<String, CancellationToken>>,
}

/// Runs until SIGTERM or SIGINT.
pub(crate) async fn run(args: ExampleAgent) -> Outcome<u8> {
    let server = std::env::var("AGENTFIELD_SERVER").map_err(|_| {
        Failure::new(Category::Validation, "AGENTFIELD_SERVER is not set")
            .hint("`muster dev` runs this agent by itself")
    })?;
    let key = std::env::var("AGENTFIELD_API_KEY").ok();
    let version = match &args.version_file {
        Some(path) => std::fs::read_to_string(path)?.trim().to_owned(),
        None => "1.0.0".to_owned(),
    };
    let mut stop = Stop::listen()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let agent = Agent(Arc::new(Inner {
        id: args.id,
        version,
        instance: muster_wire::id::mint("hello"),
        plane: Client::new(&server, key)?,
        working: TaskTracker::new(),
        cancels: Mutex::default(),
    }));
    let service = Router::new()
        .route("/health", get(health))
        .route("/reasoners/{function}", post(called))
        .route("/_internal/executions/{id}/cancel", post(cancel))
        .with_state(agent.clone());
    let closing = CancellationToken::new();
    let serving = tokio::spawn({
        let closing = closing.clone();
        async move {
            axum::serve(listener, service)
                .with_graceful_shutdown(closing.cancelled_owned())
                .await
        }
    });
    let beating = tokio::spawn(keep_registered(agent.clone(), base_url.clone()));
    out::data(&format!("{} listens on {base_url}", agent.0.id));

    stop.next().await;
    beating.abort();
    let goodbye = json!({"reason": "signal", "timeout_seconds": DRAIN.as_secs_f64()});
    let path = format!("/api/v1/nodes/{}/shutdown", encode(&agent.0.id));
    // The plane may be gone first: then there is nobody to say goodbye to.
    let _ = tokio::time::timeout(DRAIN, agent.0.plane.post(&path, &goodbye)).await;
    closing.cancel();
    agent.0.working.close();
    let _ = tokio::time::timeout(DRAIN, agent.0.working.wait()).await;
    serving.abort();
    Ok(0)
}

/// Registers, beats, and registers again when the plane does not know it any more.
async fn keep_registered(agent: Agent, base_url: String) {
    let beat_path = format!("/api/v1/nodes/{}/heartbeat", encode(&agent.0.id));
    let mut lifecycle = "starting";
    let mut told = false;
    loop {
        let body = registration(&agent, &base_url, lifecycle);
        match agent.0.plane.post("/api/v1/nodes/register", &body).await {
            Ok(_) => told = false,
            Err(failure) => {
                if !told {
                    out::talk(&format!(
                        "cannot register: {}; trying on",
                        failure.body.message
                    ));
                    told = true;
                }
                tokio::time::sleep(BEAT).await;
                continue;
            }
        }
        lifecycle = "degraded";
        loop {
            let beat = json!({
                "status": "ready",
                "version": agent.0.version,
                "instance_id": agent.0.instance,
                "timestamp": Timestamp::wall_clock().rfc3339(),
            });
            if agent.0.plane.post(&beat_path, &beat).await.is_err() {
                break;
            }
            tokio::time::sleep(BEAT).await;
        }
        tokio::time::sleep(BEAT).await;
    }
}

fn registration(agent: &Agent, base_url: &str, lifecycle: &str) -> Value {
    json!({
        "id": agent.0.id,
        "team_id": "default",
        "base_url": base_url,
        "version": agent.0.version,
        "instance_id": agent.0.instance,
        "lifecycle_status": lifecycle,
        "health_status": "healthy",
        "communication_config": {"protocols": ["http"], "heartbeat_interval": "2s"},
        "reasoners": [
            {
                "id": "greet",
                "description": "Greets somebody by name.",
                "input_schema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                },
                "output_schema": {"type": "object", "properties": {"greeting": {"type": "string"}}},
            },
            {
                "id": "countdown",
                "description": "Counts down a step every 300 ms and can be cancelled.",
                "input_schema": {
                    "type": "object",
                    "properties": {"from": {"type": "integer", "minimum": 0, "maximum": 1000}},
                },
                "output_schema": {"type": "object", "properties": {"counted": {"type": "integer"}}},
            },
        ],
        "skills": [],
        "metadata": {"custom": {"description": "The example agent of muster dev."}},
    })
}

async fn health(State(agent): State<Agent>) -> Json<Value> {
    Json(json!({
        "status": "healthy",
        "node_id": agent.0.id,
        "version": agent.0.version,
        "timestamp": Timestamp::wall_clock().rfc3339(),
    }))
}

/// Takes a call: at once when nobody can be called back, else 202 and a callback.
async fn called(
    State(agent): State<Agent>,
    Path(function): Path<String>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> (StatusCode, Json<Value>) {
    let input: Value = match serde_json::from_slice(&body) {
        Ok(input) => input,
        Err(error) => {
            return (
                StatusCode::BAD_REQUEST,
                Json(json!({"detail": error.to_string()})),
            );
        }
    };
    let Some(work) = Work::read(&function, &input) else {
        return match function.as_str() {
            "greet" | "countdown" => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Json(
                    json!({"detail": "greet wants {\"name\": text}, countdown {\"from\": 0 to 1000}"}),
                ),
            ),
            _ => (StatusCode::NOT_FOUND, Json(json!({"detail": "Not Found"}))),
        };
    };
    let attempt = headers
        .get("x-execution-id")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let Some(attempt) = attempt else {
        let ended = work.run(&CancellationToken::new()).await;
        return (StatusCode::OK, Json(ended.unwrap_or(Value::Null)));
    };
    let cancelled = CancellationToken::new();
    agent
        .0
        .cancels
        .lock()
        .await
        .insert(attempt.clone(), cancelled.clone());
    let answer = json!({"status": "processing", "execution_id": attempt});
    agent.0.working.spawn({
        let agent = agent.clone();
        async move { agent.work(attempt, work, cancelled).await }
    });
    (StatusCode::ACCEPTED, Json(answer))
}

async fn cancel(State(agent): State<Agent>, Path(id): Path<String>) -> Json<Value> {
    let known = agent.0.cancels.lock().await.remove(&id);
    if let Some(token) = &known {
        token.cancel();
    }
    match known {
        Some(_) => Json(json!({"cancelled": true, "execution_id": id})),
        None => {
            Json(json!({"cancelled": false, "execution_id": id, "reason": "execution_not_active"}))
        }
    }
}

/// A call with its input, checked.
enum Work {
    Greet(String),
    Countdown(u64),
}

impl Work {
    fn read(function: &str, input: &Value) -> Option<Self> {
        match function {
            "greet" => Some(Work::Greet(input.get("name")?.as_str()?.to_owned())),
            "countdown" => match input.get("from") {
                None => Some(Work::Countdown(3)),
                Some(from) => Some(Work::Countdown(from.as_u64().filter(|n| *n <= 1000)?)),
            },
            _ => None,
        }
    }

    /// `None` when it was cancelled.
    async fn run(self, cancelled: &CancellationToken) -> Option<Value> {
        match self {
            Work::Greet(name) => Some(json!({"greeting": format!("Hello, {name}")})),
            Work::Countdown(from) => {
                for _ in 0..from {
                    tokio::select! {
                        () = cancelled.cancelled() => return None,
                        () = tokio::time::sleep(Duration::from_millis(300)) => {}
                    }
                }
                Some(json!({"counted": from}))
            }
        }
    }
}

impl Agent {
    /// Does the work and calls back.
    async fn work(&self, attempt: String, work: Work, cancelled: CancellationToken) {
        let began = Instant::now();
        let ended = work.run(&cancelled).await;
        self.0.cancels.lock().await.remove(&attempt);
        let mut body = json!({
            "execution_id": attempt,
            "duration_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            "completed_at": Timestamp::wall_clock().rfc3339(),
        });
        match ended {
            Some(result) => {
                body["status"] = json!("succeeded");
                body["result"] = result;
            }
            None => {
                body["status"] = json!("cancelled");
                body["error"] = json!("cancelled by the plane");
            }
        }
        let path = format!("/api/v1/executions/{}/status", encode(&attempt));
        for tried in 0..CALLBACK_TRIES {
            match self.0.plane.post(&path, &body).await {
                Ok(_) => return,
                // Anything but "try again" is the plane's last word.
                Err(failure) if !is_passing(&failure) => return,
                Err(_) => tokio::time::sleep(Duration::from_millis(250 << tried)).await,
            }
        }
    }
}

fn is_passing(failure: &Failure) -> bool {
    failure.body.error_category.http_status() >= 500
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_checked_before_they_are_taken() {
        assert!(Work::read("greet", &json!({"name": "world"})).is_some());
        assert!(Work::read("countdown", &json!({})).is_some());
        for (function, input) in [
            ("greet", json!({})),
            ("greet", json!({"name": 1})),
            ("greet", json!([])),
            ("countdown", json!({"from": -1})),
            ("countdown", json!({"from": 1001})),
            ("countdown", json!({"from": "three"})),
            ("nothing", json!({})),
        ] {
            assert!(Work::read(function, &input).is_none(), "{function} {input}");
        }
    }

    #[tokio::test]
    async fn a_countdown_ends_when_it_is_cancelled() {
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        assert_eq!(Work::Countdown(1000).run(&cancelled).await, None);
        assert_eq!(
            Work::Greet("you".into()).run(&cancelled).await,
            Some(json!({"greeting": "Hello, you"}))
        );
    }
}
