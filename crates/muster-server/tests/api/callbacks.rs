//! Status callbacks: twice, contradicting, without proof, unusable.

use serde_json::json;

use crate::support::{FakeAgent, TestPlane};

async fn accepted(plane: &TestPlane, agent: &FakeAgent) -> (String, String) {
    let before = agent.seen().len();
    let id = plane.submit("a.never", json!({})).await;
    let seen = agent.until_seen(before + 1).await;
    (id, seen[before].header("x-execution-id").to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_twice_changes_nothing_and_another_is_kept_as_late() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let (id, attempt) = accepted(&plane, &agent).await;
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": 1});
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
    let end = plane.execution(&id).await;
    assert_eq!(
        (&end["status"], &end["result"]),
        (&json!("succeeded"), &json!(1))
    );
    let again = plane.client.post(&path, &said).await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["repeated"]),
        (200, &json!(true))
    );
    let other = json!({"status": "failed", "error": "no"});
    plane
        .client
        .post(&path, &other)
        .await
        .is_problem(409, "conflict");
    let end = plane.execution(&id).await;
    assert_eq!(
        (&end["status"], &end["result"]),
        (&json!("succeeded"), &json!(1))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_must_prove_its_attempt() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let (id, attempt) = accepted(&plane, &agent).await;
    let said = json!({"status": "succeeded", "result": 1});
    for forged in [
        id.clone(),
        format!("{id}~1.AAAAAAAAAAAAAAAA"),
        format!("{id}~2.x"),
    ] {
        let path = format!("/api/v1/executions/{forged}/status");
        plane
            .client
            .post(&path, &said)
            .await
            .is_problem(403, "wrong_attempt");
    }
    plane
        .client
        .post("/api/v1/executions/exec_nowhere/status", &said)
        .await
        .is_problem(404, "not_found");
    assert_eq!(plane.execution(&id).await["status"], "running");
    let path = format!("/api/v1/executions/{attempt}/status");
    assert_eq!(plane.client.post(&path, &said).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_that_cannot_be_used_ends_its_attempt() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let large = format!(
        "{{\"status\":\"succeeded\",\"result\":\"{}\"}}",
        "x".repeat(3 << 20)
    );
    for body in [
        "{\"status\":\"succeeded\",\"result\":NaN}",
        "nonsense",
        "{\"status\":7}",
        &large,
    ] {
        let (id, attempt) = accepted(&plane, &agent).await;
        let path = format!("/api/v1/executions/{attempt}/status");
        let answer = plane
            .client
            .send(http::Method::POST, &path, &[], body.to_owned())
            .await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        let end = plane.execution(&id).await;
        assert_eq!(end["status"], "failed", "{end}");
        assert_eq!(end["error_category"], "bad_response", "{end}");
        assert!(end["error_details"]["body"].as_str().unwrap().len() <= 4096);
    }
    // Without proof a malformed one is only malformed.
    let (id, _) = accepted(&plane, &agent).await;
    let path = format!("/api/v1/executions/{id}/status");
    let answer = plane.client.send(http::Method::POST, &path, &[], "{").await;
    answer.is_problem(400, "validation");
    assert_eq!(plane.execution(&id).await["status"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_json_is_a_result() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    for result in ["null", "42", "[1,2]", "\"text\"", "1e400", "false"] {
        let (id, attempt) = accepted(&plane, &agent).await;
        let path = format!("/api/v1/executions/{attempt}/status");
        let body = format!("{{\"status\":\"completed\",\"result\":{result}}}");
        let answer = plane
            .client
            .send(http::Method::POST, &path, &[], body)
            .await;
        assert_eq!(answer.status, 200);
        let got = plane.client.get(&format!("/api/v1/executions/{id}")).await;
        let text = String::from_utf8(got.bytes.to_vec()).unwrap();
        assert!(text.contains(&format!("\"result\":{result}")), "{text}");
    }
}
