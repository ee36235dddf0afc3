//! The steps of a run in columns, what changed of them since, and their groups.

use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

/// A root that runs, and what it called: two that ended well, one that failed.
async fn family(plane: &TestPlane, agent: &FakeAgent) -> (String, String, String) {
    let root = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let run = plane.execution(&root).await["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    for target in ["a.echo", "a.echo", "a.boom"] {
        call(plane, &run, &attempt, target).await;
    }
    (run, root, attempt)
}

async fn call(plane: &TestPlane, run: &str, attempt: &str, target: &str) {
    let headers = [("x-run-id", run), ("x-parent-execution-id", attempt)];
    let path = format!("/api/v1/execute/{target}");
    plane
        .client
        .post_with(&path, &headers, &json!({"input": {}}))
        .await;
}

async fn columns(plane: &TestPlane, run: &str, query: &str) -> Value {
    let path = format!("/api/v1/runs/{run}/steps?view=columns{query}");
    let answer = plane.client.get(&path).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_come_in_columns_that_name_their_parents_by_place() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let (run, root, _) = family(&plane, &agent).await;
    let all = columns(&plane, &run, "").await;
    let rows = &all["columns"];
    assert_eq!(all["total"], 4, "{all}");
    assert_eq!(all["state"], "running");
    assert_eq!(rows["index"], json!([0, 1, 2, 3]));
    assert_eq!(rows["parent"], json!([-1, 0, 0, 0]));
    assert_eq!(rows["id"][0], root);
    let name = |row: usize| {
        let at = rows["name"][row].as_u64().unwrap() as usize;
        all["names"][at].as_str().unwrap().to_owned()
    };
    assert_eq!((name(0), name(3)), ("a.never".into(), "a.boom".into()));
    assert_eq!(
        rows["state"],
        json!(["running", "succeeded", "succeeded", "failed"])
    );
    assert_eq!(rows["category"][3], "agent_error");
    assert!(
        rows["why"][3].as_str().unwrap().starts_with("agent_error"),
        "{all}"
    );
    assert_eq!(rows["why"][1], Value::Null);
    for (name, column) in rows.as_object().unwrap() {
        assert_eq!(column.as_array().unwrap().len(), 4, "{name}");
    }
    // Its time is accounted for without a hole, from its start to now.
    let last = rows["segments"][0].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last[0], &last[2]),
        (&json!("running"), &Value::Null),
        "{all}"
    );
    // Children of a call are detached unless they are bound to it.
    assert_eq!(rows["flags"][1].as_u64().unwrap() & 1, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_follow_one_another_and_only_what_changed_comes_again() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let (run, root, attempt) = family(&plane, &agent).await;
    let first = columns(&plane, &run, "&limit=3").await;
    assert_eq!(first["columns"]["index"], json!([0, 1, 2]));
    let next = first["next"].as_str().unwrap();
    let second = columns(&plane, &run, &format!("&after={next}")).await;
    assert_eq!(second["columns"]["index"], json!([3]));
    assert_eq!(
        second["columns"]["parent"],
        json!([0]),
        "a place of an earlier window"
    );
    assert!(second.get("next").is_none(), "{second}");

    let position = second["position"].as_str().unwrap();
    let since = columns(&plane, &run, &format!("&after_position={position}")).await;
    assert_eq!(since["columns"]["id"], json!([]), "{since}");
    call(&plane, &run, &attempt, "a.echo").await;
    let other = plane.submit("a.echo", json!({})).await;
    plane.end_of(&other).await;
    let since = columns(&plane, &run, &format!("&after_position={position}")).await;
    assert_eq!(since["columns"]["index"], json!([4]), "{since}");
    assert_eq!(since["total"], 5);

    let some = columns(&plane, &run, &format!("&ids={root},{other}")).await;
    assert_eq!(some["columns"]["id"], json!([root]), "of this run alone");
    for bad in ["&after=x", "&after_position=x", "&ids=a%20b"] {
        let path = format!("/api/v1/runs/{run}/steps?view=columns{bad}");
        plane.client.get(&path).await.is_problem(400, "validation");
    }
    let path = format!("/api/v1/runs/{run}/steps?view=rows");
    plane.client.get(&path).await.is_problem(400, "validation");
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_add_up_to_the_run() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let (run, root, _) = family(&plane, &agent).await;
    let path = format!("/api/v1/runs/{run}/groups");
    let all = plane.client.get(&path).await.json();
    let groups = all["groups"].as_array().unwrap();
    let sum: u64 = groups.iter().map(|g| g["total"].as_u64().unwrap()).sum();
    assert_eq!((sum, &all["total"]), (4, &json!(4)), "{all}");
    assert_eq!(groups[0]["name"], "a.echo");
    assert_eq!(groups[0]["states"], json!({"succeeded": 2}));
    assert_eq!(groups[0]["parent"], root);
    let boom = groups.iter().find(|g| g["name"] == "a.boom").unwrap();
    assert!(boom["first_failed_id"].is_string(), "{all}");
    let below = plane
        .client
        .get(&format!("{path}?parent={root}"))
        .await
        .json();
    assert_eq!(below["groups"].as_array().unwrap().len(), 2, "{below}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_tells_its_time_and_what_it_waits_for() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let (run, root, attempt) = family(&plane, &agent).await;
    let path = format!("/api/v1/agents/a/executions/{attempt}/request-approval");
    let asked = json!({"approval_request_id": "r1", "expires_in_hours": 1});
    let answer = plane.client.post(&path, &asked).await;
    assert!(answer.status.is_success(), "{}", answer.json());
    let shown = eventually("it waits", || async {
        let shown = plane
            .client
            .get(&format!("/api/v1/runs/{run}"))
            .await
            .json();
        (shown["state"] == "waiting").then_some(shown)
    })
    .await;
    assert_eq!(shown["name"], "a.never");
    assert_eq!(shown["approvals"][0]["execution_id"], root);
    assert_eq!(shown["approvals"][0]["target"], "a.never");
    assert!(
        shown["why"].as_str().unwrap().contains("decision"),
        "{shown}"
    );
    assert!(shown["took"]["running_ms"].is_u64(), "{shown}");
    assert_eq!(shown["open_detached"], 0);
    let rows = columns(&plane, &run, "").await;
    let last = rows["columns"]["segments"][0]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(
        (&last[0], &last[2]),
        (&json!("waiting_person"), &Value::Null),
        "{rows}"
    );
    let why = plane.client.get(&format!("/api/v1/why/{run}")).await.json();
    assert_eq!(
        (&why["kind"], &why["rule"]["id"]),
        (&json!("run"), &json!("approval")),
        "{why}"
    );
    assert!(
        why["changes"].to_string().contains("\"act\":\"approve\""),
        "{why}"
    );
}
