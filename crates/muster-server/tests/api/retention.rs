//! What goes with time, from the caller's side: payloads alone, events under a reader, whole
//! runs for want of room.

use std::time::Duration;

use muster_server::config::{Size, Span, SpanOrOff};
use muster_store::Retention;
use muster_wire::Timestamp;
use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

fn nothing() -> Retention {
    let start = Timestamp(i64::MIN);
    Retention {
        executions_before: start,
        payloads_before: start,
        events_before: start,
        memory_events_before: start,
        webhooks_before: start,
        keys_before: start,
        logs_before: start,
        audit_before: start,
        quarantine_before: start,
        instances_before: start,
        workers_before: start,
    }
}

/// Retires as the duty does, now.
fn retire(plane: &TestPlane, cut: Retention) {
    let store = plane.running.app.stores.decisions.clone();
    while store.retire(&cut, 1_000).unwrap() > 0 {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_retention_removed_is_410_and_its_row_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let small = plane.submit("a.echo", json!({"n": 1})).await;
    let large = plane.submit("a.large", json!({})).await;
    let open = plane.submit("a.never", json!({"n": 2})).await;
    for id in [&small, &large] {
        let whole = plane.end_of(id).await;
        assert!(whole.get("result_removed").is_none(), "{whole}");
    }
    // What a plane keeps in memory of recent ends is not what the store has.
    plane.running.stop().await;
    let plane = TestPlane::sqlite(directory.path()).await;
    let store = plane.running.app.stores.decisions.clone();
    store.collect_leftovers(Timestamp::NEVER, 100).unwrap();
    let cut = Retention {
        payloads_before: Timestamp(i64::MAX - 1),
        ..nothing()
    };
    retire(&plane, cut);
    for id in [&small, &large] {
        let whole = plane.execution(id).await;
        assert_eq!(whole["result_removed"], true, "{whole}");
        assert_eq!(whole["result"], json!(null), "{whole}");
        for kind in ["input", "result"] {
            let path = format!("/api/v1/executions/{id}/payload/{kind}");
            let answer = plane.client.get(&path).await;
            let body = answer.is_problem(410, "not_found");
            assert!(
                body["message"]
                    .as_str()
                    .unwrap()
                    .contains("retention.payloads"),
                "{body}"
            );
        }
    }
    let path = format!("/api/v1/executions/{open}/payload/input");
    assert_eq!(plane.client.get(&path).await.json(), json!({"n": 2}));
    let path = format!("/api/v1/executions/{open}/payload/result");
    plane.client.get(&path).await.is_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_older_than_retention_is_reset_to_the_oldest_event() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let page = |query: String| {
        let client = plane.client.clone();
        async move {
            let accept = [("accept", "application/json")];
            let path = format!("/api/v1/events?{query}");
            client
                .send(http::Method::GET, &path, &accept, "")
                .await
                .json()
        }
    };
    let first = page("limit=1".into()).await;
    let cursor = first["next_cursor"].as_str().unwrap().to_owned();
    assert!(first.get("reset").is_none(), "{first}");
    for n in 0..3 {
        plane.call("a.echo", json!({"n": n})).await;
    }
    retire(
        &plane,
        Retention {
            events_before: Timestamp::NEVER,
            ..nothing()
        },
    );
    let after = page(format!("cursor={cursor}")).await;
    assert_eq!(after["reset"], true, "{after}");
    let kept = after["events"].as_array().unwrap();
    assert_eq!(kept.len(), 1, "the newest stays: {after}");
    let again = page(format!("cursor={}", after["next_cursor"].as_str().unwrap())).await;
    assert!(again.get("reset").is_none(), "{again}");
    assert_eq!(again["events"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_larger_than_it_may_be_gives_up_its_oldest_finished_runs() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let open = plane.submit("a.never", json!({})).await;
    let pad = "x".repeat(40_000);
    let mut ids = Vec::new();
    for n in 0..30 {
        ids.push(plane.submit("a.echo", json!({"n": n, "pad": pad})).await);
    }
    for id in &ids {
        plane.end_of(id).await;
    }
    let store = plane.running.app.stores.decisions.clone();
    let used = |store: &dyn muster_store::Store| -> u64 {
        let sizes = store.sizes().unwrap();
        sizes
            .kinds
            .iter()
            .filter(|(kind, _)| *kind != "wal")
            .map(|(_, bytes)| bytes)
            .sum()
    };
    let before = used(&*store);
    drop(store);
    plane.running.stop().await;
    let plane = TestPlane::sqlite_with(directory.path(), |config| {
        config.retention.max_store = Some(Size(before / 2));
        config.retention.executions = Span(Duration::from_secs(86_400));
        config.retention.payloads = SpanOrOff::OFF;
    })
    .await;
    plane.running.app.make_room().await.unwrap();
    let store = plane.running.app.stores.decisions.clone();
    assert!(used(&*store) <= before / 2);
    let found = |id: String| {
        let client = plane.client.clone();
        async move { client.get(&format!("/api/v1/executions/{id}")).await.status == 200 }
    };
    assert!(!found(ids[0].clone()).await, "the oldest goes");
    assert!(found(open).await, "what is open stays");
    eventually("health answers with sizes", || async {
        let health = plane.client.get("/api/v1/health").await.json();
        health["store"]["bytes"]["decisions"].as_u64().map(|_| ())
    })
    .await;
}
