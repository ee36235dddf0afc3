//! Ids, queries, paths, headers.

use tokio::time::timeout;

use crate::routes::{self, PATIENCE, fault};
use crate::support::agent::Agent;
use crate::support::{World, wire};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_and_impossible_ids_get_a_clear_error_on_every_route() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    let _victim = Agent::start(&world, routes::VICTIM).await;
    let long = "a".repeat(300);
    let very_long = "a".repeat(25_000);
    let ids = [
        "exec_unknown",
        ".",
        "..",
        "%2e",
        "%2e%2e",
        "%00",
        "%ff%fe",
        "%",
        "%zz",
        "%F0%9F%98%80",
        "x~1.secret",
        "~",
        "a%20b",
        "a%2Fb",
        "%0d%0aSet-Cookie:%20x",
        "'%20or%201=1--",
        "%3Cscript%3E",
        &long,
        &very_long,
    ];
    let (mut wrong, mut asked) = (Vec::new(), 0);
    let before = routes::executions(&world).await;
    for route in routes::all(&world)
        .await
        .into_iter()
        .filter(routes::Route::has_parameter)
    {
        for id in ids {
            let path = route.filled(id);
            let shown: String = path.chars().take(90).collect();
            asked += 1;
            let headers = [
                ("X-API-Key", world.owner.as_str()),
                ("Content-Type", "application/json"),
                ("Accept", "application/json"),
            ];
            let sent = timeout(PATIENCE, world.send(&route.method, &path, &headers, b"{}")).await;
            let Ok(answer) = sent else {
                wrong.push(format!("{} {shown}: no answer", route.method));
                continue;
            };
            if let Some(fault) = fault(&answer) {
                wrong.push(format!("{} {shown}: {fault:.300}", route.method));
            }
            if answer.headers.iter().any(|(name, _)| name == "set-cookie") {
                wrong.push(format!("{} {shown}: a header was injected", route.method));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {asked}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(routes::executions(&world).await, before);
    routes::still_works(&world, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_that_make_no_sense_get_a_clear_error_on_every_route() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    let _victim = Agent::start(&world, routes::VICTIM).await;
    let names = [
        "limit",
        "cursor",
        "after",
        "since",
        "until",
        "status",
        "agent",
        "run",
        "execution",
        "kind",
        "topics",
        "tags",
        "patterns",
        "scope",
        "scope_id",
        "format",
        "offset",
        "dry_run",
        "level",
        "parent",
        "category",
    ];
    let values = [
        "",
        "-1",
        "99999999999999999999",
        "1e400",
        "%00",
        "%ff",
        "x".repeat(2_000).leak(),
        "%5B%5D",
        "..",
        "null",
    ];
    let mut wrong = Vec::new();
    for route in routes::all(&world).await {
        for value in values {
            let query: Vec<String> = names.iter().map(|name| format!("{name}={value}")).collect();
            for query in [
                query.join("&"),
                format!("limit={value}"),
                format!("cursor={value}"),
                format!("limit={value}&limit={value}"),
            ] {
                let path = format!("{}?{query}", route.filled(routes::VICTIM));
                let shown: String = path.chars().take(90).collect();
                let headers = [
                    ("X-API-Key", world.owner.as_str()),
                    ("Content-Type", "application/json"),
                    ("Accept", "application/json"),
                ];
                let sent =
                    timeout(PATIENCE, world.send(&route.method, &path, &headers, b"{}")).await;
                match sent {
                    Err(_) => wrong.push(format!("{} {shown}: no answer", route.method)),
                    Ok(answer) => wrong.extend(
                        fault(&answer)
                            .map(|fault| format!("{} {shown}: {fault:.300}", route.method)),
                    ),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    routes::still_works(&world, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_make_no_sense_get_a_clear_error_on_every_route() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    let _victim = Agent::start(&world, routes::VICTIM).await;
    let long = "x".repeat(8_000);
    let names = [
        "X-Run-ID",
        "X-Execution-ID",
        "X-Parent-Execution-ID",
        "X-Session-ID",
        "X-Actor-ID",
        "X-Workflow-ID",
        "Idempotency-Key",
        "Last-Event-ID",
        "traceparent",
        "X-Caller-DID",
        "X-DID-Signature",
        "X-DID-Timestamp",
        "X-DID-Nonce",
        "Content-Encoding",
        "If-None-Match",
        "Accept",
        "Range",
        "Expect-Not",
        "X-Agent-Node-ID",
    ];
    let mut wrong = Vec::new();
    for route in routes::all(&world).await {
        for value in [
            "",
            "..",
            "a b",
            "é",
            "\u{1f600}",
            "x~1.y",
            long.as_str(),
            "null",
            "-1",
        ] {
            let path = route.filled(if route.template.contains("{target}") {
                "sane.echo"
            } else {
                routes::VICTIM
            });
            let mut headers = vec![
                ("X-API-Key", world.owner.as_str()),
                ("Content-Type", "application/json"),
            ];
            headers.extend(
                names
                    .iter()
                    .filter(|name| **name != "Accept")
                    .map(|name| (*name, value)),
            );
            headers.push(("Accept", "application/json"));
            match timeout(PATIENCE, world.send(&route.method, &path, &headers, b"{}")).await {
                Err(_) => wrong.push(format!("{} {path} {value:.20}: no answer", route.method)),
                Ok(answer) => wrong.extend(
                    fault(&answer)
                        .map(|fault| format!("{} {path} {value:.20}: {fault:.300}", route.method)),
                ),
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    routes::still_works(&world, &agent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_http_at_all_is_answered_or_cut_off() {
    let world = World::start().await;
    let agent = Agent::start(&world, "sane").await;
    let _victim = Agent::start(&world, routes::VICTIM).await;
    let many_headers: Vec<(String, String)> =
        (0..500).map(|n| (format!("X-{n}"), "v".into())).collect();
    let many: Vec<(&str, &str)> = many_headers
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    for bytes in [
        b"\0\0\0\0\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(20),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: \x00\r\n\r\n".to_vec(),
        b"POST /api/v1/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".to_vec(),
        b"POST /api/v1/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_vec(),
        b"POST /api/v1/keys HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n".to_vec(),
        b"POST /api/v1/keys HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nConnection: close\r\n\r\n0\r\n\r\n".to_vec(),
        wire::request("GET", "/healthz", &many, b""),
        wire::request("GET", &format!("/{}", "a".repeat(1_000_000)), &[], b""),
        wire::request("GET", "/healthz", &[("X-Long", "v".repeat(1_000_000).leak())], b""),
        wire::request("TRACE", "/healthz", &[], b""),
        wire::request("CONNECT", "evil.example:443", &[], b""),
        wire::request("OPTIONS", "*", &[], b""),
    ] {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        if let Some(answer) = wire::raw(world.plane.address, &bytes).await {
            assert!((400..500).contains(&answer.status), "{shown}: {} {}", answer.status, answer.text());
        }
    }
    routes::still_works(&world, &agent).await;
}
