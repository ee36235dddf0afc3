//! Tags that need an approval, from registration to the first call.

use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_called_once_an_admin_approved_its_tags() {
    let dir = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite_with(dir.path(), |c| {
        c.admission.tags_need_approval = vec!["finance*".into(), "admin".into()];
    })
    .await;
    let owner = std::fs::read_to_string(muster_server::auth::owner_key_path(dir.path())).unwrap();
    let owner = [("x-api-key", owner.trim())];
    let agent = FakeAgent::listen(&plane.client, "a", "instance-1", 0).await;
    let mut body = agent.registration();
    body["proposed_tags"] = json!(["finance.read", "harmless"]);
    body["reasoners"][0]["tags"] = json!(["admin"]);
    let answer = plane.client.post("/api/v1/nodes/register", &body).await;
    assert_eq!(answer.status, 201, "{}", answer.json());
    assert_eq!(answer.json()["status"], "pending_approval");
    assert_eq!(
        answer.json()["pending_tags"],
        json!(["admin", "finance.read"])
    );
    let node = plane.client.get("/api/v1/nodes/a").await.json();
    assert_eq!(node["lifecycle_status"], "pending_approval");
    let why = plane.client.get("/api/v1/why/a").await.json();
    assert!(why["verdict"].to_string().contains("not approved"), "{why}");
    let refused = plane.call("a.echo", json!({})).await;
    refused.is_problem(503, "agent_pending_approval");

    // A person's decision: never without an admin's key, on loopback neither.
    let approve = "/api/v1/tags/a/approve";
    plane
        .client
        .post(approve, &json!({}))
        .await
        .is_problem(401, "unauthenticated");
    let post = http::Method::POST;
    let send = |path: &'static str, body: Value| {
        plane
            .client
            .send(post.clone(), path, &owner, body.to_string())
    };
    let listed = plane.client.get("/api/v1/tags").await.json();
    assert_eq!(
        listed["agents"][0]["pending"],
        json!(["admin", "finance.read"])
    );
    assert_eq!(listed["agents"][0]["callable"], false);
    send("/api/v1/tags/nobody/approve", json!({}))
        .await
        .is_problem(404, "not_found");
    send(approve, json!({"tags": [""]}))
        .await
        .is_problem(400, "validation");
    let one = send(approve, json!({"tags": ["admin"]})).await.json();
    assert_eq!(
        (&one["callable"], &one["pending"]),
        (&json!(false), &json!(["finance.read"]))
    );
    let all = send(approve, json!({})).await.json();
    assert_eq!(
        (&all["callable"], &all["pending"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(plane.call("a.echo", json!({"x": 1})).await.status, 200);
    let node = plane.client.get("/api/v1/nodes/a").await.json();
    assert_ne!(node["lifecycle_status"], "pending_approval");

    // Kept over a new registration; a rejection takes it back.
    let again = plane
        .client
        .post("/api/v1/nodes/register", &body)
        .await
        .json();
    assert!(again.get("status").is_none(), "{again}");
    let rejected = send("/api/v1/tags/a/reject", json!({"tags": ["admin"]}))
        .await
        .json();
    assert_eq!(rejected["rejected"], json!(["admin"]));
    plane
        .call("a.echo", json!({}))
        .await
        .is_problem(503, "agent_pending_approval");
    let audit = plane
        .client
        .send(http::Method::GET, "/api/v1/audit", &owner, "")
        .await;
    let audit = audit.json().to_string();
    assert!(
        audit.contains("tags.approved") && audit.contains("tags.rejected"),
        "{audit}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_patterns_no_tag_needs_an_approval() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::listen(&plane.client, "a", "instance-1", 0).await;
    let mut body = agent.registration();
    body["proposed_tags"] = json!(["finance", "x".repeat(5_000)]);
    let answer = plane.client.post("/api/v1/nodes/register", &body).await;
    assert_eq!(answer.status, 201);
    assert!(answer.json().get("status").is_none());
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
}
