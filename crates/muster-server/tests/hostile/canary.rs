//! A canary in every body: it may come back to whoever is shown that very payload, and stands
//! nowhere else. Not in logs of any level, not in metrics, not in the answers to others.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::routes;
use crate::support::World;
use crate::support::agent::Agent;

/// No id can have this form, so nothing may be tempted to log it as one.
const CANARY: &str = "canary /7f3a9c/ canary";

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Captured {
    type Writer = Self;
    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Bodies that carry the canary and are taken, and some that are not.
fn bodies() -> Vec<Value> {
    let c = CANARY;
    vec![
        json!({ "input": { "say": c, c: c }, "webhook": { "url": c, "secret": c }, "context": c }),
        json!({ "input": c, "key": c, "data": c, "message": c, "tags": [c], "reason": c, "status": c }),
        json!({ "key": "k", "data": { c: c }, "scope": "global" }),
        json!({ "message": c, "tags": [c], "timestamp": 1.5, "agent_node_id": "sane" }),
        json!({ "entries": [{ "level": "info", "message": c, "attributes": { "a": c }, "source": c, "event_type": "log.info" }] }),
        json!({ "status": "failed", "error": c, "error_details": { "a": c }, "result": c, "status_reason": c }),
        json!({ "execution_id": "exec_c", "run_id": "run_c", "reasoner_id": "r", "agent_node_id": "sane", "status": "failed",
                "error": c, "input_data": { "a": c }, "result": c }),
        json!({ "name": c, "scopes": [c], "principal": c }),
        json!([c, { c: c }]),
        json!(c),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payloads_never_enter_logs_metrics_or_the_answers_to_others() {
    let captured = Captured::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(captured.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber)
        .expect("the only subscriber of this process");
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    let canary = json!({ "input": { "say": CANARY } });
    for function in ["echo", "fail"] {
        for lane in ["execute", "execute/async"] {
            let answer = world
                .as_owner("POST", &format!("/api/v1/{lane}/sane.{function}"), &canary)
                .await;
            assert!(
                [200, 202, 502].contains(&answer.status),
                "{} {}",
                answer.status,
                answer.text()
            );
        }
    }
    let mut refusals = Vec::new();
    for route in routes::all(&world)
        .await
        .iter()
        .filter(|route| route.method != "GET")
    {
        for target in ["sane.echo", routes::VICTIM, "exec_c"] {
            for body in bodies() {
                let answer = world
                    .as_owner(&route.method, &route.filled(target), &body)
                    .await;
                if answer.status >= 400 {
                    refusals.push((route.clone(), answer));
                }
            }
        }
    }
    for (route, answer) in &refusals {
        // What an agent said of its own failure is told to its caller.
        if answer.category() != "agent_error" {
            assert!(
                !answer.text().contains(CANARY),
                "{route:?}: {}",
                answer.text()
            );
        }
    }
    for path in [
        "/metrics",
        "/api/v1/health",
        "/api/v1/system",
        "/api/v1/events?after=AAAAAAAAAAAAAAAA",
        "/api/v1/executions",
        "/api/v1/executions/none",
    ] {
        let answer = world
            .send(
                "GET",
                path,
                &[("X-API-Key", &world.owner), ("Accept", "application/json")],
                b"",
            )
            .await;
        if path != "/api/v1/executions" {
            assert!(!answer.text().contains(CANARY), "{path}: {}", answer.text());
        }
    }
    routes::still_works(&world, &agent).await;
    world.plane.stop().await;
    let logs = String::from_utf8_lossy(&captured.0.lock().unwrap()).into_owned();
    assert!(logs.contains("owner key"), "the logs were captured");
    let line = logs.lines().find(|line| line.contains("7f3a9c"));
    assert_eq!(line, None);
    assert!(!logs.contains(&world.owner), "a key is never logged");
}
