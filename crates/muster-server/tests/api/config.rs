//! `/api/v1/config` from the side of whoever wants to know what holds.

use muster_server::config::Secret;
use serde_json::Value;

use crate::support::TestPlane;

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_shown_without_secrets_to_this_machine_and_to_admins() {
    let plane = TestPlane::with(|config| {
        config.auth.approval_webhook_secret = Some(Secret::new("canary-secret"));
        config.admission.max_concurrent_per_agent = 7;
    })
    .await;
    let answer = plane.client.get("/api/v1/config").await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert!(!String::from_utf8_lossy(&answer.bytes).contains("canary"));
    let shown = answer.json();
    let values = shown["values"].as_array().unwrap();
    let of = |key: &str| -> &Value { values.iter().find(|value| value["key"] == key).unwrap() };
    assert_eq!(of("admission.max_concurrent_per_agent")["value"], 7);
    assert_eq!(of("server.listen")["source"], "default");
    assert_eq!(of("auth.approval_webhook_secret")["value"], "(redacted)");
    let operator = [("x-api-key", plane.key())];
    let refused = plane
        .client
        .send(http::Method::GET, "/api/v1/config", &operator, "")
        .await;
    refused.is_problem(403, "permission_denied");
}
