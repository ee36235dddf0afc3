//! A shutdown in stages: nothing acknowledged is lost, whoever is held is answered.

use std::sync::Arc;
use std::time::Duration;

use muster_server::Config;
use muster_server::config::{Agent, Span, SpanOrOff};
use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_held_caller_is_told_that_it_goes_on_and_new_work_is_refused() {
    let plane = TestPlane::with(|c| {
        c.server.shutdown_timeout = Span(Duration::from_millis(700));
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    let client = plane.client.clone();
    let held = {
        let client = client.clone();
        tokio::spawn(async move {
            client
                .post("/api/v1/execute/a.never", &json!({"input": {}}))
                .await
        })
    };
    agent.until_seen(1).await;
    let stopping = tokio::spawn(plane.running.stop());
    eventually("new work is refused", || async {
        let answer = client
            .post("/api/v1/execute/async/a.echo", &json!({}))
            .await;
        (answer.status == 503).then(|| answer.is_problem(503, "control_plane_shutdown"))
    })
    .await;
    let body = held.await.unwrap().is_problem(504, "still_running");
    let id = body["execution_id"].as_str().unwrap();
    stopping.await.unwrap();
    let plane = TestPlane::again(&store, |_| {}).await;
    assert_eq!(plane.execution(id).await["status"], "running", "it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn callbacks_are_taken_to_the_end() {
    let plane = Arc::new(
        TestPlane::with(|c| c.server.shutdown_timeout = Span(Duration::from_secs(10))).await,
    );
    let agent = FakeAgent::start(&plane, "a").await;
    let caller = {
        let plane = plane.clone();
        tokio::spawn(async move { plane.call("a.never", json!({})).await })
    };
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let client = plane.client.clone();
    plane
        .running
        .app
        .driver
        .tell(muster_engine::Event::Draining);
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": "in time"});
    assert_eq!(client.post(&path, &said).await.status, 200);
    let answer = caller.await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["result"]),
        (200, &json!("in time"))
    );
}

/// Requests that arrive in the middle of a shutdown, on both lanes: each is accepted and kept, or
/// refused with the time to come again and without a row.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_arrives_in_the_middle_is_kept_or_refused_without_a_row() {
    let plane = TestPlane::with(|c| {
        c.server.shutdown_timeout = Span(Duration::from_secs(2));
    })
    .await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    let client = plane.client.clone();
    // What answers are held against is made ready first, so that the load is a load.
    let mut kept = Vec::new();
    for path in ["a.accept", "async/a.accept", "a.b.c"] {
        let path = format!("/api/v1/execute/{path}");
        let answer = client.post(&path, &serde_json::json!({"input": {}})).await;
        kept.extend(answer.json()["execution_id"].as_str().map(str::to_owned));
    }
    let callers: Vec<_> = (0..12)
        .map(|n| {
            let client = client.clone();
            let lane = if n % 2 == 0 { "" } else { "async/" };
            tokio::spawn(async move {
                let (mut kept, mut refused) = (Vec::new(), 0);
                let path = format!("/api/v1/execute/{lane}a.accept");
                // Until the plane is gone: a submission that gets no answer may have been taken.
                while let Ok(answer) = client
                    .try_send(http::Method::POST, &path, &[], "{\"input\":{}}")
                    .await
                {
                    if answer.status == 503 {
                        let body = answer.is_problem(503, "control_plane_shutdown");
                        assert_eq!(body["retry_after"], 1, "{body}");
                        assert!(body.get("execution_id").is_none(), "{body}");
                        refused += 1;
                    } else {
                        let body = answer.json();
                        assert!(answer.status.is_success(), "{body}");
                        kept.push(body["execution_id"].as_str().unwrap().to_owned());
                    }
                }
                (kept, refused)
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let stopping = tokio::spawn(plane.running.stop());
    let mut refused = 0;
    let unanswered = callers.len();
    for caller in callers {
        let (more, often) = caller.await.unwrap();
        kept.extend(more);
        refused += often;
    }
    stopping.await.unwrap();
    assert!(
        kept.len() > 12 && refused > 12,
        "too little load to prove anything"
    );
    let plane = TestPlane::again(&store, |_| {}).await;
    for id in &kept {
        assert_eq!(plane.end_of(id).await["status"], "succeeded");
    }
    let mut rows = 0;
    let mut path = "/api/v1/executions?limit=1000".to_owned();
    loop {
        let list = plane.client.get(&path).await.json();
        rows += list["executions"].as_array().unwrap().len();
        match list["next_cursor"].as_str() {
            Some(next) => path = format!("/api/v1/executions?limit=1000&cursor={next}"),
            None => break,
        }
    }
    assert!(
        (kept.len()..=kept.len() + unanswered).contains(&rows),
        "{} kept, {rows} rows: a refused one left a row",
        kept.len()
    );
}

/// At the end of the time everybody who is still held is answered, by how far the call came.
#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_of_the_time_everybody_who_is_held_is_answered() {
    let change = |c: &mut Config| {
        c.server.shutdown_timeout = Span(Duration::from_millis(800));
        c.agents.restart_grace = SpanOrOff(Some(Duration::from_secs(30)));
        let full = Agent {
            max_concurrent: Some(1),
            ..Agent::default()
        };
        c.agents.by_id.insert("full".into(), full);
    };
    let plane = TestPlane::with(change).await;
    let sent = FakeAgent::start(&plane, "sent").await;
    let full = FakeAgent::start(&plane, "full").await;
    let gone = FakeAgent::start(&plane, "gone").await;
    gone.beat(&plane).await;
    gone.kill().await;
    let store = plane.memory.clone().unwrap();
    let client = plane.client.clone();
    let call = |target: &'static str| {
        let client = client.clone();
        let path = format!("/api/v1/execute/{target}");
        tokio::spawn(async move { client.post(&path, &json!({"input": {}})).await })
    };
    let accepted = call("sent.never");
    let in_flight = call("sent.gate");
    let skill = call("sent.hold");
    sent.until_seen(3).await;
    let occupied = plane.submit("full.never", json!({})).await;
    full.until_seen(1).await;
    let queued = plane.submit("full.echo", json!({})).await;
    let place = call("full.echo");
    let absorbed = call("gone.echo");
    eventually("all are where they should be", || async {
        let state = plane.client.get("/api/v1/queues").await.json().to_string();
        let list = client.get("/api/v1/executions?limit=100").await.json();
        let waits = list.to_string().contains("awaiting_agent_restart");
        (waits && state.contains("\"waiting_callers\":1")).then_some(())
    })
    .await;
    plane.running.stop().await;

    let mut goes_on = Vec::new();
    for caller in [accepted, in_flight] {
        let body = caller.await.unwrap().is_problem(504, "still_running");
        goes_on.push(body["execution_id"].as_str().unwrap().to_owned());
    }
    let body = skill.await.unwrap().is_problem(502, "outcome_unknown");
    let unknown = body["execution_id"].as_str().unwrap().to_owned();
    let body = absorbed
        .await
        .unwrap()
        .is_problem(503, "control_plane_shutdown");
    let never_sent = body["execution_id"].as_str().unwrap().to_owned();
    let body = place
        .await
        .unwrap()
        .is_problem(503, "control_plane_shutdown");
    assert!(body.get("execution_id").is_none(), "{body}");

    let plane = TestPlane::again(&store, change).await;
    for id in goes_on.iter().chain([&occupied]) {
        assert_eq!(plane.execution(id).await["status"], "running");
    }
    assert_eq!(plane.execution(&queued).await["status"], "queued");
    for (id, category) in [
        (&unknown, "outcome_unknown"),
        (&never_sent, "control_plane_shutdown"),
    ] {
        let stored = plane.execution(id).await;
        assert_eq!(
            (&stored["status"], &stored["error_category"]),
            (&json!("failed"), &json!(category)),
            "{stored}"
        );
    }
    assert_eq!(full.seen().len(), 1, "queued stays queued");
}
