//! `PUT /api/v1/nodes/{agent}/cap` from an operator's side.

use http::Method;
use muster_store::Annex as _;
use muster_store::annex::AuditFilter;
use serde_json::{Value, json};

use crate::support::{Answer, FakeAgent, TestPlane, eventually};

async fn put(plane: &TestPlane, agent: &str, body: &str) -> Answer {
    let path = format!("/api/v1/nodes/{agent}/cap");
    let key = [
        ("x-api-key", plane.key()),
        ("content-type", "application/json"),
    ];
    plane
        .client
        .send(Method::PUT, &path, &key, body.to_owned())
        .await
}

async fn set(plane: &TestPlane, agent: &str, cap: Value) -> Value {
    let answer = put(plane, agent, &json!({ "cap": cap }).to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_is_set_shown_audited_and_kept_and_more_room_is_used_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let cap_of = |plane: Value| plane["cap"].clone();
    {
        let plane = TestPlane::sqlite_with(directory.path(), |c| {
            c.admission.max_concurrent_per_agent = 1;
        })
        .await;
        let agent = FakeAgent::start(&plane, "a").await;
        for _ in 0..3 {
            plane.submit("a.gate", json!({})).await;
        }
        agent.until_seen(1).await;
        let now = set(&plane, "a", json!(3)).await;
        assert_eq!(
            now,
            json!({"agent": "a", "cap": 3, "source": "set", "was": 1, "was_source": "config"})
        );
        agent.until_seen(3).await;
        let lower = set(&plane, "a", json!(2)).await;
        assert_eq!(
            (&lower["was"], &lower["was_source"]),
            (&json!(3), &json!("set"))
        );
        let queue = plane.client.get("/api/v1/queues/a").await.json();
        assert_eq!(
            (&queue["cap"], &queue["running"], &queue["over_cap"]),
            (&json!(2), &json!(3), &json!(1))
        );
        eventually("all end", || async {
            agent.open_gate();
            (plane.client.get("/api/v1/queues/a").await.json()["running"] == 0).then_some(())
        })
        .await;
        let node = plane.client.get("/api/v1/nodes/a").await.json();
        assert_eq!(node["slots"]["cap"], 2, "{node}");
        plane.running.stop().await;
    }
    let plane = TestPlane::sqlite_with(directory.path(), |c| {
        c.admission.max_concurrent_per_agent = 1;
    })
    .await;
    let queue = plane.client.get("/api/v1/queues/a").await.json();
    assert_eq!(cap_of(queue), 2, "a restart keeps it");
    assert_eq!(
        set(&plane, "a", json!(0)).await["cap"],
        Value::Null,
        "0 is no cap"
    );
    let back = set(&plane, "a", Value::Null).await;
    assert_eq!(
        (&back["cap"], &back["source"], &back["was"]),
        (&json!(1), &json!("config"), &Value::Null)
    );
    let owner = muster_server::auth::read_owner_key(directory.path())
        .unwrap()
        .unwrap();
    let audit = plane
        .client
        .send(
            Method::GET,
            "/api/v1/audit",
            &[("x-api-key", owner.expose())],
            "",
        )
        .await;
    let text = String::from_utf8_lossy(&audit.bytes).into_owned();
    assert_eq!(text.matches("cap.set").count(), 4, "{text}");
}

/// Who changed what is on record in the commit that changed it; what changed nothing is not.
#[tokio::test(flavor = "multi_thread")]
async fn an_act_has_its_line_and_one_that_changes_nothing_has_none() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let store = plane.memory.clone().unwrap();
    let lines = || -> Vec<String> {
        let lines = store.audit(&AuditFilter::newest(1_000)).unwrap();
        lines
            .into_iter()
            .rev()
            .map(|(_, line)| line.action)
            .collect()
    };
    let before = lines().len();
    let id = plane.submit("a.gate", json!({})).await;
    agent.until_seen(1).await;
    let run = plane.execution(&id).await["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    for (path, body) in [
        ("/api/v1/unhold".to_owned(), json!({})),
        ("/api/v1/unhold".to_owned(), json!({"agent": "a"})),
        ("/api/v1/hold".to_owned(), json!({"reason": "why"})),
        ("/api/v1/unhold".to_owned(), json!({})),
        (
            format!("/api/v1/executions/{id}/cancel"),
            json!({"reason": "enough"}),
        ),
        (format!("/api/v1/executions/{id}/cancel"), json!({})),
        (format!("/api/v1/workflows/{run}/cancel-tree"), json!({})),
        (
            "/api/v1/executions/exec_nobody/cancel".to_owned(),
            json!({}),
        ),
    ] {
        plane.as_person(&path, &body).await;
    }
    set(&plane, "a", json!(2)).await;
    set(&plane, "a", json!(2)).await;
    assert_eq!(
        lines()[before..],
        ["hold.set", "hold.lifted", "execution.cancelled", "cap.set"]
    );
}

/// An agent goes off the list when it is not there any more, and its id is free again.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_retired_when_it_is_down_and_nothing_of_it_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(directory.path()).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let id = plane.submit("a.gate", json!({})).await;
    let path = "/api/v1/nodes/a/retire";
    let alive = plane
        .as_person(path, &Value::Null)
        .await
        .is_problem(409, "conflict");
    assert_eq!(alive["details"]["open"], 1, "{alive}");
    eventually("it ends", || async {
        agent.open_gate();
        (plane.execution(&id).await["status"] == "succeeded").then_some(())
    })
    .await;
    let body = json!({ "instance_id": agent.instance });
    plane.client.post("/api/v1/nodes/a/shutdown", &body).await;
    agent.kill().await;
    let would = eventually("it is down", || async {
        let answer = plane
            .as_person(&format!("{path}?dry_run=true"), &Value::Null)
            .await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;
    assert_eq!(
        (&would["dry_run"], &would["agent"]),
        (&json!(true), &json!("a"))
    );
    assert_eq!(
        plane.client.get("/api/v1/nodes/a").await.status,
        200,
        "only asked"
    );
    assert_eq!(
        plane.client.post(path, &Value::Null).await.status,
        401,
        "a person's"
    );
    assert_eq!(plane.as_person(path, &Value::Null).await.status, 200);
    plane
        .client
        .get("/api/v1/nodes/a")
        .await
        .is_problem(404, "not_found");
    plane
        .as_person(path, &Value::Null)
        .await
        .is_problem(404, "not_found");
    plane
        .call("a.echo", json!({}))
        .await
        .is_problem(404, "target_not_found");
    assert_eq!(
        plane.execution(&id).await["status"],
        "succeeded",
        "its executions stay"
    );
    let _again = FakeAgent::start(&plane, "a").await;
    assert_eq!(plane.call("a.echo", json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_needs_a_person_an_agent_and_a_number() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let path = "/api/v1/nodes/a/cap";
    let keyless = plane
        .client
        .send(Method::PUT, path, &[], "{\"cap\":1}")
        .await;
    keyless.is_problem(401, "unauthenticated");
    put(&plane, "nobody", "{\"cap\":1}")
        .await
        .is_problem(404, "not_found");
    for bad in [
        "",
        "{}",
        "[]",
        "{\"cap\":-1}",
        "{\"cap\":1.5}",
        "{\"cap\":\"2\"}",
        "{\"cap\":1000001}",
        "{\"cap\":1e9}",
        "{\"cap\":1,\"x\":2}",
    ] {
        put(&plane, "a", bad).await.is_problem(400, "validation");
    }
}
