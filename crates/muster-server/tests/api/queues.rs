//! Queues from the caller's side: order, positions, estimates, overrides, and that a run with
//! very many calls does not starve another one's.

use muster_server::config::Agent;
use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

async fn queue(plane: &TestPlane, agent: &str) -> Value {
    let answer = plane.client.get(&format!("/api/v1/queues/{agent}")).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

/// Submits a call of a run of its own, or of a named one; what was answered.
async fn submit(plane: &TestPlane, run: &str, body: &Value) -> Value {
    let headers = [("x-run-id", run)];
    let path = "/api/v1/execute/async/a.gate";
    let answer = plane
        .client
        .send(http::Method::POST, path, &headers, body.to_string())
        .await;
    assert_eq!(answer.status, 202, "{}", answer.json());
    answer.json()
}

/// Opens the gate until so many calls came. A call may come to the gate just after it opened.
async fn let_through(agent: &FakeAgent, seen: usize) {
    eventually(&format!("{seen} calls"), || async {
        agent.open_gate();
        (agent.seen().len() >= seen).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_says_who_runs_who_waits_and_since_when() {
    let plane = TestPlane::with(|c| {
        c.admission.max_concurrent_per_agent = 7;
        let own = Agent {
            max_concurrent: Some(1),
            ..Agent::default()
        };
        c.agents.by_id.insert("a".into(), own);
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let _other = FakeAgent::start(&plane, "b").await;
    assert_eq!(queue(&plane, "b").await["cap"], 7);
    for n in 0..3 {
        submit(&plane, &format!("run_{n}"), &json!({})).await;
    }
    agent.until_seen(1).await;
    let now = queue(&plane, "a").await;
    for (name, want) in [
        ("cap", json!(1)),
        ("running", json!(1)),
        ("over_cap", json!(0)),
        ("queued", json!(2)),
        ("waiting_callers", json!(0)),
        ("absorbed", json!(0)),
        ("held", json!(false)),
        ("starts_per_minute", Value::Null),
        ("starts_in_ms", Value::Null),
    ] {
        assert_eq!(now[name], want, "{name}: {now}");
    }
    assert!(now["oldest_queued_at"].is_string(), "{now}");
    let all = plane.client.get("/api/v1/queues").await.json();
    assert_eq!(all["queues"].as_array().unwrap().len(), 2);
    for (name, value) in all["queues"][0].as_object().unwrap() {
        assert_eq!(*value, now[name], "{name}");
    }
    assert_eq!(now["held_by"]["cause"], "agent_full", "{now}");
    let entries = now["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    for (n, entry) in entries.iter().enumerate() {
        assert_eq!(entry["position"], n as u64 + 1);
        assert_eq!(entry["run_id"], format!("run_{}", n + 1));
        assert_eq!(entry["starts_in_ms"], Value::Null, "no rate yet");
    }
    assert_eq!(now["more"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_are_exact_and_classes_go_first() {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let agent = FakeAgent::start(&plane, "a").await;
    submit(&plane, "run_0", &json!({})).await;
    agent.until_seen(1).await;
    for n in 0..5 {
        let answer = submit(&plane, "run_1", &json!({})).await;
        assert_eq!(answer["queue_position"], n, "{answer}");
        assert_eq!(answer["queue_position_exact"], true);
        assert_eq!(answer["starts_in_ms"], Value::Null, "no rate yet");
    }
    let other = submit(&plane, "run_2", &json!({})).await;
    assert_eq!(other["queue_position"], 1, "runs take turns: {other}");
    let urgent = submit(&plane, "run_3", &json!({"priority": 0})).await;
    assert_eq!(urgent["queue_position"], 0, "{urgent}");
    for n in 2..8 {
        let_through(&agent, n).await;
    }
    let answer = submit(&plane, "run_4", &json!({})).await;
    assert!(
        answer["starts_in_ms"].is_u64(),
        "there is a rate now: {answer}"
    );
    assert!(queue(&plane, "a").await["starts_per_minute"].is_number());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_ten_thousand_calls_does_not_starve_another_ones() {
    const MANY: usize = 10_000;
    let plane = TestPlane::with(|c| {
        c.admission.max_concurrent_per_agent = 1;
        c.admission.queue_capacity = 20_000;
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    submit(&plane, "run_many", &json!({})).await;
    agent.until_seen(1).await;
    // As fast as the plane takes them: so many at a time.
    for _ in 0..MANY / 100 {
        let body = json!({});
        let some = (0..100).map(|_| submit(&plane, "run_many", &body));
        futures_util::future::join_all(some).await;
    }
    assert_eq!(queue(&plane, "a").await["queued"], MANY);
    let other = submit(&plane, "run_one", &json!({"input": {"who": "one"}})).await;
    let id = other["execution_id"].as_str().unwrap();
    assert!(other["queue_position"].as_u64().unwrap() <= 1, "{other}");
    for n in 2..4 {
        let_through(&agent, n).await;
    }
    let seen = agent.seen();
    let started = seen
        .iter()
        .position(|r| r.header("x-execution-id").starts_with(id));
    assert!(
        started.is_some_and(|at| at <= 2),
        "it started as {started:?}"
    );
    eventually("it is running", || async {
        let shown = plane.execution(id).await;
        (shown["status"] != "queued").then_some(())
    })
    .await;
}
