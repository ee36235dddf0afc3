//! The routes about the plane itself.

use serde_json::Value;

use crate::support::World;

#[tokio::test]
async fn an_idle_plane_is_alive_and_ready() {
    let world = World::start().await;
    assert_eq!(world.get("/healthz").await.json()["status"], "healthy");
    assert_eq!(world.get("/health").await.json()["status"], "healthy");
    assert_eq!(world.get("/readyz").await.json()["status"], "ready");
}

#[tokio::test]
async fn the_system_report_has_the_effective_configuration_and_the_limits() {
    let world = World::start().await;
    let system = world.get("/api/v1/system").await.json();
    assert_eq!(system["store"]["kind"], "sqlite");
    assert!(system["process"]["open_fds"].as_u64().unwrap() > 0);
    assert!(system["config"]["server"].is_object(), "{system}");
    assert!(system["clock"]["wall_ahead_ms"].as_i64().unwrap().abs() < 60_000);
}

#[tokio::test]
async fn the_document_has_a_tag_and_is_not_sent_twice() {
    let world = World::start().await;
    let first = world.get("/openapi.json").await;
    assert_eq!(first.status, 200);
    assert_eq!(first.json()["info"]["title"], "Muster");
    let tag = first.header("etag").unwrap().to_owned();
    let again = world
        .send("GET", "/openapi.json", &[("If-None-Match", &tag)], b"")
        .await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(
        world.send("HEAD", "/openapi.json", &[], b"").await.status,
        200
    );
}

#[tokio::test]
async fn what_is_denied_is_counted() {
    let world = World::start().await;
    world.get("/api/v1/keys").await;
    let metrics = world.as_owner("GET", "/metrics", &Value::Null).await;
    assert_eq!(metrics.status, 200);
    let text = metrics.text();
    assert!(
        text.contains(r#"muster_requests_denied_total{category="unauthenticated"} 1"#),
        "{text}"
    );
    assert!(text.contains("process_resident_memory_bytes "));
    assert!(text.contains("muster_store_bytes{"));
}
