//! Webhooks from the caller's and the receiver's side: one message for each end whatever caused
//! it, signed, at least once, in its own time, and only where it may go.

use std::time::Duration;

use muster_server::Config;
use muster_server::config::Span;
use serde_json::{Value, json};

use crate::support::{Answer, FakeAgent, Receiver, TestPlane, eventually};

/// Loopback is listed, and waits are short.
fn told(config: &mut Config) {
    config.webhooks.allow = vec!["127.0.0.1".to_owned()];
    config.webhooks.retry_first = Span(Duration::from_millis(20));
    config.webhooks.retry_max = Span(Duration::from_millis(100));
    config.webhooks.timeout = Span(Duration::from_millis(500));
}

async fn world() -> (TestPlane, FakeAgent, Receiver) {
    let plane = TestPlane::with(told).await;
    let agent = FakeAgent::start(&plane, "one").await;
    (plane, agent, Receiver::start().await)
}

async fn submit(plane: &TestPlane, target: &str, webhook: Value) -> Answer {
    let body = json!({"input": {"x": 1}, "webhook": webhook});
    plane
        .client
        .post(&format!("/api/v1/execute/async/{target}"), &body)
        .await
}

async fn submitted(plane: &TestPlane, target: &str, webhook: Value) -> String {
    let answer = submit(plane, target, webhook).await;
    let body = answer.json();
    assert_eq!(answer.status, 202, "{body}");
    assert_eq!(body["webhook_registered"], true, "{body}");
    assert!(body.get("webhook_error").is_none(), "{body}");
    body["execution_id"].as_str().unwrap().to_owned()
}

async fn messages(plane: &TestPlane, query: &str) -> Vec<Value> {
    let answer = plane.client.get(&format!("/api/v1/webhooks?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()["webhooks"].as_array().unwrap().clone()
}

/// Waits until the one message of an execution is in a state.
async fn until(plane: &TestPlane, execution: &str, state: &str) -> Value {
    eventually(&format!("the message is {state}"), || async {
        let found = messages(plane, &format!("execution={execution}")).await;
        assert!(found.len() <= 1, "{found:?}");
        found.into_iter().find(|found| found["state"] == state)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_end_is_told_once_whatever_caused_it() {
    let (plane, agent, receiver) = world().await;
    let webhook = json!({"url": receiver.url("ok")});
    for (function, event, kind, status) in [
        (
            "echo",
            "execution.completed",
            "execution.succeeded",
            "succeeded",
        ),
        (
            "accept",
            "execution.completed",
            "execution.succeeded",
            "succeeded",
        ),
        (
            "early",
            "execution.completed",
            "execution.succeeded",
            "succeeded",
        ),
        ("fail", "execution.failed", "execution.failed", "failed"),
        ("boom", "execution.failed", "execution.failed", "failed"),
        (
            "never",
            "execution.failed",
            "execution.cancelled",
            "cancelled",
        ),
    ] {
        let id = submitted(&plane, &format!("one.{function}"), webhook.clone()).await;
        if status == "cancelled" {
            agent.until_seen(1).await;
            let path = format!("/api/v1/executions/{id}/cancel");
            assert_eq!(plane.client.post(&path, &json!({})).await.status, 200);
        }
        let message = until(&plane, &id, "delivered").await;
        assert_eq!(message["type"], kind, "{function}");
        let of_it = |m: &crate::support::receiver::Message| m.json()["execution_id"] == id;
        let got: Vec<_> = receiver.seen().into_iter().filter(of_it).collect();
        assert_eq!(got.len(), 1, "{function}");
        let body = got[0].json();
        assert_eq!(body["event"], event, "{body}");
        assert_eq!(body["type"], kind, "{body}");
        assert_eq!(body["status"], status, "{body}");
        assert_eq!(body["target"], format!("one.{function}"), "{body}");
        assert_eq!(body["id"], message["id"], "{body}");
        assert_eq!(got[0].header("webhook-id"), message["id"], "{body}");
        assert_eq!(got[0].header("content-type"), "application/json");
        for at in ["timestamp", "created_at", "completed_at"] {
            assert!(body[at].as_str().unwrap().ends_with('Z'), "{at} of {body}");
        }
        assert_eq!(
            body["error_message"].is_string(),
            status != "succeeded",
            "{body}"
        );
        assert_eq!(
            body["error_category"].is_string(),
            status != "succeeded",
            "{body}"
        );
        let shown = plane.execution(&id).await;
        assert_eq!(shown["webhook_registered"], true, "{shown}");
        assert_eq!(shown["webhook_events"][0]["state"], "delivered", "{shown}");
        assert_eq!(body["result"], shown["result"], "{body}");
    }
    let metrics = plane.client.get("/metrics").await.bytes;
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    assert!(
        metrics.contains("muster_webhooks_total{end=\"delivered\"} 6"),
        "{metrics}"
    );
    assert!(metrics.contains("muster_webhooks_pending 0"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_call_and_a_time_out_are_told_as_well() {
    let (plane, _agent, receiver) = world().await;
    let body = json!({"input": {}, "webhook": {"url": receiver.url("ok")}});
    let answer = plane.client.post("/api/v1/execute/one.echo", &body).await;
    assert_eq!(
        answer.json()["webhook_registered"],
        true,
        "{}",
        answer.json()
    );
    receiver.until(1).await;
    let body = json!({"input": {}, "deadline": 1, "webhook": {"url": receiver.url("ok")}});
    let answer = plane
        .client
        .post("/api/v1/execute/async/one.never", &body)
        .await;
    assert_eq!(answer.status, 202, "{}", answer.json());
    let seen = receiver.until(2).await;
    let told = seen[1].json();
    assert_eq!(told["type"], "execution.timed_out", "{told}");
    assert_eq!(told["event"], "execution.failed", "{told}");
    assert_eq!(told["error_category"], "agent_timeout", "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_signed_as_both_kinds_of_receivers_expect() {
    let (plane, _agent, receiver) = world().await;
    let encoded = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD
        .decode(&encoded[6..])
        .unwrap();
    for (n, (secret, key)) in [(encoded, decoded), ("plain text", b"plain text".to_vec())]
        .into_iter()
        .enumerate()
    {
        let webhook = json!({
            "url": receiver.url("ok"), "secret": secret,
            "headers": {"Authorization": "Bearer theirs", "X-Own": "1"},
        });
        submitted(&plane, "one.echo", webhook).await;
        let message = receiver.until(n + 1).await.remove(n);
        assert!(message.is_signed_with(secret, &key), "{message:?}");
        assert_eq!(message.header("authorization"), "Bearer theirs");
        assert_eq!(message.header("x-own"), "1");
    }
    let shown = messages(&plane, "").await;
    let text = serde_json::to_string(&shown).unwrap();
    assert!(
        !text.contains("whsec") && !text.contains("theirs"),
        "{text}"
    );
    assert_eq!(
        shown[0]["target"],
        format!("http://127.0.0.1:{}", receiver.port)
    );
}

/// Contract: a bad webhook does not refuse.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_webhook_does_not_refuse_and_is_not_stored() {
    let (plane, _agent, receiver) = world().await;
    for bad in [
        json!("http://x.example/"),
        json!({}),
        json!({"url": 5}),
        json!({"url": "gopher://x.example/"}),
        json!({"url": "http://user:pw@x.example/"}),
        json!({"url": "http://169.254.169.254/latest"}),
        json!({"url": "http://10.0.0.1/"}),
        json!({"url": "http://[::1]:9/"}),
        json!({"url": plane.url()}),
        json!({"url": receiver.url("ok"), "headers": {"Host": "x"}}),
        json!({"url": receiver.url("ok"), "headers": {"Transfer-Encoding": "chunked"}}),
        json!({"url": receiver.url("ok/ünï")}),
        json!({"url": receiver.url("ok"), "secret": ""}),
        json!({"url": receiver.url("ok"), "secret": "s".repeat(1_000)}),
    ] {
        let answer = submit(&plane, "one.echo", bad.clone()).await;
        let body = answer.json();
        assert_eq!(answer.status, 202, "{bad}: {body}");
        assert_eq!(body["webhook_registered"], false, "{bad}: {body}");
        assert!(body["webhook_error"].is_string(), "{bad}: {body}");
        let id = body["execution_id"].as_str().unwrap();
        let ended = plane.end_of(id).await;
        assert_eq!(ended["webhook_registered"], false, "{ended}");
        assert!(ended.get("webhook_events").is_none(), "{ended}");
    }
    let none = submit(&plane, "one.echo", Value::Null).await.json();
    assert_eq!(none["webhook_registered"], false);
    assert!(none.get("webhook_error").is_none(), "{none}");
    assert_eq!(messages(&plane, "").await, Vec::<Value>::new());
    assert!(receiver.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_list_no_message_goes_to_this_machine() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "one").await;
    let answer = submit(&plane, "one.echo", json!({"url": "http://127.0.0.1:9/"})).await;
    let body = answer.json();
    assert_eq!(body["webhook_registered"], false, "{body}");
    assert!(
        body["webhook_error"]
            .as_str()
            .unwrap()
            .contains("webhooks.allow"),
        "{body}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_taken_comes_again_under_the_same_id() {
    let (plane, _agent, receiver) = world().await;
    let id = submitted(&plane, "one.echo", json!({"url": receiver.url("flaky")})).await;
    receiver.until(3).await;
    let waits = until(&plane, &id, "pending").await;
    assert_eq!(waits["last_status"], 500, "{waits}");
    receiver.get_well();
    let message = until(&plane, &id, "delivered").await;
    let seen = receiver.seen();
    assert!(message["tries"].as_u64().unwrap() >= 4, "{message}");
    assert_eq!(message["tries"], seen.len(), "{message}");
    assert!(message.get("last_error").is_none(), "{message}");
    assert!(seen.iter().all(|m| m.header("webhook-id") == message["id"]));
    assert!(seen.iter().all(|m| m.bytes == seen[0].bytes));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_is_gone_is_asked_once_and_again_when_somebody_wants_it() {
    let (plane, _agent, receiver) = world().await;
    let id = submitted(&plane, "one.echo", json!({"url": receiver.url("gone")})).await;
    let dead = until(&plane, &id, "dead").await;
    assert_eq!(
        (&dead["tries"], &dead["last_status"]),
        (&json!(1), &json!(410))
    );
    assert_eq!(messages(&plane, "state=dead").await.len(), 1);
    assert_eq!(messages(&plane, "state=pending").await.len(), 0);
    let path = format!("/api/v1/webhooks/{}", dead["id"].as_str().unwrap());
    assert_eq!(plane.client.get(&path).await.json(), dead);
    let again = plane
        .client
        .post(&format!("{path}/redrive"), &json!({}))
        .await;
    // Sending again stands for a person's decision.
    again.is_problem(401, "unauthenticated");
    receiver.until(1).await;
    plane
        .client
        .get("/api/v1/webhooks/msg_nobody")
        .await
        .is_problem(404, "not_found");
    plane
        .client
        .get("/api/v1/webhooks?state=lost")
        .await
        .is_problem(400, "validation");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_never_taken_is_given_up_and_can_be_sent_again() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite_with(directory.path(), |config| {
        told(config);
        config.webhooks.give_up = Span(Duration::from_millis(1));
    })
    .await;
    let _agent = FakeAgent::start(&plane, "one").await;
    let receiver = Receiver::start().await;
    let one = submitted(&plane, "one.echo", json!({"url": receiver.url("flaky")})).await;
    let dead = until(&plane, &one, "dead").await;
    assert!(
        dead["dead_at"].is_string() && dead.get("next_at").is_none(),
        "{dead}"
    );
    let owner = muster_server::auth::read_owner_key(directory.path())
        .unwrap()
        .unwrap();
    let key = [("x-api-key", owner.expose())];
    receiver.get_well();
    let path = format!("/api/v1/webhooks/{}/redrive", dead["id"].as_str().unwrap());
    let answer = plane.client.post_with(&path, &key, &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let delivered = until(&plane, &one, "delivered").await;
    assert_eq!(delivered["tries"], 1, "{delivered}");
    let again = plane.client.post_with(&path, &key, &json!({})).await;
    again.is_problem(409, "conflict");
    let two = submitted(&plane, "one.echo", json!({"url": receiver.url("gone")})).await;
    until(&plane, &two, "dead").await;
    for bad in ["{", "[]", "null", "5", "{} x"] {
        let headers = [key[0], ("content-type", "application/json")];
        plane
            .client
            .send(
                http::Method::POST,
                "/api/v1/webhooks/redrive",
                &headers,
                bad.to_owned(),
            )
            .await
            .is_problem(400, "validation");
    }
    until(&plane, &two, "dead").await;
    let all = plane
        .client
        .post_with("/api/v1/webhooks/redrive", &key, &json!({}))
        .await;
    assert_eq!(all.json(), json!({"redriven": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_fails_does_not_hold_up_another_and_is_left_in_peace() {
    let (plane, _agent, receiver) = world().await;
    let dead_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!(
        "http://127.0.0.1:{}/",
        dead_port.local_addr().unwrap().port()
    );
    drop(dead_port);
    let slow = Receiver::start().await;
    for _ in 0..40 {
        submitted(&plane, "one.echo", json!({"url": nobody})).await;
        submitted(&plane, "one.echo", json!({"url": slow.url("slow")})).await;
    }
    let began = std::time::Instant::now();
    for _ in 0..20 {
        submitted(&plane, "one.echo", json!({"url": receiver.url("short")})).await;
    }
    receiver.until(20).await;
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    assert!(receiver.most_at_once() <= 4 && receiver.most_at_once() >= 2);
    assert!(slow.most_at_once() <= 4);
    let refused = messages(&plane, "state=pending&limit=500").await;
    let refused = refused
        .iter()
        .find(|m| m["target"] == nobody.trim_end_matches('/') && m["tries"] != 0);
    assert!(
        refused.unwrap()["last_error"]
            .as_str()
            .unwrap()
            .contains("refused")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_are_not_followed() {
    let (plane, _agent, receiver) = world().await;
    let id = submitted(&plane, "one.echo", json!({"url": receiver.url("redirect")})).await;
    receiver.until(2).await;
    let waits = until(&plane, &id, "pending").await;
    assert_eq!(waits["last_status"], 302, "{waits}");
    assert!(receiver.seen().iter().all(|m| m.path == "redirect"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_result_is_linked() {
    let (plane, _agent, receiver) = world().await;
    let id = submitted(&plane, "one.large", json!({"url": receiver.url("ok")})).await;
    let body = receiver.until(1).await[0].json();
    assert!(body.get("result").is_none(), "{body}");
    let path = body["result_url"].as_str().unwrap();
    let result = plane.client.get(path).await;
    assert_eq!(body["result_size"], result.bytes.len(), "{id}");
}

/// Contract: what was to be delivered when the plane died is delivered by the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_plane_delivers_what_is_due() {
    let directory = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let never = |config: &mut Config| {
        told(config);
        config.webhooks.retry_first = Span(Duration::from_secs(3600));
    };
    let plane = TestPlane::sqlite_with(directory.path(), never).await;
    let _agent = FakeAgent::start(&plane, "one").await;
    let secret = json!({"url": receiver.url("slow"), "secret": "s"});
    let claimed = submitted(&plane, "one.echo", secret).await;
    receiver.until(1).await;
    plane.running.stop().await;
    let plane = TestPlane::sqlite_with(directory.path(), |config| {
        told(config);
        config.webhooks.timeout = Span(Duration::from_secs(60));
    })
    .await;
    let seen = receiver.until(2).await;
    assert_eq!(seen[1].json()["execution_id"], claimed);
    assert_eq!(seen[1].header("webhook-id"), seen[0].header("webhook-id"));
    assert!(seen[1].is_signed_with("s", b"s"));
    drop(plane);
}

/// Contract: under a hold over everything nothing leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_over_everything_holds_messages_back() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite_with(directory.path(), told).await;
    let agent = FakeAgent::start(&plane, "one").await;
    let receiver = Receiver::start().await;
    let owner = muster_server::auth::read_owner_key(directory.path())
        .unwrap()
        .unwrap();
    let key = [("x-api-key", owner.expose())];
    let id = submitted(&plane, "one.gate", json!({"url": receiver.url("ok")})).await;
    agent.until_seen(1).await;
    let hold = json!({"reason": "a test"});
    let answer = plane.client.post_with("/api/v1/hold", &key, &hold).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    agent.open_gate();
    plane.end_of(&id).await;
    until(&plane, &id, "pending").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(receiver.seen().is_empty());
    let told = plane
        .client
        .post_with("/api/v1/unhold?dry_run=true", &key, &json!({}))
        .await;
    assert_eq!(told.json()["webhooks"], 1, "{}", told.json());
    plane
        .client
        .post_with("/api/v1/unhold", &key, &json!({}))
        .await;
    receiver.until(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_is_told_of_the_webhook_of_the_call_it_joined() {
    let (plane, _agent, receiver) = world().await;
    let path = "/api/v1/execute/async/one.echo";
    let with = json!({"input": {}, "webhook": {"url": receiver.url("ok")}});
    let without = json!({"input": {}});
    for (key, first, second, registered) in [
        ("a", &with, &without, true),
        ("b", &without, &with, false),
        ("c", &with, &with, true),
    ] {
        let key = [("idempotency-key", key)];
        let one = plane.client.post_with(path, &key, first).await.json();
        let two = plane.client.post_with(path, &key, second).await.json();
        assert_eq!(one["execution_id"], two["execution_id"]);
        assert_eq!(two["webhook_registered"], registered, "{two}");
        assert_eq!(two.get("webhook_error").is_some(), !registered, "{two}");
    }
    receiver.until(2).await;
    assert_eq!(messages(&plane, "").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_fails_holds_up_no_other_behind_the_same_address() {
    let plane = TestPlane::with(|config| {
        told(config);
        // Nobody waits this out.
        config.webhooks.retry_first = Span(Duration::from_secs(600));
        config.webhooks.retry_max = Span(Duration::from_secs(3600));
    })
    .await;
    let _agent = FakeAgent::start(&plane, "one").await;
    let receiver = Receiver::start().await;
    for _ in 0..12 {
        submitted(&plane, "one.echo", json!({"url": receiver.url("flaky")})).await;
    }
    receiver.until(1).await;
    let good = submitted(&plane, "one.echo", json!({"url": receiver.url("ok")})).await;
    until(&plane, &good, "delivered").await;
    eventually("each was tried", || async {
        let waiting = messages(&plane, "state=pending&limit=500").await;
        let tried = |m: &&Value| m["tries"] == 1 && m["last_status"] == 500;
        (waiting.iter().filter(tried).count() == 12).then_some(())
    })
    .await;
}
