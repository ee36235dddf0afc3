//! One admission, four lanes: every refusal on each of them answers with its status, its
//! category and a `Retry-After` that header and field agree on, and leaves no row, no payload
//! and no slot.

use muster_server::Config;
use muster_server::config::{Full, LlmEndpoint, Span};
use serde_json::{Value, json};
use std::time::Duration;

use crate::support::{Answer, Client, FakeAgent, TestPlane, eventually};

/// How a call comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Sync,
    Async,
    Restart,
    Mcp,
}

const LANES: [Lane; 4] = [Lane::Sync, Lane::Async, Lane::Restart, Lane::Mcp];

/// What a refusal must look like.
struct Want {
    status: u16,
    category: &'static str,
    retry_after: Option<u64>,
}

fn want(status: u16, category: &'static str, retry_after: Option<u64>) -> Want {
    Want {
        status,
        category,
        retry_after,
    }
}

/// What is asked for, on whatever lane.
struct Order {
    target: String,
    /// An execution of that target which a restart names.
    of: String,
    input: Value,
    context: Option<Value>,
    key: Option<&'static str>,
    /// Headers of the caller: its run.
    run: Option<String>,
}

impl Order {
    fn of(target: &str, of: &str) -> Self {
        Self {
            target: target.into(),
            of: of.into(),
            input: json!({"n": 1}),
            context: None,
            key: None,
            run: None,
        }
    }

    fn body(&self) -> Value {
        let mut body = json!({"input": self.input});
        if let Some(context) = &self.context {
            body["context"] = context.clone();
        }
        body
    }
}

/// Sends an order; `None` where the lane cannot say it.
async fn send(client: &Client, lane: Lane, order: &Order) -> Answer {
    let mut headers: Vec<(&str, &str)> = Vec::new();
    if let Some(key) = order.key {
        headers.push(("idempotency-key", key));
    }
    if let Some(run) = &order.run {
        headers.push(("x-run-id", run));
    }
    let post = http::Method::POST;
    match lane {
        Lane::Sync | Lane::Async => {
            let how = if lane == Lane::Sync { "" } else { "async/" };
            let path = format!("/api/v1/execute/{how}{}", order.target);
            client
                .send(post, &path, &headers, order.body().to_string())
                .await
        }
        Lane::Restart => {
            let mut body = order.body();
            body["scope"] = json!("execution");
            let path = format!("/api/v1/executions/{}/restart", order.of);
            client.send(post, &path, &headers, body.to_string()).await
        }
        Lane::Mcp => {
            let mut arguments = order.body();
            arguments["target"] = json!(order.target);
            if let Some(key) = order.key {
                arguments["idempotency_key"] = json!(key);
            }
            if let Some(run) = &order.run {
                arguments["run_id"] = json!(run);
            }
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "execute_reasoner", "arguments": arguments}});
            let headers = [
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", "2025-06-18"),
            ];
            client.send(post, "/mcp", &headers, body.to_string()).await
        }
    }
}

/// Asserts the refusal, and that nothing of it is left.
async fn refused(plane: &TestPlane, lane: Lane, order: &Order, want: &Want) {
    let before = held(plane).await;
    let answer = send(&plane.client, lane, order).await;
    let what = format!(
        "{lane:?} {}: {}",
        want.category,
        String::from_utf8_lossy(&answer.bytes)
    );
    if lane == Lane::Mcp {
        let said = structured(&answer);
        assert_eq!(said["error_category"], want.category, "{what}");
        assert_eq!(
            said.get("retry_after").and_then(Value::as_u64),
            want.retry_after,
            "{what}"
        );
        assert!(said.get("execution_id").is_none(), "{what}");
    } else {
        // Header and field are compared in it.
        let said = answer.is_problem(want.status, want.category);
        assert_eq!(
            said.get("retry_after").and_then(Value::as_u64),
            want.retry_after,
            "{what}"
        );
        assert!(said.get("execution_id").is_none(), "{what}");
        assert!(answer.header("x-execution-id").is_none(), "{what}");
    }
    assert_eq!(held(plane).await, before, "{what}: something is left");
}

/// The tool result's structured error, whichever way it was framed.
fn structured(answer: &Answer) -> Value {
    let text = String::from_utf8_lossy(&answer.bytes);
    let json = text
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap_or(&text);
    let answer: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["structuredContent"].clone()
}

/// Rows, payloads and slots: what a refusal must not change.
async fn held(plane: &TestPlane) -> (usize, usize, Vec<(String, u64, u64, u64)>) {
    let all = plane
        .client
        .get("/api/v1/executions?limit=500")
        .await
        .json();
    let rows = all["executions"].as_array().unwrap().len();
    let payloads = plane.memory.as_ref().unwrap().payload_count();
    let queues = plane.client.get("/api/v1/queues").await.json();
    let slots = queues["queues"].as_array().unwrap().iter().map(|queue| {
        let number = |name: &str| queue[name].as_u64().unwrap();
        let agent = queue["agent"].as_str().unwrap().to_owned();
        (
            agent,
            number("running"),
            number("queued"),
            number("waiting_callers"),
        )
    });
    (rows, payloads, slots.collect())
}

/// An ended execution of a target, for the restart lane.
async fn ended(plane: &TestPlane, target: &str) -> String {
    let id = plane.submit(target, json!({"n": 1, "count": 1})).await;
    plane.end_of(&id).await;
    id
}

async fn on_all_lanes(plane: &TestPlane, order: &Order, want: Want) {
    for lane in LANES {
        refused(plane, lane, order, &want).await;
    }
}

async fn plane(change: impl FnOnce(&mut Config)) -> TestPlane {
    TestPlane::with(change).await
}

#[tokio::test(flavor = "multi_thread")]
async fn row_2_what_is_malformed_is_validation() {
    let plane = plane(|_| {}).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let of = ended(&plane, "a.echo").await;
    let mut order = Order::of("a.echo", &of);
    order.input = json!([1]);
    for lane in [Lane::Sync, Lane::Async, Lane::Restart] {
        refused(&plane, lane, &order, &want(400, "validation", None)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_a_key_with_another_body_is_a_conflict() {
    let plane = plane(|_| {}).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let of = ended(&plane, "a.echo").await;
    let mut order = Order::of("a.echo", &of);
    order.key = Some("used");
    let first = send(&plane.client, Lane::Async, &order).await;
    assert_eq!(first.status, 202);
    plane
        .end_of(first.json()["execution_id"].as_str().unwrap())
        .await;
    order.input = json!({"n": 2});
    on_all_lanes(&plane, &order, want(409, "idempotency_conflict", None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_4_unknown_targets() {
    let plane = plane(|_| {}).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let of = ended(&plane, "a.echo").await;
    for target in ["nobody.echo", "a.nothing"] {
        let order = Order::of(target, &of);
        for lane in [Lane::Sync, Lane::Async, Lane::Mcp] {
            refused(&plane, lane, &order, &want(404, "target_not_found", None)).await;
        }
    }
    // A restart names an execution, whose function may be gone since.
    let mut fewer = agent.registration();
    fewer["reasoners"] = json!([{"id": "accept"}]);
    plane.client.post("/api/v1/nodes/register", &fewer).await;
    let order = Order::of("a.echo", &of);
    on_all_lanes(&plane, &order, want(404, "target_not_found", None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_5_required_fields() {
    let plane = plane(|_| {}).await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let of = ended(&plane, "a.strict").await;
    let order = Order::of("a.strict", &of);
    on_all_lanes(&plane, &order, want(400, "validation", None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_6_a_cancelled_run_takes_nothing_and_an_open_one_no_restart() {
    let plane = plane(|_| {}).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let open = plane.submit("a.never", json!({})).await;
    agent.until_seen(1).await;
    let conflict = want(409, "conflict", None);
    refused(
        &plane,
        Lane::Restart,
        &Order::of("a.never", &open),
        &conflict,
    )
    .await;
    let run = plane.execution(&open).await["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/v1/workflows/{run}/cancel-tree");
    assert_eq!(plane.client.post(&path, &json!({})).await.status, 200);
    let mut order = Order::of("a.echo", &open);
    order.run = Some(run);
    for lane in [Lane::Sync, Lane::Async, Lane::Mcp] {
        refused(&plane, lane, &order, &want(409, "run_cancelled", None)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_7_tags_that_are_not_approved() {
    let plane = plane(|c| c.admission.tags_need_approval = vec!["fin*".into()]).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let of = ended(&plane, "a.echo").await;
    let mut tagged = agent.registration();
    tagged["proposed_tags"] = json!(["finance"]);
    let answer = plane.client.post("/api/v1/nodes/register", &tagged).await;
    assert_eq!(answer.json()["status"], "pending_approval");
    let mut order = Order::of("a.echo", &of);
    on_all_lanes(&plane, &order, want(503, "agent_pending_approval", None)).await;
    order.input = json!({"text": "x".repeat(100 * 1024)});
    on_all_lanes(&plane, &order, want(503, "agent_pending_approval", None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_9_a_full_disk_and_a_plane_that_leaves() {
    let plane = plane(|c| c.server.shutdown_timeout = Span(Duration::from_secs(20))).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let of = ended(&plane, "a.echo").await;
    let order = Order::of("a.echo", &of);
    plane
        .running
        .app
        .driver
        .tell(muster_engine::Event::StoreRoom { full: true });
    on_all_lanes(&plane, &order, want(503, "store_full", Some(30))).await;
    plane
        .running
        .app
        .driver
        .tell(muster_engine::Event::StoreRoom { full: false });
    // Something that is held keeps the plane from leaving at once.
    let seen = agent.seen().len();
    let open = plane.submit("a.never", json!({})).await;
    agent.until_seen(seen + 1).await;
    plane
        .running
        .app
        .driver
        .tell(muster_engine::Event::Draining);
    on_all_lanes(&plane, &order, want(503, "control_plane_shutdown", Some(1))).await;
    assert_eq!(plane.execution(&open).await["status"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_an_agent_that_is_down() {
    let plane = plane(|_| {}).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let of = ended(&plane, "a.echo").await;
    let goodbye = format!("/api/v1/nodes/{}/shutdown", agent.id);
    plane
        .client
        .post(&goodbye, &json!({"reason": "signal"}))
        .await;
    let mut order = Order::of("a.echo", &of);
    on_all_lanes(&plane, &order, want(503, "node_unavailable", Some(1))).await;
    order.input = json!({"text": "x".repeat(100 * 1024)});
    on_all_lanes(&plane, &order, want(503, "node_unavailable", Some(1))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_11_an_open_llm_circuit() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/health", nobody.local_addr().unwrap());
    drop(nobody);
    let plane = plane(|c| {
        c.llm_health.enabled = true;
        c.llm_health.endpoints = vec![LlmEndpoint {
            name: "main".into(),
            url: url.clone(),
        }];
        c.llm_health.check_interval = Span(Duration::from_millis(100));
        c.llm_health.failure_threshold = 2;
        c.llm_health.recovery_timeout = Span(Duration::from_secs(600));
    })
    .await;
    let _agent = FakeAgent::start(&plane, "a").await;
    let of = ended(&plane, "a.echo").await;
    eventually("the circuit opens", || async {
        let circuits = plane.client.get("/api/v1/llm-circuits").await.json();
        (circuits["circuits"][0]["state"] == "open").then_some(())
    })
    .await;
    for endpoint in ["main", &url] {
        let mut order = Order::of("a.echo", &of);
        order.context = Some(json!({"llm_endpoint": endpoint}));
        let answer = send(&plane.client, Lane::Async, &order).await;
        let left = answer.is_problem(503, "llm_unavailable")["retry_after"]
            .as_u64()
            .unwrap();
        assert!((590..=600).contains(&left), "{left}");
        for lane in LANES {
            // A second may pass between two calls.
            let before = held(&plane).await;
            let answer = send(&plane.client, lane, &order).await;
            let said = match lane {
                Lane::Mcp => structured(&answer),
                _ => answer.is_problem(503, "llm_unavailable"),
            };
            assert_eq!(said["error_category"], "llm_unavailable", "{lane:?}");
            let left = said["retry_after"].as_u64().unwrap();
            assert!((580..=600).contains(&left), "{lane:?} {left}");
            assert_eq!(held(&plane).await, before, "{lane:?}: something is left");
        }
    }
    let mut other = Order::of("a.echo", &of);
    other.context = Some(json!({"llm_endpoint": "another"}));
    assert_eq!(send(&plane.client, Lane::Sync, &other).await.status, 200);
    let health = plane.client.get("/api/v1/health").await.json();
    assert!(health["problems"].to_string().contains("main"), "{health}");
    let metrics = plane.client.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.bytes).into_owned();
    assert!(
        metrics.contains("muster_llm_circuit_open{endpoint=\"main\"} 1"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn row_12_calls_that_are_nested_too_deep() {
    let plane = plane(|_| {}).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let mut parent = plane.submit("a.never", json!({})).await;
    for n in 1..=65 {
        let seen = agent.until_seen(n).await;
        let attempt = seen.last().unwrap().header("x-execution-id").to_owned();
        assert!(attempt.starts_with(&parent), "{attempt} {parent}");
        let call = async |path: &str| {
            let headers = [("x-parent-execution-id", attempt.as_str())];
            let post = http::Method::POST;
            plane
                .client
                .send(post, path, &headers, "{\"input\":{}}")
                .await
        };
        if n <= 64 {
            let answer = call("/api/v1/execute/async/a.never").await;
            assert_eq!(answer.status, 202, "{}", answer.json());
            parent = answer.json()["execution_id"].as_str().unwrap().to_owned();
            continue;
        }
        let before = held(&plane).await;
        for path in ["/api/v1/execute/async/a.never", "/api/v1/execute/a.never"] {
            let said = call(path).await.is_problem(429, "concurrency_limit");
            assert!(said.get("retry_after").is_none(), "{said}");
        }
        let arguments = json!({"target": "a.never", "parent_execution_id": attempt});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "execute_reasoner", "arguments": arguments}});
        let headers = [("accept", "application/json, text/event-stream")];
        let post = http::Method::POST;
        let answer = plane
            .client
            .send(post, "/mcp", &headers, body.to_string())
            .await;
        assert_eq!(structured(&answer)["error_category"], "concurrency_limit");
        assert_eq!(held(&plane).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_13_a_full_agent_that_refuses_and_a_full_queue() {
    let refusing = plane(|c| {
        c.admission.max_concurrent_per_agent = 1;
        c.admission.at_capacity = Full::Reject;
    })
    .await;
    let agent = FakeAgent::start(&refusing, "a").await;
    let of = ended(&refusing, "a.echo").await;
    let seen = agent.seen().len();
    refusing.submit("a.never", json!({})).await;
    agent.until_seen(seen + 1).await;
    let order = Order::of("a.echo", &of);
    on_all_lanes(&refusing, &order, want(429, "concurrency_limit", Some(1))).await;

    let full = plane(|c| {
        c.admission.max_concurrent_per_agent = 1;
        c.admission.queue_capacity = 1;
    })
    .await;
    let agent = FakeAgent::start(&full, "a").await;
    let of = ended(&full, "a.echo").await;
    let seen = agent.seen().len();
    full.submit("a.never", json!({})).await;
    agent.until_seen(seen + 1).await;
    full.submit("a.echo", json!({})).await;
    let order = Order::of("a.echo", &of);
    on_all_lanes(&full, &order, want(503, "concurrency_limit", Some(1))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_0_a_key_without_the_scope_and_row_1_a_body_too_large() {
    let dir = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite_with(dir.path(), |c| c.auth.require_key = true).await;
    let owner = std::fs::read_to_string(muster_server::auth::owner_key_path(dir.path())).unwrap();
    let owner = [("x-api-key", owner.trim())];
    let made = plane
        .client
        .send(
            http::Method::POST,
            "/api/v1/keys",
            &owner,
            json!({"name": "reader", "scopes": ["read"]}).to_string(),
        )
        .await;
    let made = made.json();
    let reader = made["key"].as_str().unwrap_or_else(|| panic!("{made}"));
    for path in [
        "/api/v1/execute/a.echo",
        "/api/v1/execute/async/a.echo",
        "/api/v1/executions/exec_1/restart",
        "/mcp",
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":
            {"name": "execute_reasoner", "arguments": {"target": "a.echo"}}, "input": {}});
        let headers = [
            ("x-api-key", reader),
            ("accept", "application/json, text/event-stream"),
        ];
        let post = http::Method::POST;
        let answer = plane
            .client
            .send(post.clone(), path, &headers, call.to_string())
            .await;
        if path == "/mcp" && answer.status == 200 {
            assert_eq!(structured(&answer)["error_category"], "permission_denied");
        } else {
            answer.is_problem(403, "permission_denied");
        }
        let nobody = plane.client.send(post, path, &[], call.to_string()).await;
        nobody.is_problem(401, "unauthenticated");
    }
    let large = format!(
        "{{\"input\":{{\"x\":\"{}\"}}}}",
        "x".repeat(5 * 1024 * 1024)
    );
    for path in [
        "/api/v1/execute/a.echo",
        "/api/v1/execute/async/a.echo",
        "/api/v1/executions/exec_1/restart",
    ] {
        let post = http::Method::POST;
        let answer = plane.client.send(post, path, &owner, large.clone()).await;
        answer.is_problem(413, "too_large");
    }
    let all = plane
        .client
        .send(http::Method::GET, "/api/v1/executions", &owner, "")
        .await;
    assert_eq!(all.json()["executions"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_only_calls_restarts_only_what_it_called_and_decides_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let plane = TestPlane::sqlite(dir.path()).await;
    let agent = FakeAgent::start(&plane, "a").await;
    let owner = std::fs::read_to_string(muster_server::auth::owner_key_path(dir.path())).unwrap();
    let owner = [("x-api-key", owner.trim())];
    let body = json!({"name": "caller", "scopes": ["call"]}).to_string();
    let made = plane
        .client
        .send(http::Method::POST, "/api/v1/keys", &owner, body)
        .await
        .json();
    let caller = [("x-api-key", made["key"].as_str().unwrap())];
    let post = http::Method::POST;
    let others = ended(&plane, "a.echo").await;
    let path = format!("/api/v1/executions/{others}/restart");
    let answer = plane.client.send(post.clone(), &path, &caller, "{}").await;
    answer.is_problem(404, "not_found");
    let path = "/api/v1/execute/async/a.echo";
    let own = plane
        .client
        .send(post.clone(), path, &caller, "{\"input\":{}}")
        .await
        .json();
    let own = own["execution_id"].as_str().unwrap();
    plane.end_of(own).await;
    let path = format!("/api/v1/executions/{own}/restart");
    let answer = plane.client.send(post.clone(), &path, &caller, "").await;
    assert_eq!(answer.status, 202, "{}", answer.json());

    // Without a secret of the plane's a decision is a matter of scope like everything else.
    let hook = "/api/v1/webhooks/approval-response";
    let said = json!({"requestId": "r", "decision": "approved"});
    let answer = plane.client.post_with(hook, &caller, &said).await;
    answer.is_problem(403, "permission_denied");
    let answer = plane.client.post(hook, &said).await;
    answer.is_problem(401, "unauthenticated");

    // A call of its own in a run whose root is another's.
    let seen = agent.seen().len();
    let root = plane.submit("a.never", json!({})).await;
    let attempt = agent.until_seen(seen + 1).await[seen]
        .header("x-execution-id")
        .to_owned();
    let below = [caller[0], ("x-parent-execution-id", attempt.as_str())];
    let path = "/api/v1/execute/async/a.echo";
    let own = plane
        .client
        .send(post.clone(), path, &below, "{\"input\":{}}")
        .await
        .json();
    let (own, run) = (
        own["execution_id"].as_str().unwrap(),
        own["run_id"].as_str().unwrap(),
    );
    plane.end_of(own).await;
    let path = format!("/api/v1/executions/{own}/restart");
    let answer = plane.client.send(post.clone(), &path, &caller, "").await;
    let problem = answer.is_problem(404, "not_found");
    let message = problem["message"].as_str().unwrap();
    for word in [run, own, "scope execution"] {
        assert!(message.contains(word), "{problem}");
    }
    assert!(!message.contains(&root), "{problem}");
    let alone = json!({"scope": "execution", "fork": true}).to_string();
    let answer = plane.client.send(post, &path, &caller, alone).await;
    assert_eq!(answer.status, 202, "{}", answer.json());
}
