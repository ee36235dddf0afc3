//! Registration, beats, goodbye, lists.

use serde_json::json;

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_answers_what_the_sdk_reads() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::listen(&plane.client, "a", "i1", 0).await;
    for path in ["/api/v1/nodes/register", "/api/v1/nodes"] {
        let answer = plane.client.post(path, &agent.registration()).await;
        assert_eq!(answer.status, 201);
        let body = answer.json();
        assert_eq!(body["success"], true);
        assert_eq!(body["node_id"], "a");
        assert_eq!(
            body["resolved_base_url"],
            format!("http://127.0.0.1:{}", agent.port)
        );
    }
    let node = plane.client.get("/api/v1/nodes/a").await.json();
    assert_eq!(node["registration"]["version"], "1.0.0", "{node}");
    assert_eq!(node["instances"].as_array().unwrap().len(), 1);
    let list = plane.client.get("/api/v1/nodes").await.json();
    assert_eq!(
        (&list["count"], &list["nodes"][0]["id"]),
        (&json!(1), &json!("a"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_registrations_and_forbidden_addresses_are_refused() {
    let plane = TestPlane::start().await;
    let own = plane.url();
    let with = |change: serde_json::Value| {
        let mut body = json!({"id": "x", "base_url": "http://127.0.0.1:9", "reasoners": []});
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    for change in [
        json!({"id": "a.b"}),
        json!({"id": ""}),
        json!({"id": 5}),
        json!({"id": "a\u{0}"}),
        json!({"base_url": "http://169.254.169.254/"}),
        json!({"base_url": "file:///etc/passwd"}),
        json!({"base_url": own}),
        json!({"base_url": "http://224.0.0.1:80"}),
        json!({"base_url": "http://0xa9.254.43518/"}),
        json!({"base_url": "http://2852039166/"}),
        json!({"base_url": "http://0:9"}),
        json!({"base_url": "http://127.0.0.1:70000"}),
        json!({"base_url": "http://127.0.0.1:0"}),
        json!({"base_url": "http://agent:"}),
        json!({"base_url": "http://[::1]:x"}),
        json!({"base_url": "http://300.0.0.1:9"}),
        json!({"reasoners": [{"id": "a b"}]}),
        json!({"reasoners": 5}),
        json!({"instance_id": "a b"}),
    ] {
        let answer = plane
            .client
            .post("/api/v1/nodes/register", &with(change))
            .await;
        answer.is_problem(400, "validation");
    }
    assert_eq!(plane.client.get("/api/v1/nodes").await.json()["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beat_is_noted_and_unknown_ones_are_told_to_register() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    assert_eq!(agent.beat(&plane).await, 200);
    eventually("the beat shows", || async {
        let node = plane.client.get("/api/v1/nodes/a").await.json();
        (node["state"] == "active").then_some(())
    })
    .await;
    let path = "/api/v1/nodes/a/heartbeat";
    let other = json!({"status": "ready", "instance_id": "another"});
    plane
        .client
        .post(path, &other)
        .await
        .is_problem(404, "not_found");
    assert_eq!(
        plane
            .client
            .post(path, &json!({"status": "ready"}))
            .await
            .status,
        200
    );
    let nobody = plane
        .client
        .post("/api/v1/nodes/b/heartbeat", &json!({}))
        .await;
    nobody.is_problem(404, "not_found");
    let odd = plane
        .client
        .send(http::Method::POST, path, &[], "{\"instance_id\":[]}")
        .await;
    odd.is_problem(400, "validation");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_goodbye_calls_fail_fast_and_callbacks_are_taken() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let body = json!({"reason": "signal", "timeout_seconds": 30.0});
    let answer = plane.client.post("/api/v1/nodes/a/shutdown", &body).await;
    assert_eq!(answer.status, 202, "{}", answer.json());
    plane
        .call("a.echo", json!({}))
        .await
        .is_problem(503, "node_unavailable");
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": "late but fine"});
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
    assert_eq!(plane.execution(&id).await["status"], "succeeded");
    let nobody = plane.client.post("/api/v1/nodes/b/shutdown", &body).await;
    nobody.is_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_planes_own_address_is_refused_in_every_spelling_with_the_same_sentence() {
    let plane = TestPlane::start().await;
    let port = plane.running.address.port();
    let sentence = format!("base_url: 127.0.0.1:{port} is the plane itself");
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.1",
        "localhost",
        "localhost.",
        "[::ffff:127.0.0.1]",
    ] {
        let body = json!({"id": "x", "base_url": format!("http://{host}:{port}"), "reasoners": []});
        let answer = plane.client.post("/api/v1/nodes/register", &body).await;
        let problem = answer.is_problem(400, "validation");
        assert_eq!(problem["message"], sentence, "{host}");
    }
}
