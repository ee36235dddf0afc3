//! The protocol itself: versions, methods, and bodies that are none.

use http::Method;
use serde_json::{Value, json};

use super::{ACCEPT, Mcp};
use crate::support::TestPlane;

#[tokio::test(flavor = "multi_thread")]
async fn old_versions_shake_hands_and_the_new_one_only_asks() {
    let plane = TestPlane::start().await;
    let mcp = Mcp::of(&plane);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = mcp.ask("initialize", params).await;
        let result = answer.json()["result"].clone();
        assert_eq!(result["protocolVersion"], version, "{result}");
        assert_eq!(result["serverInfo"]["name"], "muster");
        assert!(result["capabilities"]["tools"].is_object(), "{result}");
        assert!(result["instructions"].is_string());
        assert_eq!(answer.header("mcp-session-id"), None, "no session");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    // A version that nobody knows is answered with one that the server has.
    let params = json!({"protocolVersion": "2019-01-01", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let answer = mcp.ask("initialize", params).await.json();
    let offered = answer["result"]["protocolVersion"].as_str().unwrap();
    assert!(offered.starts_with("202"), "{answer}");

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
    let headers = [
        ACCEPT,
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "server/discover"),
    ];
    let answer = plane
        .client
        .send(Method::POST, "/mcp", &headers, message.to_string())
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let versions = answer.json()["result"]["supportedVersions"].clone();
    assert!(
        versions.as_array().unwrap().contains(&json!("2026-07-28")),
        "{versions}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_sessions_has_no_stream_and_nothing_to_delete() {
    let plane = TestPlane::start().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let headers = [("accept", "text/event-stream")];
        let answer = plane
            .client
            .send(method.clone(), "/mcp", &headers, "")
            .await;
        answer.is_problem(405, "validation");
        assert_eq!(answer.header("allow"), Some("POST"), "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_gets_a_json_rpc_error() {
    let plane = TestPlane::start().await;
    let mcp = Mcp::of(&plane);
    let deep = |n: usize| {
        let (open, shut) = ("[".repeat(n), "]".repeat(n));
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"why","arguments":{open}{shut}}}}}"#
        )
    };
    let call = |head: &str| format!("{{{head}\"method\":\"tools/list\",\"params\":{{}}}}");
    let cases: Vec<(Vec<u8>, i64, Value)> = vec![
        (b"".to_vec(), -32_700, Value::Null),
        (b"hello".to_vec(), -32_700, Value::Null),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,".to_vec(),
            -32_700,
            Value::Null,
        ),
        (b"{\"a\":\"\xff\xfe\"}".to_vec(), -32_700, Value::Null),
        (b"[]".to_vec(), -32_600, Value::Null),
        (
            format!("[{}]", call(r#""jsonrpc":"2.0","id":1,"#)).into(),
            -32_600,
            Value::Null,
        ),
        (b"null".to_vec(), -32_600, Value::Null),
        (b"{}".to_vec(), -32_600, Value::Null),
        (deep(100_000).into(), -32_600, Value::Null),
        (call(r#""id":1,"#).into(), -32_600, json!(1)),
        (
            call(r#""jsonrpc":"1.0","id":"a","#).into(),
            -32_600,
            json!("a"),
        ),
        (
            call(r#""jsonrpc":"2.0","id":{},"#).into(),
            -32_600,
            Value::Null,
        ),
        (
            call(r#""jsonrpc":"2.0","id":1e400,"#).into(),
            -32_600,
            Value::Null,
        ),
        (
            call(r#""jsonrpc":"2.0","id":null,"#).into(),
            -32_600,
            Value::Null,
        ),
        (br#"{"jsonrpc":"2.0","id":5}"#.to_vec(), -32_600, json!(5)),
        (
            br#"{"jsonrpc":"2.0","id":5,"result":{}}"#.to_vec(),
            -32_600,
            json!(5),
        ),
        (
            br#"{"jsonrpc":"2.0","id":5,"method":7}"#.to_vec(),
            -32_600,
            json!(5),
        ),
        (
            br#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":[]}"#.to_vec(),
            -32_600,
            json!(5),
        ),
        (
            br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":5}}"#.to_vec(),
            -32_602,
            json!(5),
        ),
        (
            br#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#.to_vec(),
            -32_602,
            json!(5),
        ),
    ];
    for (body, code, id) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(90)]).into_owned();
        let answer = mcp.raw(body).await;
        let status = answer.status.as_u16();
        assert!(status == 400 || status == 200, "{shown}: {status}");
        let error = answer.json();
        assert_eq!(error["error"]["code"], code, "{shown}: {error}");
        assert_eq!(error["id"], id, "{shown}: {error}");
        assert_eq!(error["jsonrpc"], "2.0");
    }
    // As deep as everywhere else is a matter of the tool.
    let answer = mcp.raw(deep(400)).await.json();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#,
        "x".repeat(5 << 20)
    );
    mcp.raw(huge).await.is_problem(413, "too_large");
    let meta = json!({"x": "y".repeat(1 << 20)});
    let answer = mcp.ask("tools/list", json!({"_meta": meta})).await;
    assert_eq!(answer.status, 413);
    let error = answer.json()["error"].clone();
    assert_eq!(error["data"]["error_category"], "too_large", "{error}");
    assert_eq!(super::executions(&plane).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_methods_and_tools_are_errors_of_the_protocol_and_notifications_are_taken() {
    let plane = TestPlane::start().await;
    let mcp = Mcp::of(&plane);
    let answer = mcp.ask("nonsense/now", json!({})).await;
    assert_eq!(answer.json()["error"]["code"], -32_601, "{}", answer.json());
    for method in ["resources/read", "prompts/get", "logging/setLevel"] {
        let params = json!({"uri": "a:b", "name": "x", "level": "info"});
        let answer = mcp.ask(method, params).await;
        assert_eq!(answer.json()["error"]["code"], -32_601, "{method}");
    }
    let answer = mcp
        .ask("tools/call", json!({"name": "canary", "arguments": {}}))
        .await;
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], -32_602, "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("execute_reasoner") && !message.contains("canary"));
    assert_eq!(mcp.ask("ping", json!({})).await.json()["result"], json!({}));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = mcp.raw(note.to_string()).await;
    assert_eq!((answer.status.as_u16(), answer.bytes.len()), (202, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_do_not_fit_are_said_in_the_protocols_form() {
    let plane = TestPlane::start().await;
    let body = r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#;
    for (headers, status) in [
        (vec![("accept", "text/html")], 406),
        (vec![("accept", "application/json")], 406),
        (vec![ACCEPT, ("mcp-protocol-version", "1999-01-01")], 400),
    ] {
        let answer = plane
            .client
            .send(Method::POST, "/mcp", &headers, body)
            .await;
        assert_eq!(answer.status, status, "{headers:?}");
        let error = answer.json();
        assert_eq!(error["error"]["code"], -32_600, "{error}");
        assert_eq!(error["id"], "x", "{error}");
        assert_eq!(error["error"]["data"]["error_category"], "validation");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guard_stands_before_this_route_too() {
    let plane = TestPlane::start().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (header, status) in [
        (("origin", "https://evil.example"), 403),
        (("host", "evil.example"), 421),
        (("sec-fetch-site", "cross-site"), 403),
    ] {
        let headers = [ACCEPT, header];
        let answer = plane
            .client
            .send(Method::POST, "/mcp", &headers, body)
            .await;
        answer.is_problem(status, "permission_denied");
    }
    // Our own page may ask, and so may whoever calls us by a name of ours.
    let own = plane.url();
    let headers = [ACCEPT, ("origin", &*own)];
    let answer = plane
        .client
        .send(Method::POST, "/mcp", &headers, body)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_says_what_it_takes_gives_and_does() {
    let plane = TestPlane::start().await;
    let listed = Mcp::of(&plane).ask("tools/list", json!({})).await.json();
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "discover_agents",
            "get_reasoner_schema",
            "execute_reasoner",
            "wait_run",
            "get_run",
            "list_runs",
            "cancel_run",
            "why"
        ]
    );
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        let input = &tool["inputSchema"];
        assert_eq!(input["type"], "object", "{name}");
        assert_eq!(input["additionalProperties"], false, "{name}");
        for (argument, schema) in input["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}.{argument}");
        }
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        let hints = &tool["annotations"];
        let reads = !["execute_reasoner", "cancel_run"].contains(&name);
        assert_eq!(hints["readOnlyHint"], reads, "{name}");
        assert_eq!(hints["destructiveHint"], !reads, "{name}");
        assert_eq!(
            hints["idempotentHint"],
            name != "execute_reasoner",
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_do_not_fit_are_tool_errors_that_name_them() {
    let plane = TestPlane::start().await;
    let mcp = Mcp::of(&plane);
    for (tool, arguments, says) in [
        ("why", "{}", "id is required"),
        ("why", "null", "id is required"),
        ("why", "[1]", "arguments must be an object"),
        ("why", "\"canary\"", "arguments must be an object"),
        ("why", r#"{"id":7}"#, "id must be text"),
        (
            "why",
            r#"{"id":"x","canary":1}"#,
            "there is no argument canary; it takes id",
        ),
        ("why", r#"{"id":"a b"}"#, "id"),
        (
            "wait_run",
            r#"{"id":"x","wait_seconds":1e400}"#,
            "wait_seconds must be a whole number from 0 to 300",
        ),
        (
            "wait_run",
            r#"{"id":"x","wait_seconds":-1}"#,
            "wait_seconds must be",
        ),
        (
            "list_runs",
            r#"{"status":["nope"]}"#,
            "status must be a list of some of queued, running",
        ),
        ("list_runs", r#"{"cursor":"zzz"}"#, "cursor"),
        (
            "list_runs",
            r#"{"limit":0}"#,
            "limit must be a whole number from 1 to 100",
        ),
        (
            "list_runs",
            r#"{"since":"yesterday"}"#,
            "since must be a moment",
        ),
        (
            "discover_agents",
            r#"{"health_status":"fine"}"#,
            "health_status must be one of active",
        ),
        ("get_reasoner_schema", r#"{"target":"nodot"}"#, "dot"),
        ("execute_reasoner", r#"{"target":"nodot"}"#, "dot"),
        (
            "execute_reasoner",
            r#"{"target":"a.f","input":[]}"#,
            "input must be an object",
        ),
        (
            "execute_reasoner",
            r#"{"target":"a.f","priority":10}"#,
            "priority must be",
        ),
        (
            "execute_reasoner",
            r#"{"target":"a.f","session_id":"a\nb"}"#,
            "session_id must be",
        ),
        (
            "execute_reasoner",
            r#"{"target":"a.f","run_id":"a b"}"#,
            "run_id",
        ),
        (
            "execute_reasoner",
            r#"{"target":"a.f","parent_execution_id":".."}"#,
            "parent_execution_id",
        ),
        (
            "execute_reasoner",
            r#"{"target":"a.f","deadline_seconds":0}"#,
            "deadline_seconds must be",
        ),
        (
            "execute_reasoner",
            r#"{"target":"a.f","target":"a.f"}"#,
            "target is there twice",
        ),
    ] {
        let body = mcp.tool_raw(tool, arguments).await.refused("validation");
        let message = body["message"].as_str().unwrap();
        assert!(message.contains(says), "{tool} {arguments}: {message}");
    }
    assert_eq!(super::executions(&plane).await, 0);
}
