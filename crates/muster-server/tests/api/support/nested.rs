//! Functions that call through the plane again, as part of the execution they run in.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Answer, Client, eventually};

/// Calls the first target of `path` with the rest and adds its own name; the last one answers.
/// `lane` is `sync`, or `async` to submit and poll.
pub(crate) async fn relay(own: &str, plane: &Client, id: &str, run: &str, body: &[u8]) -> Response {
    let input: Value = serde_json::from_slice(body).unwrap();
    let path = input["path"].as_array().unwrap();
    let Some((next, rest)) = path.split_first() else {
        return axum::Json(json!({ "seen": [own] })).into_response();
    };
    let below = json!({ "path": rest, "lane": input["lane"] });
    let target = next.as_str().unwrap();
    let result = if input["lane"] == "async" {
        polled(plane, target, id, run, below).await
    } else {
        let answer = call(plane, "", target, id, run, below).await;
        if answer.status != 200 {
            return passed_on(&answer);
        }
        answer.json()["result"].clone()
    };
    let mut seen = vec![json!(own)];
    seen.extend(result["seen"].as_array().unwrap().iter().cloned());
    axum::Json(json!({ "seen": seen })).into_response()
}

/// Calls itself, one deeper, until the plane refuses; what the refusal said comes back up.
pub(crate) async fn recurse(
    own: &str,
    plane: &Client,
    id: &str,
    run: &str,
    body: &[u8],
) -> Response {
    let input: Value = serde_json::from_slice(body).unwrap();
    let depth = input["depth"].as_u64().unwrap();
    let target = format!("{own}.recurse");
    let answer = call(plane, "", &target, id, run, json!({"depth": depth + 1})).await;
    let said = match answer.status.as_u16() {
        200 => answer.json()["result"].clone(),
        status => json!({
            "depth": depth, "status": status, "category": answer.json()["error_category"],
            "execution_id": answer.json()["execution_id"],
        }),
    };
    axum::Json(said).into_response()
}

async fn call(
    plane: &Client,
    lane: &str,
    target: &str,
    id: &str,
    run: &str,
    input: Value,
) -> Answer {
    let headers = [("x-parent-execution-id", id), ("x-run-id", run)];
    let path = format!("/api/v1/execute/{lane}{target}");
    plane
        .post_with(&path, &headers, &json!({ "input": input }))
        .await
}

async fn polled(plane: &Client, target: &str, id: &str, run: &str, input: Value) -> Value {
    let answer = call(plane, "async/", target, id, run, input).await;
    assert_eq!(answer.status, 202, "{}", answer.json());
    let path = format!(
        "/api/v1/executions/{}",
        answer.json()["execution_id"].as_str().unwrap()
    );
    eventually("the nested call ends", || async {
        let found = plane.get(&path).await.json();
        (found["status"] == "succeeded").then(|| found["result"].clone())
    })
    .await
}

fn passed_on(answer: &Answer) -> Response {
    let status = StatusCode::from_u16(answer.status.as_u16()).unwrap();
    (status, axum::Json(answer.json())).into_response()
}
