//! The restart lane: a run again with what had succeeded taken over, one execution alone, forks,
//! changed inputs; on both stores.

use serde_json::{Value, json};

use crate::support::agent::Request;
use crate::support::{Answer, Client, FakeAgent, TestPlane, eventually};

/// A reasoner that the test itself plays: `root.never` answers 202, the test calls its steps and
/// reports its end.
struct Played {
    /// What the plane sent.
    request: Request,
    /// Its attempt id.
    attempt: String,
    client: Client,
}

impl Played {
    /// The newest call of the agent.
    async fn of(plane: &TestPlane, agent: &FakeAgent, count: usize) -> Self {
        let request = agent.until_seen(count).await.remove(count - 1);
        let attempt = request.header("x-execution-id").to_owned();
        Self {
            attempt,
            request,
            client: plane.client.clone(),
        }
    }

    /// Calls a step as the SDK does: run, parent, and the replay headers as they came.
    async fn call(&self, target: &str, body: &Value) -> Answer {
        let run = self.request.header("x-run-id").to_owned();
        let mut headers = vec![
            ("x-run-id".to_owned(), run),
            ("x-parent-execution-id".to_owned(), self.attempt.clone()),
        ];
        for (name, value) in &self.request.headers {
            if name.as_str().starts_with("x-agentfield-replay-") {
                headers.push((name.to_string(), value.to_str().unwrap().to_owned()));
            }
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (&**n, &**v)).collect();
        let path = format!("/api/v1/execute/async/{target}");
        let answer = self
            .client
            .send(http::Method::POST, &path, &headers, body.to_string())
            .await;
        assert_eq!(answer.status, 202, "{}", answer.json());
        answer
    }

    async fn report(&self, said: &Value) {
        let path = format!("/api/v1/executions/{}/status", self.attempt);
        let answer = self.client.post(&path, said).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
    }
}

fn id(answer: &Answer) -> String {
    answer.json()["execution_id"].as_str().unwrap().to_owned()
}

async fn restart(plane: &TestPlane, id: &str, body: &Value) -> Answer {
    let path = format!("/api/v1/executions/{id}/restart");
    plane.client.post(&path, body).await
}

/// A run of `root.never` with two equal calls of `steps.echo` and a third step that failed.
struct Source {
    root: String,
    run: String,
    steps: Vec<String>,
}

async fn source(plane: &TestPlane, root: &FakeAgent) -> Source {
    let seen = root.seen().len();
    let root_id = plane.submit("root.never", json!({"order": 7})).await;
    let played = Played::of(plane, root, seen + 1).await;
    let mut steps = Vec::new();
    for target in ["steps.echo", "steps.echo", "steps.fail"] {
        let answer = played.call(target, &json!({"input": {"same": true}})).await;
        plane.end_of(&id(&answer)).await;
        steps.push(id(&answer));
    }
    played
        .report(&json!({"status": "failed", "error": "step 3"}))
        .await;
    plane.end_of(&root_id).await;
    let run = plane.execution(&root_id).await["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    Source {
        root: root_id,
        run,
        steps,
    }
}

async fn a_restart_takes_over_what_had_succeeded(plane: &TestPlane) {
    let root = FakeAgent::start(plane, "root").await;
    let steps = FakeAgent::start(plane, "steps").await;
    let source = source(plane, &root).await;
    let answer = restart(plane, &source.root, &json!({"reason": "again"})).await;
    let body = answer.json();
    assert_eq!(answer.status, 202, "{body}");
    for (name, want) in [
        ("source_execution_id", source.root.as_str()),
        ("source_run_id", &source.run),
        ("restarted_execution_id", &source.root),
        ("replay_mode", "succeeded-before"),
        ("scope", "workflow"),
        ("kind", "restart"),
        ("target", "root.never"),
        ("type", "reasoner"),
    ] {
        assert_eq!(body[name], want, "{name}");
    }
    assert!(body.get("replay_before_execution_id").is_none());
    let new = id(&answer);
    assert_ne!(body["run_id"], source.run.as_str());
    assert_eq!(answer.header("x-execution-id"), Some(&*new));

    let played = Played::of(plane, &root, 2).await;
    assert_eq!(&played.request.body[..], br#"{"order":7}"#, "its own input");
    assert_eq!(
        played.request.header("x-agentfield-replay-source-run-id"),
        source.run
    );
    assert_eq!(
        played.request.header("x-agentfield-replay-mode"),
        "succeeded-before"
    );
    let before = steps.seen().len();
    for twin in &source.steps[..2] {
        let hit = played
            .call("steps.echo", &json!({"input": {"same": true}}))
            .await;
        assert_eq!(hit.header("x-agentfield-replay-hit"), Some("true"));
        let said = hit.json();
        assert_eq!(said["status"], "succeeded");
        assert_eq!(said["replay_hit"], true);
        let shown = plane.execution(&id(&hit)).await;
        assert_eq!(shown["result"], json!({"same": true}), "{shown}");
        assert_eq!(
            shown["status_reason"],
            format!("replayed_from_execution:{twin}")
        );
        let payload = format!("/api/v1/executions/{}/payload/result", id(&hit));
        assert_eq!(
            plane.client.get(&payload).await.json(),
            json!({"same": true})
        );
        assert_eq!(shown["replayed_from_execution_id"], twin.as_str());
    }
    assert_eq!(steps.seen().len(), before, "nothing was called");
    let other = played
        .call("steps.echo", &json!({"input": {"same": false}}))
        .await;
    assert_eq!(other.header("x-agentfield-replay-hit"), None);
    plane.end_of(&id(&other)).await;
    let failed = played
        .call("steps.fail", &json!({"input": {"same": true}}))
        .await;
    assert_eq!(
        failed.header("x-agentfield-replay-hit"),
        None,
        "it had failed"
    );
    assert_eq!(
        plane.end_of(&id(&failed)).await["replay_of"],
        source.steps[2].as_str()
    );
    played
        .report(&json!({"status": "succeeded", "result": 1}))
        .await;

    let (old, new) = (
        plane.execution(&source.root).await,
        plane.end_of(&new).await,
    );
    assert_eq!(
        old["restarted_as"]["execution_id"], new["execution_id"],
        "{old}"
    );
    assert_eq!(new["restart_of"], source.root.as_str());
    let run = format!("/api/v1/runs/{}", new["run_id"].as_str().unwrap());
    assert_eq!(
        plane.client.get(&run).await.json()["source_run_id"],
        source.run.as_str()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_takes_over_what_had_succeeded_in_memory() {
    a_restart_takes_over_what_had_succeeded(&TestPlane::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_takes_over_what_had_succeeded_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    a_restart_takes_over_what_had_succeeded(&TestPlane::sqlite(dir.path()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_call_is_answered_with_the_hit_and_its_result() {
    let dir = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(dir.path()).await;
    let root = FakeAgent::start(&plane, "root").await;
    let steps = FakeAgent::start(&plane, "steps").await;
    let source = source(&plane, &root).await;
    restart(&plane, &source.steps[2], &json!({})).await;
    let played = Played::of(&plane, &root, 2).await;
    steps.kill().await;
    let headers = [
        ("x-run-id", played.request.header("x-run-id")),
        ("x-parent-execution-id", played.attempt.as_str()),
    ];
    let body = json!({"input": {"same": true}}).to_string();
    let path = "/api/v1/execute/steps.echo";
    let answer = plane
        .client
        .send(http::Method::POST, path, &headers, body)
        .await;
    let said = answer.json();
    assert_eq!(answer.status, 200, "{said}");
    assert_eq!(answer.header("x-agentfield-replay-hit"), Some("true"));
    assert_eq!(
        (&said["replay_hit"], &said["result"]),
        (&json!(true), &json!({"same": true}))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn large_results_and_inputs_are_taken_over_too() {
    let dir = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(dir.path()).await;
    let root = FakeAgent::start(&plane, "root").await;
    let steps = FakeAgent::start(&plane, "steps").await;
    let big = json!({"input": {"text": "x".repeat(100 * 1024)}});
    let root_id = id(&plane
        .client
        .post("/api/v1/execute/async/root.never", &big)
        .await);
    let played = Played::of(&plane, &root, 1).await;
    let step = played.call("steps.echo", &big).await;
    let first = plane.end_of(&id(&step)).await;
    played
        .report(&json!({"status": "failed", "error": "no"}))
        .await;
    plane.end_of(&root_id).await;
    let again = restart(&plane, &root_id, &json!({})).await;
    assert_eq!(again.status, 202, "{}", again.json());
    let played = Played::of(&plane, &root, 2).await;
    assert_eq!(
        played.request.body.len(),
        plane_len(&big),
        "its large input"
    );
    steps.kill().await;
    let hit = played.call("steps.echo", &big).await;
    assert_eq!(hit.header("x-agentfield-replay-hit"), Some("true"));
    let shown = plane.execution(&id(&hit)).await;
    assert_eq!(shown["result"], first["result"]);
    assert_eq!(shown["result_size"], first["result_size"]);
}

fn plane_len(body: &Value) -> usize {
    body["input"].to_string().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_execution_alone_and_inputs_that_may_be_changed() {
    let plane = TestPlane::start().await;
    let root = FakeAgent::start(&plane, "root").await;
    let steps = FakeAgent::start(&plane, "steps").await;
    let source = source(&plane, &root).await;
    let path = &source.steps[2];
    let body = json!({"input": {"same": "changed"}});
    let refused = restart(&plane, path, &body)
        .await
        .is_problem(400, "validation");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("scope execution"),
        "{refused}"
    );
    let alone = json!({"scope": "execution", "input": {"same": "changed"}, "reuse": "none"});
    let answer = restart(&plane, path, &alone).await;
    let said = answer.json();
    assert_eq!(said["restarted_execution_id"], path.as_str(), "{said}");
    let end = plane.end_of(&id(&answer)).await;
    assert_eq!(end["root_execution_id"], end["execution_id"]);
    assert_eq!(
        &steps.seen().last().unwrap().body[..],
        br#"{"same":"changed"}"#
    );
    let forked = json!({"fork": true, "input": {"order": 8}});
    let answer = restart(&plane, &source.root, &forked).await;
    assert_eq!(answer.json()["kind"], "fork");
    let played = Played::of(&plane, &root, 2).await;
    assert_eq!(&played.request.body[..], br#"{"order":8}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_restarted_says_why_and_stores_nothing() {
    let plane = TestPlane::start().await;
    let root = FakeAgent::start(&plane, "root").await;
    let _steps = FakeAgent::start(&plane, "steps").await;
    restart(&plane, "exec_nobody", &json!({}))
        .await
        .is_problem(404, "not_found");
    let open = plane.submit("root.never", json!({})).await;
    let played = Played::of(&plane, &root, 1).await;
    let refused = restart(&plane, &open, &json!({}))
        .await
        .is_problem(409, "conflict");
    assert!(
        refused["message"].as_str().unwrap().contains("fork"),
        "{refused}"
    );
    for bad in [
        json!({"scope": "everything"}),
        json!({"reuse": "some"}),
        json!({"input": 5}),
        json!({"context": []}),
        json!({"reason": "x".repeat(501)}),
        json!([]),
    ] {
        restart(&plane, &open, &bad)
            .await
            .is_problem(400, "validation");
    }
    let refused = restart(&plane, &open, &json!([]))
        .await
        .is_problem(400, "validation");
    assert!(
        refused["message"].as_str().unwrap().contains("webhook?"),
        "{refused}"
    );
    // A call inside the agent's process.
    let event = json!({
        "execution_id": "inside_1", "run_id": played.request.header("x-run-id"),
        "reasoner_id": "echo", "agent_node_id": "root", "status": "running",
        "parent_execution_id": played.attempt,
    });
    plane
        .client
        .post("/api/v1/workflow/executions/events", &event)
        .await;
    eventually("it is observed", || async {
        let answer = plane.client.get("/api/v1/executions/inside_1").await;
        (answer.status == 200).then_some(())
    })
    .await;
    let refused = restart(&plane, "inside_1", &json!({}))
        .await
        .is_problem(409, "conflict");
    assert!(
        refused["message"].as_str().unwrap().contains(&open),
        "{refused}"
    );
    let all = plane.client.get("/api/v1/executions").await.json();
    assert_eq!(all["executions"].as_array().unwrap().len(), 2, "{all}");
    let forked = restart(&plane, &open, &json!({"fork": true})).await;
    assert_eq!(forked.status, 202, "{}", forked.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_makes_one_restart() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let done = plane.submit("a.echo", json!({})).await;
    plane.end_of(&done).await;
    let path = format!("/api/v1/executions/{done}/restart");
    let key = [("idempotency-key", "once")];
    let send = |body: Value| {
        plane
            .client
            .send(http::Method::POST, &path, &key, body.to_string())
    };
    let first = send(json!({"reuse": "none"})).await;
    let again = send(json!({"reuse": "none"})).await;
    assert_eq!(id(&first), id(&again));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    send(json!({"reuse": "all-succeeded"}))
        .await
        .is_problem(409, "idempotency_conflict");
}
