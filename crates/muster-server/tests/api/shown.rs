//! What a dashboard shows: counts that equal what their links list, why things wait or failed,
//! and what an act would do before it is done.

use serde_json::{Value, json};

use crate::support::{FakeAgent, TestPlane, eventually};

/// One that runs and holds the only slot, two that wait for it, two that ended well, one that
/// failed.
async fn scene() -> (TestPlane, FakeAgent) {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let agent = FakeAgent::start(&plane, "a").await;
    for target in ["a.echo", "a.echo", "a.boom"] {
        plane.call(target, json!({"x": 1})).await;
    }
    plane.submit("a.never", json!({})).await;
    agent.until_seen(4).await;
    for _ in 0..2 {
        plane.submit("a.echo", json!({})).await;
    }
    (plane, agent)
}

async fn get(plane: &TestPlane, path: &str) -> Value {
    let answer = plane.client.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.json());
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_count_is_what_its_link_lists() {
    let (plane, _agent) = scene().await;
    for (list, name) in [("runs", "runs"), ("executions", "executions")] {
        let all = get(&plane, &format!("/api/v1/{list}")).await;
        assert_eq!(
            all["counts"],
            json!({"running": 1, "queued": 2, "succeeded": 2, "failed": 1}),
            "{all}"
        );
        assert_eq!((&all["total"], &all["count"]), (&json!(6), &json!(6)));
        for (state, count) in all["counts"].as_object().unwrap() {
            let path = format!("/api/v1/{list}?state={state}");
            let some = get(&plane, &path).await;
            assert_eq!(some["total"], *count, "{path}");
            assert_eq!(
                some[name].as_array().unwrap().len() as u64,
                count.as_u64().unwrap()
            );
            assert_eq!(
                some["counts"], all["counts"],
                "the filter without its states"
            );
            for row in some[name].as_array().unwrap() {
                assert_eq!(row["state"], *state, "{path}");
            }
        }
        for (query, total) in [
            ("function=echo", 4),
            ("agent=b", 0),
            ("category=agent_error", 1),
            ("q=a.ec", 4),
            ("q=BOOM", 1),
            ("origin=ci", 0),
            ("label=session=none", 0),
            ("reason=nothing", 0),
            // What is open is there whatever the range.
            ("since=2999-01-01T00:00:00Z", 3),
            ("until=2001-01-01T00:00:00Z", 3),
            ("since=2999-01-01T00:00:00Z&state=succeeded", 0),
        ] {
            let path = format!("/api/v1/{list}?{query}");
            let some = get(&plane, &path).await;
            assert_eq!(some["total"], total, "{path}: {some}");
            assert_eq!(some["count"], total, "{path}: {some}");
        }
        for bad in [
            "state=odd",
            "label=k=v",
            "label=k",
            "origin=mars",
            "sort=name",
            "since=now",
        ] {
            let answer = plane.client.get(&format!("/api/v1/{list}?{bad}")).await;
            answer.is_problem(400, "validation");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_or_failed_says_why_in_its_line() {
    let (plane, _agent) = scene().await;
    let runs = get(&plane, "/api/v1/runs").await;
    for run in runs["runs"].as_array().unwrap() {
        let why = run["why"].as_str();
        match run["state"].as_str().unwrap() {
            "queued" => assert!(why.unwrap().contains("slot of a"), "{run}"),
            "failed" => assert!(why.unwrap().starts_with("agent_error"), "{run}"),
            _ => assert_eq!(why, None, "{run}"),
        }
        assert!(run["name"].as_str().unwrap().starts_with("a."), "{run}");
        let ended = ["succeeded", "failed"].contains(&run["state"].as_str().unwrap());
        assert_eq!(run["ended_at"].is_string(), ended, "{run}");
        // One row, one truth: the list says what the detail says.
        let id = run["run_id"].as_str().unwrap();
        let one = get(&plane, &format!("/api/v1/runs/{id}")).await;
        for key in ["state", "why", "counts", "name", "ended_at"] {
            assert_eq!(one[key], run[key], "{key} of {id}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_the_consequence_and_changes_nothing() {
    let (plane, agent) = scene().await;
    let open = get(&plane, "/api/v1/executions?state=running").await;
    let id = open["executions"][0]["execution_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let run = open["executions"][0]["run_id"].as_str().unwrap().to_owned();
    let before = plane.execution(&id).await;
    let paths = [
        (
            format!("/api/v1/executions/{id}/cancel"),
            "cancel",
            "cancelled",
        ),
        (
            format!("/api/v1/workflows/{run}/cancel-tree"),
            "cancel_tree",
            "cancelled",
        ),
        (format!("/api/v1/executions/{id}/pause"), "pause", "paused"),
        (
            format!("/api/v1/workflows/{run}/pause-tree"),
            "pause_tree",
            "paused",
        ),
    ];
    for (path, act, becomes) in &paths {
        let would = plane
            .as_person(&format!("{path}?dry_run=true"), &json!({}))
            .await;
        assert_eq!(would.status, 200, "{path}: {}", would.json());
        let would = would.json();
        assert_eq!(
            (&would["dry_run"], &would["act"]),
            (&json!(true), &json!(act)),
            "{would}"
        );
        assert_eq!(
            (&would["total"], &would["at_agents"]),
            (&json!(1), &json!(1)),
            "{would}"
        );
        assert_eq!(would["affected"][0]["becomes"], *becomes, "{would}");
        let told = if act.starts_with("cancel") {
            json!(["a"])
        } else {
            json!([])
        };
        assert_eq!(would["told"], told, "{would}");
        assert!(!would["text"].as_str().unwrap().is_empty());
    }
    assert_eq!(plane.execution(&id).await["state"], before["state"]);
    assert!(agent.cancels().is_empty());
    // What could not be done is refused as it would be.
    let resume = format!("/api/v1/executions/{id}/resume?dry_run=true");
    plane
        .as_person(&resume, &json!({}))
        .await
        .is_problem(409, "conflict");
    let none = "/api/v1/executions/nobody/cancel?dry_run=true";
    plane
        .as_person(none, &json!({}))
        .await
        .is_problem(404, "not_found");
    // And then it is done, as it was told.
    let done = plane.as_person(&paths[0].0, &json!({})).await.json();
    assert_eq!(done["cancelled"], json!([id]), "{done}");
    eventually("the agent is told", || async {
        (!agent.cancels().is_empty()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_tells_what_it_would_reuse() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let root = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let run = plane.execution(&root).await["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let headers = [("x-run-id", &*run), ("x-parent-execution-id", &*attempt)];
    for target in ["a.echo", "a.boom"] {
        let path = format!("/api/v1/execute/{target}");
        plane
            .client
            .post_with(&path, &headers, &json!({"input": {}}))
            .await;
    }
    let path = format!("/api/v1/executions/{root}/restart?dry_run=true");
    let open = plane.client.post(&path, &json!({})).await.json();
    assert!(!open["refused"].as_array().unwrap().is_empty(), "{open}");
    let said = json!({"status": "failed", "error": "no"});
    plane
        .client
        .post(&format!("/api/v1/executions/{attempt}/status"), &said)
        .await;
    let would = plane.client.post(&path, &json!({})).await.json();
    assert_eq!(
        (&would["reuses"], &would["runs"]),
        (&json!(1), &json!(2)),
        "{would}"
    );
    assert_eq!(would["refused"], json!([]), "{would}");
    let fresh = plane
        .client
        .post(&path, &json!({"reuse": "none"}))
        .await
        .json();
    assert_eq!(
        (&fresh["reuses"], &fresh["runs"]),
        (&json!(0), &json!(3)),
        "{fresh}"
    );
    // What the restart would refuse is refused here too.
    for body in [json!({"inputs": {}}), json!({"input": {}, "reuze": "none"})] {
        let answer = plane.client.post(&path, &body).await;
        answer.is_problem(400, "validation");
    }
    assert_eq!(
        get(&plane, "/api/v1/runs").await["total"],
        1,
        "nothing was made"
    );
    let strict = plane.submit("a.strict", json!({"count": 1})).await;
    plane.end_of(&strict).await;
    let path = format!("/api/v1/executions/{strict}/restart?dry_run=true");
    let wrong = plane.client.post(&path, &json!({"input": {}})).await;
    wrong.is_problem(400, "validation");
    let right = plane
        .client
        .post(&path, &json!({"input": {"count": 2}}))
        .await;
    assert_eq!(right.status, 200, "{}", right.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_can_be_asked_why_in_one_shape() {
    let (plane, _agent) = scene().await;
    let queued = get(&plane, "/api/v1/executions?state=queued").await;
    let id = queued["executions"][0]["execution_id"].as_str().unwrap();
    let run = queued["executions"][0]["run_id"].as_str().unwrap();
    let failed = get(&plane, "/api/v1/executions?state=failed").await;
    let bad = failed["executions"][0]["execution_id"].as_str().unwrap();
    let agent = get(&plane, "/api/v1/nodes/a").await;
    let instance = agent["instances"][0]["instance_id"].as_str().unwrap();
    let health = get(&plane, "/api/v1/health").await;
    let duties = health["duties"].as_array().unwrap();
    let duty = duties[0]["name"].as_str().unwrap().to_owned();
    for duty in duties {
        let name = duty["name"].as_str().unwrap();
        let path = name.replace(' ', "%20");
        let why = get(&plane, &format!("/api/v1/why/{path}?kind=duty")).await;
        assert_eq!((&why["kind"], &why["id"]), (&json!("duty"), &json!(name)));
    }
    for (path, kind) in [
        (id.to_owned(), "execution"),
        (bad.to_owned(), "execution"),
        (run.to_owned(), "run"),
        ("a".to_owned(), "agent"),
        ("a?kind=queue".to_owned(), "queue"),
        (format!("{instance}?kind=instance"), "instance"),
        (format!("{duty}?kind=duty"), "duty"),
    ] {
        let why = get(&plane, &format!("/api/v1/why/{path}")).await;
        assert_eq!(why["kind"], kind, "{why}");
        assert!(!why["verdict"].as_str().unwrap().is_empty(), "{why}");
        // The line above it: what it is called, where it is, since when, and of which run.
        assert!(!why["name"].as_str().unwrap().is_empty(), "{why}");
        assert!(!why["state"].as_str().unwrap().is_empty(), "{why}");
        assert!(
            why["since"].is_string() || why["since_unknown"].is_string(),
            "{why}"
        );
        // The last beat of what is well is not when it became well.
        if why["state"] == "active" {
            assert!(why["since"].is_null(), "{why}");
        }
        if ["execution", "run"].contains(&kind) {
            assert!(
                why["since"].is_string() && why["status"].is_string(),
                "{why}"
            );
            assert_eq!(why["run_name"], why["name"], "each is its own root: {why}");
        }
        assert!(!why["facts"].as_array().unwrap().is_empty(), "{why}");
        assert!(!why["rule"]["text"].as_str().unwrap().is_empty(), "{why}");
        assert!(
            why["rule"]["doc"].as_str().unwrap().starts_with("docs/"),
            "{why}"
        );
    }
    let why = get(&plane, &format!("/api/v1/why/{id}")).await;
    assert_eq!(why["rule"]["id"], "agent_full", "{why}");
    assert!(
        why["rule"]["text"].as_str().unwrap().contains("at most 1"),
        "{why}"
    );
    assert!(why["changes"].to_string().contains("show_holders"), "{why}");
    let why = get(&plane, &format!("/api/v1/why/{bad}")).await;
    assert!(
        why["changes"].to_string().contains("\"act\":\"restart\""),
        "{why}"
    );
    for (path, status, word) in [
        ("nobody", 404, "not_found"),
        ("nobody?kind=duty", 404, "not_found"),
        ("nobody?kind=queue", 404, "target_not_found"),
        ("a?kind=odd", 400, "validation"),
    ] {
        let answer = plane.client.get(&format!("/api/v1/why/{path}")).await;
        let problem = answer.json();
        assert_eq!(answer.status, status, "{path}: {problem}");
        assert!(
            problem["error_category"] == word || problem["error_category"] == "not_found",
            "{path}: {problem}"
        );
    }
}

/// How large those payloads are of which no row knows is told of one execution, so that nobody
/// asks for one that is not there.
#[tokio::test(flavor = "multi_thread")]
async fn details_and_late_outcomes_tell_their_size() {
    let directory = tempfile::tempdir().unwrap();
    for sqlite in [false, true] {
        let plane = match sqlite {
            true => TestPlane::sqlite(directory.path()).await,
            false => TestPlane::start().await,
        };
        let agent = FakeAgent::start(&plane, "a").await;
        let with = plane.submit("a.fail", json!({})).await;
        plane.end_of(&with).await;
        let without = plane.submit("a.echo", json!({})).await;
        plane.end_of(&without).await;
        let late = plane.submit("a.never", json!({})).await;
        let attempt = agent.until_seen(3).await[2]
            .header("x-execution-id")
            .to_owned();
        let cancel = format!("/api/v1/executions/{late}/cancel");
        assert_eq!(plane.client.post(&cancel, &json!({})).await.status, 200);
        let said = json!({"status": "succeeded", "result": {"far": "too late"}});
        let path = format!("/api/v1/executions/{attempt}/status");
        plane.client.post(&path, &said).await;
        for query in ["", "?payload=none"] {
            for (id, kind, key) in [
                (&with, "error_details", "error_details_size"),
                (&late, "late", "late_size"),
            ] {
                let one = get(&plane, &format!("/api/v1/executions/{id}{query}")).await;
                let path = format!("/api/v1/executions/{id}/payload/{kind}");
                let payload = plane.client.get(&path).await;
                assert_eq!(payload.status, 200, "{}", payload.json());
                assert_eq!(one[key], payload.bytes.len(), "{one}");
                let why = get(&plane, &format!("/api/v1/why/{id}")).await;
                assert_eq!(why["execution"][key], one[key], "{why}");
            }
            let none = get(&plane, &format!("/api/v1/executions/{without}{query}")).await;
            for key in ["error_details_size", "late_size"] {
                assert_eq!(none.get(key), None, "{none}");
            }
        }
    }
}

/// A plane is called what its configuration says, or as its machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_plane_tells_its_name() {
    let plane = TestPlane::with(|c| c.server.name = Some("edge-plane".into())).await;
    for path in ["/api/v1/health", "/api/v1/system"] {
        assert_eq!(get(&plane, path).await["name"], "edge-plane");
    }
    assert_eq!(get(&plane, "/api/v1/session").await["plane"], "edge-plane");
    let plane = TestPlane::start().await;
    let name = get(&plane, "/api/v1/health").await["name"].clone();
    assert!(!name.as_str().unwrap().is_empty());
    // Who is not signed in learns nothing of the machine.
    assert_eq!(get(&plane, "/api/v1/session").await.get("plane"), None);
    let mut config = muster_server::Config::default();
    config.server.listen = "127.0.0.1:0".parse().unwrap();
    config.server.name = Some("a\u{7}b".into());
    let store = std::sync::Arc::new(muster_store::MemoryStore::new());
    let stores = muster_store::Stores {
        decisions: store.clone(),
        annex: store,
    };
    assert!(muster_server::Plane::start(config, stores).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_read_by_ranges() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let answer = plane.call("a.echo", json!({"text": "0123456789"})).await;
    let id = answer.json()["execution_id"].as_str().unwrap().to_owned();
    let bare = get(&plane, &format!("/api/v1/executions/{id}?payload=none")).await;
    assert_eq!(
        (&bare["state"], bare.get("result")),
        (&json!("succeeded"), None),
        "{bare}"
    );
    let path = format!("/api/v1/executions/{id}/payload/input");
    let whole = plane.client.get(&path).await;
    let size = whole.bytes.len();
    let part = |range: &'static str| {
        let (client, path) = (plane.client.clone(), path.clone());
        async move {
            client
                .send(http::Method::GET, &path, &[("range", range)], "")
                .await
        }
    };
    let first = part("bytes=0-3").await;
    assert_eq!(
        (first.status.as_u16(), &*first.bytes),
        (206, &whole.bytes[..4])
    );
    assert_eq!(
        first.header("content-range"),
        Some(&*format!("bytes 0-3/{size}"))
    );
    let last = part("bytes=-2").await;
    assert_eq!(
        (last.status.as_u16(), &*last.bytes),
        (206, &whole.bytes[size - 2..])
    );
    let beyond = part("bytes=100000-").await;
    beyond.is_problem(416, "validation");
    assert_eq!(
        beyond.header("content-range"),
        Some(&*format!("bytes */{size}"))
    );
}
