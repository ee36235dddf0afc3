//! Calls on the lane `mcp`: the same admission as everywhere, its refusals without a trace, and
//! the tools that look.

use serde_json::{Value, json};

use super::{Mcp, executions};
use crate::support::{FakeAgent, TestPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_answered_at_once_and_its_lane_is_seen_everywhere() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let given = mcp
        .tool(
            "execute_reasoner",
            json!({"target": "a.accept", "input": {"x": 1}, "actor_id": "me"}),
        )
        .await
        .ok();
    assert_eq!(given["done"], false);
    assert_eq!(given["replayed"], false);
    let next = given["next"].as_str().unwrap();
    assert!(
        next.contains("wait_run") && next.contains("execution_id as id"),
        "{next}"
    );
    let id = given["execution_id"].as_str().unwrap();
    let row = plane.end_of(id).await;
    assert_eq!(row["lane"], "mcp");
    assert_eq!(row["run_id"], given["run_id"]);
    assert_eq!(row["actor_id"], "me");
    let metrics = plane.client.get("/metrics").await;
    let text = String::from_utf8_lossy(&metrics.bytes).into_owned();
    let started = text.lines().find(|line| {
        line.starts_with("muster_executions_started_total") && line.contains(r#"lane="mcp""#)
    });
    assert!(started.is_some_and(|line| line.ends_with(" 1")), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_reaches_the_agent_to_the_byte_and_a_result_is_never_bent() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let input = r#"{"a":1e400,"b":123456789012345678901234567890,"c":"\ud800","d":0.10}"#;
    let arguments = format!(r#"{{ "target":"a.echo", "input": {input} , "wait_seconds":20 }}"#);
    let given = mcp.tool_raw("execute_reasoner", &arguments).await.ok();
    assert_eq!(&agent.seen()[0].body[..], input.as_bytes());
    let execution = &given["execution"];
    assert_eq!(
        execution["result_json"], input,
        "as text, because no double holds it"
    );
    assert!(execution.get("result").is_none());

    let plain = json!({"target": "a.echo", "input": {"n": 0.5, "s": "é\u{0}"}, "wait_seconds": 20});
    let given = mcp.tool("execute_reasoner", plain).await.ok();
    assert_eq!(
        given["execution"]["result"],
        json!({"n": 0.5, "s": "é\u{0}"})
    );
    let given = mcp
        .tool(
            "execute_reasoner",
            json!({"target": "a.large", "wait_seconds": 20}),
        )
        .await
        .ok();
    assert_eq!(given["execution"]["result_omitted"], true);
    assert_eq!(given["execution"]["result_size"], 300 * 1024 + 2);
    let given = mcp
        .tool(
            "execute_reasoner",
            json!({"target": "a.empty", "input": null, "wait_seconds": 20}),
        )
        .await
        .ok();
    assert_eq!(given["execution"]["result"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_is_the_error_and_the_execution_at_once() {
    let plane = TestPlane::start().await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    for (function, category, message) in [
        ("boom", "agent_error", None),
        ("fail", "agent_error", Some("kaput")),
        ("invalid", "validation", None),
        ("redirect", "bad_response", None),
    ] {
        let arguments = json!({"target": format!("a.{function}"), "wait_seconds": 20});
        let body = mcp
            .tool("execute_reasoner", arguments)
            .await
            .refused(category);
        assert_eq!(body["execution"]["status"], "failed", "{body}");
        assert_eq!(body["execution"]["execution_id"], body["execution_id"]);
        if let Some(message) = message {
            assert_eq!(body["message"], message);
            assert_eq!(body["execution"]["error_details"], json!({"why": 1}));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_leaves_no_row_no_payload_and_no_slot() {
    let plane = TestPlane::with(|config| {
        config.admission.max_concurrent_per_agent = 1;
        config.admission.at_capacity = muster_server::config::Full::Reject;
    })
    .await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let call = |target: &str, input: Value| json!({"target": target, "input": input});
    let large = "x".repeat(200 * 1024);
    for (arguments, category) in [
        (call("nobody.f", json!({})), "target_not_found"),
        (
            call("nobody.f", json!({"large": large})),
            "target_not_found",
        ),
        (call("a.nothing", json!({})), "target_not_found"),
        (call("a.strict", json!({})), "validation"),
        (call("a.strict", json!({"large": large})), "validation"),
    ] {
        let body = mcp
            .tool("execute_reasoner", arguments)
            .await
            .refused(category);
        assert!(body.get("execution_id").is_none(), "{body}");
    }
    assert_eq!(executions(&plane).await, 0);

    let running = mcp
        .tool("execute_reasoner", call("a.gate", json!({})))
        .await
        .ok();
    agent.until_seen(1).await;
    for input in [json!({}), json!({"large": large})] {
        let body = mcp
            .tool("execute_reasoner", call("a.echo", input))
            .await
            .refused("concurrency_limit");
        assert_eq!(body["retry_after"], 1, "{body}");
    }
    assert_eq!(executions(&plane).await, 1);
    agent.open_gate();
    plane
        .end_of(running["execution_id"].as_str().unwrap())
        .await;
    let given = mcp
        .tool(
            "execute_reasoner",
            json!({"target": "a.echo", "wait_seconds": 20}),
        )
        .await
        .ok();
    assert_eq!(given["done"], true, "the slot was given back");

    // A goodbye makes it down at once.
    let path = "/api/v1/nodes/a/shutdown";
    plane
        .client
        .post(path, &json!({"instance_id": agent.instance}))
        .await;
    let body = mcp
        .tool("execute_reasoner", call("a.echo", json!({})))
        .await
        .refused("node_unavailable");
    assert_eq!(body["retry_after"], 1, "{body}");
    assert_eq!(executions(&plane).await, 2);
    let metrics = plane.client.get("/metrics").await;
    let text = String::from_utf8_lossy(&metrics.bytes).into_owned();
    let refused = text
        .lines()
        .filter(|line| line.starts_with("muster_executions_refused_total"))
        .filter(|line| line.contains(r#"lane="mcp""#));
    assert!(refused.count() >= 4, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_its_cap_an_agent_queues_and_the_place_is_told() {
    let plane = TestPlane::with(|c| c.admission.max_concurrent_per_agent = 1).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    mcp.tool("execute_reasoner", json!({"target": "a.gate"}))
        .await
        .ok();
    agent.until_seen(1).await;
    for place in 0..2 {
        let given = mcp
            .tool("execute_reasoner", json!({"target": "a.echo"}))
            .await
            .ok();
        assert_eq!(given["status"], "queued", "{given}");
        assert_eq!(given["queue_position"], place);
        assert_eq!(given["queue_position_exact"], true);
    }
    let first = json!({"target": "a.echo", "priority": 0});
    let given = mcp.tool("execute_reasoner", first).await.ok();
    assert_eq!(given["queue_position"], 0, "class 0 goes first");
    let why = mcp
        .tool("why", json!({"id": given["execution_id"]}))
        .await
        .ok();
    assert!(
        why["verdict"]
            .as_str()
            .unwrap()
            .contains("waits for a slot"),
        "{why}"
    );
    agent.open_gate();
    let end = json!({"id": given["execution_id"], "wait_seconds": 20});
    assert_eq!(mcp.tool("wait_run", end).await.ok()["done"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_joins_on_this_lane_and_across_lanes() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let call = |n: u32| json!({"target": "a.echo", "input": {"n": n}, "idempotency_key": "k 1", "wait_seconds": 20});
    let first = mcp.tool("execute_reasoner", call(1)).await.ok();
    assert_eq!(first["replayed"], false);
    let again = mcp.tool("execute_reasoner", call(1)).await.ok();
    assert_eq!(again["replayed"], true);
    assert_eq!(again["execution_id"], first["execution_id"]);
    assert_eq!(
        again["execution"]["result"],
        json!({"n": 1}),
        "with its result"
    );
    mcp.tool("execute_reasoner", call(2))
        .await
        .refused("idempotency_conflict");
    let headers = [("idempotency-key", "k 1")];
    let body = json!({"input": {"n": 1}});
    let over_http = plane
        .client
        .post_with("/api/v1/execute/async/a.echo", &headers, &body)
        .await;
    assert_eq!(over_http.header("idempotency-replayed"), Some("true"));
    assert_eq!(over_http.json()["execution_id"], first["execution_id"]);
    assert_eq!(agent.seen().len(), 1);
    assert_eq!(executions(&plane).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_input_is_stored_once_and_arrives_whole() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let input = json!({"text": "y".repeat(1_500_000)});
    let arguments = json!({"target": "a.accept", "input": input, "wait_seconds": 20});
    let given = Mcp::of(&plane)
        .tool("execute_reasoner", arguments)
        .await
        .ok();
    assert_eq!(given["execution"]["result"], json!({"ok": true}));
    let seen: Value = serde_json::from_slice(&agent.seen()[0].body).unwrap();
    assert_eq!(seen, input);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_found_and_their_schemas_read() {
    let plane = TestPlane::start().await;
    let _one = FakeAgent::start(&plane, "a").await;
    let _two = FakeAgent::start(&plane, "b").await;
    let mcp = Mcp::of(&plane);
    let found = mcp
        .tool("discover_agents", json!({"function": "e*"}))
        .await
        .ok();
    assert_eq!(found["total_agents"], 2);
    let mut targets: Vec<&str> = found["agents"][0]["functions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|function| function["target"].as_str().unwrap())
        .collect();
    targets.sort_unstable();
    assert_eq!(targets, ["a.early", "a.echo", "a.empty"]);
    let page = mcp.tool("discover_agents", json!({"limit": 1})).await.ok();
    assert_eq!(
        (&page["has_more"], &page["next_offset"]),
        (&json!(true), &json!(1))
    );
    let page = mcp
        .tool("discover_agents", json!({"limit": 1, "offset": 1}))
        .await
        .ok();
    assert_eq!(page["agents"][0]["agent_id"], "b");
    assert_eq!(page["has_more"], false);
    let skills = page["agents"][0]["functions"].as_array().unwrap();
    assert!(
        skills
            .iter()
            .any(|f| f["type"] == "skill" && f["target"] == "b.add")
    );

    let schema = mcp
        .tool("get_reasoner_schema", json!({"target": "a.strict"}))
        .await
        .ok();
    assert_eq!(schema["input_schema"]["required"], json!(["count"]));
    assert_eq!(
        schema["output_schema"],
        Value::Null,
        "what is not known is null"
    );
    let schema = mcp
        .tool("get_reasoner_schema", json!({"target": "a.add"}))
        .await
        .ok();
    assert_eq!(schema["type"], "skill");
    for target in ["x.f", "a.f"] {
        let arguments = json!({"target": target});
        mcp.tool("get_reasoner_schema", arguments)
            .await
            .refused("target_not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_shown_with_its_steps_by_either_id_and_listed() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let root = mcp
        .tool("execute_reasoner", json!({"target": "a.gate"}))
        .await
        .ok();
    let attempt = agent.until_seen(1).await[0]
        .header("x-execution-id")
        .to_owned();
    let child = json!({"target": "a.echo", "input": {"c": 1}, "run_id": root["run_id"],
        "parent_execution_id": attempt, "wait_seconds": 20});
    let child = mcp.tool("execute_reasoner", child).await.ok();
    assert_eq!(child["run_id"], root["run_id"]);
    assert_eq!(
        child["execution"]["parent_execution_id"],
        root["execution_id"]
    );

    let run = mcp
        .tool("get_run", json!({"id": root["run_id"]}))
        .await
        .ok();
    assert_eq!(run["status"], "running");
    assert_eq!(run["counts"], json!({"running": 1, "succeeded": 1}));
    assert_eq!(run["execution"]["execution_id"], root["execution_id"]);
    let steps = run["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[1]["execution_id"], child["execution_id"]);
    let of_child = mcp
        .tool("get_run", json!({"id": child["execution_id"]}))
        .await
        .ok();
    assert_eq!(of_child["run_id"], root["run_id"]);
    assert_eq!(of_child["execution"]["result"], json!({"c": 1}));
    let first = mcp
        .tool("get_run", json!({"id": root["run_id"], "limit": 1}))
        .await
        .ok();
    let cursor = &first["next_cursor"];
    let second = json!({"id": root["run_id"], "limit": 1, "cursor": cursor});
    let second = mcp.tool("get_run", second).await.ok();
    assert_eq!(second["steps"][0]["execution_id"], child["execution_id"]);

    let other = mcp
        .tool(
            "execute_reasoner",
            json!({"target": "a.echo", "wait_seconds": 20}),
        )
        .await
        .ok();
    let running = mcp
        .tool("list_runs", json!({"status": ["running"]}))
        .await
        .ok();
    assert_eq!(running["runs"].as_array().unwrap().len(), 1);
    assert_eq!(running["runs"][0]["run_id"], root["run_id"]);
    let newest = mcp
        .tool("list_runs", json!({"limit": 1, "agent": "a"}))
        .await
        .ok();
    assert_eq!(newest["runs"][0]["run_id"], other["run_id"]);
    let older = json!({"limit": 1, "cursor": newest["next_cursor"]});
    let older = mcp.tool("list_runs", older).await.ok();
    assert_eq!(older["runs"][0]["run_id"], root["run_id"]);
    for tool in ["get_run", "wait_run", "why", "cancel_run"] {
        mcp.tool(tool, json!({"id": "run_nothing"}))
            .await
            .refused("not_found");
    }
    agent.open_gate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_or_one_execution_is_cancelled_and_nothing_twice() {
    let plane = TestPlane::start().await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mcp = Mcp::of(&plane);
    let root = mcp
        .tool("execute_reasoner", json!({"target": "a.never"}))
        .await
        .ok();
    let run = root["run_id"].clone();
    agent.until_seen(1).await;
    let join = || json!({"target": "a.never", "run_id": run});
    let one = mcp.tool("execute_reasoner", join()).await.ok();
    let two = mcp.tool("execute_reasoner", join()).await.ok();
    let id = json!({"id": one["execution_id"], "reason": "not this one"});
    let done = mcp.tool("cancel_run", id.clone()).await.ok();
    assert_eq!(done["cancelled"], json!([one["execution_id"]]));
    mcp.tool("cancel_run", id).await.refused("conflict");
    let done = mcp.tool("cancel_run", json!({"id": run})).await.ok();
    let ended = done["cancelled"].as_array().unwrap();
    assert_eq!(ended.len(), 2, "{done}");
    assert!(ended.contains(&root["execution_id"]) && ended.contains(&two["execution_id"]));
    let shown = mcp.tool("get_run", json!({"id": run})).await.ok();
    assert_eq!(shown["status"], "cancelled");
    assert!(shown["cancelled_at"].is_string());
    mcp.tool("execute_reasoner", join())
        .await
        .refused("run_cancelled");
    let cancelled = json!({"id": root["execution_id"]});
    let why = mcp.tool("why", cancelled).await.ok();
    assert_eq!(why["state"], "cancelled");
    eventually("the agent is told", || async {
        (agent.cancels().len() >= 3).then_some(())
    })
    .await;
    let agent = mcp.tool("why", json!({"id": "a"})).await.ok();
    assert_eq!(agent["kind"], "agent");
}
