//! An agent that takes every call with 202 and never calls back by itself: tests do, with the
//! attempt's id that it got.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::world::World;

/// What the agent was called with.
#[derive(Debug)]
pub(crate) struct Call {
    /// The attempt's id, secret included.
    pub(crate) attempt: String,
    /// The run.
    pub(crate) run: String,
}

impl Call {
    /// The execution's id.
    pub(crate) fn execution(&self) -> &str {
        self.attempt.split('~').next().unwrap()
    }
}

pub(crate) struct Agent {
    pub(crate) id: String,
    calls: Arc<Mutex<UnboundedReceiver<Call>>>,
}

impl Agent {
    /// Listens, and registers with one reasoner `work` and one skill `add`.
    pub(crate) async fn start(world: &World, id: &str) -> Self {
        Self::start_as(world, id, &[]).await
    }

    pub(crate) async fn start_as(world: &World, id: &str, headers: &[(&str, &str)]) -> Self {
        let (sender, calls) = unbounded_channel::<Call>();
        let node = id.to_owned();
        let service =
            Router::new()
                .route("/reasoners/{name}", post(take))
                .route("/skills/{name}", post(take))
                .route(
                    "/health",
                    get(move || async move {
                        axum::Json(json!({ "status": "healthy", "node_id": node }))
                    }),
                )
                .with_state(sender);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, service).await });
        world
            .post(
                "/api/v1/nodes/register",
                headers,
                registration(id, &format!("http://{address}")),
            )
            .await
            .is(201);
        let beat = format!("/api/v1/nodes/{id}/heartbeat");
        world
            .post(
                &beat,
                headers,
                json!({ "status": "ready", "instance_id": format!("{id}-1") }),
            )
            .await
            .is(200);
        Self {
            id: id.to_owned(),
            calls: Arc::new(Mutex::new(calls)),
        }
    }

    /// Calls `work` through the plane and waits until it arrived here.
    pub(crate) async fn call(&self, world: &World, headers: &[(&str, &str)]) -> Call {
        let path = format!("/api/v1/execute/async/{}.work", self.id);
        world
            .post(&path, headers, json!({ "input": {} }))
            .await
            .is(202);
        self.next().await
    }

    pub(crate) async fn next(&self) -> Call {
        tokio::time::timeout(crate::world::PATIENCE, self.calls.lock().await.recv())
            .await
            .expect("a call in time")
            .expect("the agent serves")
    }

    /// Ends an execution by a callback.
    pub(crate) async fn succeed(&self, world: &World, call: &Call, result: Value) {
        let path = format!("/api/v1/executions/{}/status", call.attempt);
        let body = json!({ "status": "succeeded", "result": result });
        world.post(&path, &[], body).await.is(200);
    }
}

async fn take(State(sender): State<UnboundedSender<Call>>, headers: HeaderMap) -> StatusCode {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let _ = sender.send(Call {
        attempt: text("x-execution-id"),
        run: text("x-run-id"),
    });
    StatusCode::ACCEPTED
}

/// A registration as the SDK sends it, but for what does not matter here.
pub(crate) fn registration(id: &str, base_url: &str) -> Value {
    json!({
        "id": id,
        "team_id": "default",
        "base_url": base_url,
        "version": "1.2.3",
        "instance_id": format!("{id}-1"),
        "lifecycle_status": "starting",
        "proposed_tags": [format!("team-{id}")],
        "reasoners": [{
            "id": "work",
            "description": "Works <hard> & long",
            "tags": ["heavy"],
            "proposed_tags": ["heavy"],
            "input_schema": { "type": "object", "properties": { "n": { "maximum": 12345678901234567890123456789_u128.to_string() } } },
            "output_schema": { "type": "object" },
        }],
        "skills": [{ "id": "add", "tags": ["light"], "input_schema": { "type": "object" } }],
    })
}
