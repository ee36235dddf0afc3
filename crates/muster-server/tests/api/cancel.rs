//! Cancels: final at once, told to the agent, refused when it is over.

use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_final_at_once_and_the_agent_is_told() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let path = format!("/api/v1/executions/{id}/cancel");
    let answer = plane.client.post(&path, &json!({"reason": "enough"})).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["cancelled"], json!([id]));
    assert_eq!(plane.execution(&id).await["status"], "cancelled");
    eventually("the agent is told", || async {
        (agent.cancels() == [attempt.clone()]).then_some(())
    })
    .await;
    plane
        .client
        .post(&path, &json!({}))
        .await
        .is_problem(409, "conflict");
    eventually("the receipt is there", || async {
        let events = plane
            .client
            .get(&format!("/api/v1/executions/{id}/events"))
            .await
            .json();
        events
            .to_string()
            .contains("execution.cancel_receipt")
            .then_some(())
    })
    .await;
    let late = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "cancelled", "error": "cancelled_by_control_plane"});
    assert_eq!(plane.client.post(&late, &said).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_its_members_and_takes_no_more() {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let run = [("x-run-id", "run_1")];
    let body = json!({"input": {}});
    let path = "/api/v1/execute/async/a.never";
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = plane.client.post_with(path, &run, &body).await;
        ids.push(answer.json()["execution_id"].as_str().unwrap().to_owned());
    }
    agent.until_seen(1).await;
    let answer = plane
        .client
        .post("/api/v1/workflows/run_1/cancel-tree", &json!({}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    assert_eq!(answer.json()["cancelled"].as_array().unwrap().len(), 3);
    for id in &ids {
        assert_eq!(plane.execution(id).await["status"], "cancelled");
    }
    plane
        .client
        .post_with(path, &run, &body)
        .await
        .is_problem(409, "run_cancelled");
    assert_eq!(agent.seen().len(), 1, "queued members were never sent");
}

/// By whom and why is said wherever a cancelled call says why, and a consequence counts in words.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_says_by_whom_and_why() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let other = FakeAgent::start(&plane, "b").await;
    let run = [("x-run-id", "run_1")];
    let body = json!({"input": {}});
    for (n, target) in ["a.never", "a.never", "b.never"].iter().enumerate() {
        let path = format!("/api/v1/execute/async/{target}");
        assert_eq!(plane.client.post_with(&path, &run, &body).await.status, 202);
        match n {
            2 => other.until_seen(1).await,
            n => agent.until_seen(n + 1).await,
        };
    }
    let tree = "/api/v1/workflows/run_1/cancel-tree";
    let would = plane
        .as_person(&format!("{tree}?dry_run=true"), &json!({}))
        .await
        .json();
    assert_eq!(
        would["text"],
        "3 executions end for good as cancelled; 2 agents are told, and their code may go on"
    );
    let done = plane.as_person(tree, &json!({"reason": "lunch"})).await;
    assert_eq!(done.status, 200, "{}", done.json());
    let get = async |path: &str| plane.client.get(path).await.json();
    let said = "cancelled by ada: lunch";
    let runs = get("/api/v1/runs").await;
    assert_eq!(runs["runs"][0]["why"], said, "{runs}");
    assert_eq!(get("/api/v1/runs/run_1").await["why"], said);
    let steps = get("/api/v1/runs/run_1/steps?view=columns").await;
    assert_eq!(
        steps["columns"]["why"],
        json!([said, said, said]),
        "{steps}"
    );
    let list = get("/api/v1/executions?state=cancelled").await;
    assert_eq!(list["executions"][0]["why"], said, "{list}");
    let why = get("/api/v1/why/run_1?kind=run").await;
    let verdict = why["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("a.never was cancelled after ") && verdict.ends_with(", by ada: lunch"),
        "{why}"
    );
    let facts = why["facts"].as_array().unwrap();
    let told = facts.iter().find(|fact| fact["by"] == "ada");
    assert_eq!(told.unwrap()["text"], "it was cancelled by ada: lunch");
}

/// What agents did about a cancel is in the steps and added up in the run; what nobody answered
/// for is never counted as stopped.
#[tokio::test(flavor = "multi_thread")]
async fn receipts_of_cancels_are_in_the_steps_and_in_the_run() {
    let directory = tempfile::tempdir().unwrap();
    for sqlite in [false, true] {
        let change = |config: &mut muster_server::Config| {
            config.agents.by_id.insert(
                "full".into(),
                muster_server::config::Agent {
                    max_concurrent: Some(1),
                    ..muster_server::config::Agent::default()
                },
            );
        };
        let plane = match sqlite {
            true => TestPlane::sqlite_with(directory.path(), change).await,
            false => TestPlane::with(change).await,
        };
        let agent = FakeAgent::start(&plane, "a").await;
        let full = FakeAgent::start(&plane, "full").await;
        let skills = FakeAgent::start(&plane, "skills").await;
        let gone = FakeAgent::start(&plane, "gone").await;
        let run = [("x-run-id", "run_1")];
        let body = json!({"input": {}});
        let mut ids = Vec::new();
        // A reasoner that stops, a skill that cannot be stopped, one whose agent is away, one
        // that runs and ends well, and one that was never sent.
        let targets = [
            ("a.never", &agent, 1),
            ("skills.hold", &skills, 1),
            ("gone.never", &gone, 1),
            ("a.echo", &agent, 2),
            ("full.never", &full, 1),
            ("full.never", &full, 1),
        ];
        for (target, agent, seen) in targets {
            let path = format!("/api/v1/execute/async/{target}");
            let said = plane.client.post_with(&path, &run, &body).await.json();
            ids.push(said["execution_id"].as_str().unwrap().to_owned());
            agent.until_seen(seen).await;
        }
        plane.end_of(&ids[3]).await;
        let get = async |path: &str| plane.client.get(path).await.json();
        let before = get("/api/v1/runs/run_1").await;
        assert_eq!(before.get("receipts"), None, "{before}");
        gone.kill().await;
        let tree = "/api/v1/workflows/run_1/cancel-tree";
        assert_eq!(plane.as_person(tree, &json!({})).await.status, 200);
        let shown = eventually("all have answered, or could not be told", || async {
            let run = get("/api/v1/runs/run_1").await;
            (run["receipts"]["unanswered"] == 0).then_some(run)
        })
        .await;
        assert_eq!(
            shown["receipts"],
            json!({"told": 3, "stopped": 2, "still_running": 1, "not_told": 1, "unanswered": 0}),
            "{shown}"
        );
        let steps = get("/api/v1/runs/run_1/steps?view=columns").await;
        let of = |name: &str| -> Vec<Value> {
            let columns = &steps["columns"];
            let place = |id: &String| {
                let all = columns["id"].as_array().unwrap();
                all.iter().position(|one| one == id).unwrap()
            };
            ids.iter()
                .map(|id| columns[name][place(id)].clone())
                .collect()
        };
        assert_eq!(
            of("receipt"),
            [
                json!("stopped"),
                json!("still_running"),
                json!("not_told"),
                Value::Null,
                json!("stopped"),
                Value::Null
            ],
            "{steps}"
        );
        let may_run: Vec<bool> = of("flags")
            .iter()
            .map(|flags| flags.as_u64().unwrap() & 512 != 0)
            .collect();
        assert_eq!(may_run, [false, true, true, false, false, false], "{steps}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_or_malformed_is_said_so() {
    let plane = TestPlane::start().await;
    let post = async |path: &str, body: &'static str| {
        plane.client.send(http::Method::POST, path, &[], body).await
    };
    post("/api/v1/executions/exec_0/cancel", "")
        .await
        .is_problem(404, "not_found");
    post("/api/v1/workflows/run_0/cancel-tree", "")
        .await
        .is_problem(404, "not_found");
    post("/api/v1/executions/a%20b/cancel", "")
        .await
        .is_problem(400, "validation");
    post("/api/v1/executions/exec_0/cancel", "{\"reason\":5}")
        .await
        .is_problem(400, "validation");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_caller_of_a_cancelled_execution_is_answered_409() {
    let plane = std::sync::Arc::new(TestPlane::start().await);
    let agent = FakeAgent::start(&plane, "a").await;
    let caller = {
        let plane = plane.clone();
        tokio::spawn(async move { plane.call("a.never", json!({})).await })
    };
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let id = attempt.split('~').next().unwrap();
    plane
        .client
        .post(&format!("/api/v1/executions/{id}/cancel"), &json!({}))
        .await;
    let body = caller.await.unwrap().is_problem(409, "cancelled");
    assert_eq!(body["execution_id"], id);
}
