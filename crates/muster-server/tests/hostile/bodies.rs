//! Bodies.

use serde_json::json;
use tokio::time::timeout;

use crate::routes::{self, PATIENCE, fault};
use crate::support::World;
use crate::support::agent::Agent;

/// A body and what it is.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let names = [
        "input",
        "id",
        "base_url",
        "reasoners",
        "skills",
        "instance_id",
        "status",
        "result",
        "error",
        "execution_id",
        "key",
        "scope",
        "data",
        "message",
        "tags",
        "entries",
        "timestamp",
        "execution_ids",
        "reason",
        "name",
        "scopes",
        "agent",
        "agent_node_id",
        "run_id",
        "workflow_id",
        "reasoner_id",
        "parent_execution_id",
        "timeout_seconds",
        "version",
        "level",
        "overlap_seconds",
        "principal",
    ];
    let each = |value: serde_json::Value| {
        let members: serde_json::Map<_, _> = names
            .iter()
            .map(|name| ((*name).to_owned(), value.clone()))
            .collect();
        serde_json::Value::Object(members).to_string().into_bytes()
    };
    let raw_each = |value: &str| {
        let members: Vec<String> = names
            .iter()
            .map(|name| format!("\"{name}\":{value}"))
            .collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    };
    vec![
        ("nothing", vec![]),
        ("blanks", b"   \n\t ".to_vec()),
        ("cut short", br#"{"input": {"a": "#.to_vec()),
        ("two values", b"{} {}".to_vec()),
        ("a byte order mark", b"\xef\xbb\xbf{}".to_vec()),
        ("null", b"null".to_vec()),
        ("a list", b"[1,2]".to_vec()),
        ("a text", b"\"text\"".to_vec()),
        ("a number", b"17".to_vec()),
        ("NaN", br#"{"input": NaN}"#.to_vec()),
        (
            "not UTF-8",
            b"{\"input\":{\"a\":\"\xff\xfe\"},\"key\":\"\xc3\x28\"}".to_vec(),
        ),
        ("a raw NUL", b"{\"input\":{\"a\":\"x\x00y\"}}".to_vec()),
        ("only binary", (0..=255).collect()),
        ("texts everywhere", each(json!("x"))),
        ("numbers everywhere", each(json!(-1))),
        ("lists everywhere", each(json!([{ "x": 1 }]))),
        ("objects everywhere", each(json!({ "x": [] }))),
        ("nulls everywhere", each(json!(null))),
        ("booleans everywhere", each(json!(true))),
        ("dots everywhere", each(json!(".."))),
        ("long texts everywhere", each(json!("x".repeat(20_000)))),
        ("escaped NULs everywhere", raw_each(r#""\u0000""#)),
        ("lone surrogates everywhere", raw_each(r#""\ud800""#)),
        ("1e400 everywhere", raw_each("1e400")),
        (
            "beyond i64 everywhere",
            raw_each("123456789012345678901234567890"),
        ),
        ("minus zero everywhere", raw_each("-0.0")),
        (
            "10,000 deep lists",
            [
                b"{\"input\":".to_vec(),
                b"[".repeat(10_000),
                b"]".repeat(10_000),
                b"}".to_vec(),
            ]
            .concat(),
        ),
        (
            "10,000 deep objects",
            [
                b"{\"a\":".repeat(10_000),
                b"1".to_vec(),
                b"}".repeat(10_000),
            ]
            .concat(),
        ),
        ("open brackets only", b"[".repeat(100_000)),
        (
            "the same key twice",
            br#"{"input":{},"input":{"b":1},"status":"failed","status":"ok","id":"a","id":"b"}"#
                .to_vec(),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_answers_every_body_in_the_one_shape_and_writes_nothing_it_refused() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    let _victim = Agent::start(&world, routes::VICTIM).await;
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for route in routes::all(&world).await {
        if route.method == "GET" {
            continue;
        }
        let path = route.filled(if route.template.contains("{target}") {
            "sane.echo"
        } else {
            routes::VICTIM
        });
        for (what, body) in bodies() {
            for kind in ["application/json", "text/plain"] {
                let before = routes::executions(&world).await;
                let headers = [("X-API-Key", world.owner.as_str()), ("Content-Type", kind)];
                let sent =
                    timeout(PATIENCE, world.send(&route.method, &path, &headers, &body)).await;
                asked += 1;
                let Ok(answer) = sent else {
                    wrong.push(format!("{} {path} with {what}: no answer", route.method));
                    continue;
                };
                if let Some(fault) = fault(&answer) {
                    wrong.push(format!("{} {path} with {what}: {fault:.300}", route.method));
                }
                if answer.status >= 400 && routes::executions(&world).await != before {
                    wrong.push(format!(
                        "{} {path} with {what}: refused with {} and written",
                        route.method, answer.status
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {asked}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(asked > 500, "{asked}");
    routes::still_works(&world, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_over_the_limit_is_too_large_on_every_route_and_is_not_kept() {
    let world =
        World::with(|config| config.server.max_body = muster_server::config::Size(64 * 1024)).await;
    let agent = Agent::start(&world, "sane").await;
    let huge = format!(r#"{{"input":{{"a":"{}"}}}}"#, "x".repeat(1024 * 1024)).into_bytes();
    let mut wrong = Vec::new();
    for route in routes::all(&world).await {
        // Callbacks have a limit of their own, and end their execution when they are over it.
        if route.method == "GET" || route.template.ends_with("/status") {
            continue;
        }
        let path = route.filled(if route.template.contains("{target}") {
            "sane.echo"
        } else {
            routes::VICTIM
        });
        let announced = world
            .as_key(&world.owner, &route.method, &path, &huge)
            .await;
        let mut chunked = format!("{:x}\r\n", huge.len()).into_bytes();
        chunked.extend_from_slice(&huge);
        chunked.extend_from_slice(b"\r\n0\r\n\r\n");
        let headers = [
            ("X-API-Key", world.owner.as_str()),
            ("Transfer-Encoding", "chunked"),
        ];
        let unannounced = world.send(&route.method, &path, &headers, &chunked).await;
        for (how, answer) in [("announced", announced), ("unannounced", unannounced)] {
            if let Some(fault) = fault(&answer) {
                wrong.push(format!("{} {path} {how}: {fault:.300}", route.method));
            }
            // A route that reads no body may do its work without it.
            if answer.status == 413 && answer.category() != "too_large" {
                wrong.push(format!("{} {path} {how}: {}", route.method, answer.text()));
            }
            let reads = [
                "/execute/",
                "/register",
                "/keys",
                "/hold",
                "/memory/set",
                "/logs",
                "/note",
            ];
            if reads.iter().any(|part| route.template.contains(part)) && answer.status < 400 {
                wrong.push(format!("{} {path} {how}: {}", route.method, answer.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(routes::executions(&world).await, 0);
    routes::still_works(&world, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_values_in_an_input_are_ordinary_and_come_back_as_they_went() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    for input in [
        r#"{"a":"\u0000"}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":1e400}"#,
        r#"{"a":123456789012345678901234567890}"#,
        r#"{"a":-0.0,"b":[],"c":{},"d":null}"#,
        r#"{"é":"\u00e9 😀"}"#,
    ] {
        let body = format!(r#"{{"input":{input}}}"#);
        let answer = world
            .as_key(
                &world.owner,
                "POST",
                "/api/v1/execute/sane.echo",
                body.as_bytes(),
            )
            .await;
        assert_eq!(answer.status, 200, "{input}: {}", answer.text());
        assert!(
            answer.text().contains(&format!(r#""result":{input}"#)),
            "{input}: {}",
            answer.text()
        );
    }
    assert_eq!(agent.called(), 6);
}
