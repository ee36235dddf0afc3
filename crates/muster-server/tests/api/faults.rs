//! A store that fails: callers are parked, not lost; one bad event harms itself only.

use std::sync::Arc;

use muster_engine::Write;
use muster_store::{Fault, Store};
use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_passing_refusal_parks_its_callers_until_the_store_takes_it() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    store.faults().next(Fault::Full, 4);
    let answer = plane.call("a.echo", json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_unknown_end_nothing_is_lost_and_nothing_happens_twice() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    for (n, fault) in [Fault::UnknownKept, Fault::UnknownLost, Fault::UnknownLate]
        .into_iter()
        .enumerate()
    {
        store.faults().next(fault, 1);
        let answer = plane.call("a.echo", json!({"n": n})).await;
        assert_eq!(answer.status, 200, "{fault:?}: {}", answer.json());
        assert!(
            !store.settle(),
            "a late commit of an old epoch must not be taken"
        );
        assert_eq!(agent.seen().len(), n + 1, "{fault:?}: sent once");
    }
    let list = plane.client.get("/api/v1/executions").await.json();
    assert_eq!(list["count"], 3, "{list}");
    let events = store.events(0, 1000).unwrap();
    let dense = events.windows(2).all(|two| two[1].seq == two[0].seq + 1);
    assert!(dense, "the sequence has no holes");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_event_is_set_aside_and_its_neighbours_go_on() {
    let plane = Arc::new(TestPlane::start().await);
    let agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    let held = {
        let plane = plane.clone();
        tokio::spawn(async move { plane.call("a.never", json!({})).await })
    };
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    store.faults().poison(
        |write| matches!(write, Write::InsertExecution(row) if row.function.as_str() == "fail"),
    );
    let calls: Vec<_> = (0..40)
        .map(|n| {
            let plane = plane.clone();
            let function = if n == 20 { "a.fail" } else { "a.echo" };
            tokio::spawn(async move { plane.call(function, json!({"n": n})).await })
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        let answer = call.await.unwrap();
        if n == 20 {
            let body = answer.is_problem(500, "internal_error");
            assert!(
                body["message"].as_str().unwrap().contains("quar_"),
                "{body}"
            );
        } else {
            assert_eq!(answer.status, 200, "{n}: {}", answer.json());
        }
    }
    store.faults().clear();
    assert_eq!(store.quarantine(10).unwrap().len(), 1);
    // The caller who was parked before the engine was restored is still answered.
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": "after all"});
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
    let answer = held.await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["result"]),
        (200, &json!("after all"))
    );
    let vitals = plane.running.app.driver.vitals();
    assert_eq!(vitals.quarantined, 1);
    assert!(vitals.restored >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_store_makes_batches_larger_and_loses_nothing() {
    let plane = Arc::new(TestPlane::start().await);
    let _agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    let before = store.faults().committed();
    store.faults().slow(std::time::Duration::from_millis(20));
    let calls: Vec<_> = (0..60)
        .map(|n| {
            let plane = plane.clone();
            tokio::spawn(async move { plane.submit("a.accept", json!({"n": n})).await })
        })
        .collect();
    for call in calls {
        let id = call.await.unwrap();
        assert_eq!(plane.end_of(&id).await["status"], "succeeded");
    }
    let commits = store.faults().committed() - before;
    assert!(
        commits < 120,
        "{commits} commits for 60 executions of at least 2 each"
    );
    eventually("nobody waits", || async {
        (plane.running.app.driver.vitals().waiters == 0).then_some(())
    })
    .await;
}
