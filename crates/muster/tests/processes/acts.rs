//! What a person did and the line about it: a plane that is killed in the middle keeps both or
//! neither.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Plane, example_agent, until};

/// How often a plane is killed in the middle.
const ROUNDS: u32 = 6;
/// How many ask for acts at the same time.
const PEOPLE: u32 = 4;

/// Asks as the owner; `None` when the plane is gone.
fn owner(
    directory: &Path,
    address: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Option<Value> {
    let key = std::fs::read_to_string(directory.join(".muster/owner.key")).ok()?;
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .ok()?;
    let text = body.map(Value::to_string).unwrap_or_default();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-API-Key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        key.trim(),
        text.len()
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

/// Sets caps and holds, each with a value of its own, until the plane is gone.
fn act_until_gone(directory: &Path, address: &str, next: &AtomicU32) {
    loop {
        let n = next.fetch_add(1, Ordering::SeqCst) + 1;
        let cap = owner(
            directory,
            address,
            "PUT",
            "/api/v1/nodes/hello/cap",
            Some(&json!({ "cap": n })),
        );
        let held = owner(
            directory,
            address,
            "POST",
            "/api/v1/hold",
            Some(&json!({ "reason": format!("reason {n}") })),
        );
        if cap.is_none() || held.is_none() {
            return;
        }
    }
}

/// Security: who changed what is on record, whenever the process dies.
#[test]
fn no_act_is_in_effect_after_kill_9_without_its_line_in_the_audit_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut plane = Plane::start(dir.path(), "127.0.0.1:0");
    let address = plane.address.clone();
    let _agent = example_agent(dir.path(), &address);
    let ask = |method: &str, path: &str| owner(dir.path(), &address, method, path, None);
    let hello = || {
        let shown = ask("GET", "/api/v1/queues")?;
        let queues = shown["queues"].as_array()?;
        queues
            .iter()
            .find(|queue| queue["agent"] == "hello")
            .cloned()
    };
    until("the agent has registered", hello);
    let next = AtomicU32::new(0);
    for round in 1..=ROUNDS {
        std::thread::scope(|scope| {
            for _ in 0..PEOPLE {
                scope.spawn(|| act_until_gone(dir.path(), &address, &next));
            }
            let enough = next.load(Ordering::SeqCst) + 5 * PEOPLE + round;
            until("some acts are done", || {
                (next.load(Ordering::SeqCst) >= enough).then_some(())
            });
            plane.process.signal(Signal::KILL);
            plane.process.end();
        });
        plane = Plane::start(dir.path(), &address);
        let lines = ask("GET", "/api/v1/audit?limit=1000").expect("the audit log");
        let newest = |action: &str| {
            let lines = lines["lines"].as_array().unwrap();
            let line = lines.iter().find(|line| line["action"] == action);
            line.unwrap_or_else(|| panic!("no {action}: {lines:?}"))["detail"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let held = ask("GET", "/api/v1/hold").expect("the hold");
        assert_eq!(
            held["reason"].as_str(),
            Some(newest("hold.set").as_str()),
            "round {round}"
        );
        let cap = hello().expect("its queue")["cap"].as_u64().unwrap();
        let line = newest("cap.set");
        assert!(
            line.starts_with(&format!("{cap} (")),
            "round {round}: the cap is {cap}, and the newest line says {line}"
        );
    }
}
