//! A disk that is full or cannot be written, a store that is too new, a copy that is put back:
//! what the plane says, what it still does, and that it goes on when the trouble is over.

mod disk;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Plane, Running, ask, example_agent, muster, run, stderr, stdout, until};

/// An answer: status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: Value,
}

fn send(address: &str, method: &str, path: &str, body: &Value) -> Answer {
    try_send(address, method, path, body).expect("an answer")
}

fn try_send(address: &str, method: &str, path: &str, body: &Value) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .ok()?;
    let text = body.to_string();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_ascii_lowercase(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    })
}

/// An agent that takes every call and says nothing more; it remembers their attempts.
struct Silent {
    port: u16,
    attempts: Arc<Mutex<Vec<String>>>,
}

impl Silent {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let attempts: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = attempts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = seen.clone();
                std::thread::spawn(move || take(stream, &seen));
            }
        });
        Self { port, attempts }
    }

    fn register(&self, address: &str) {
        let body = json!({
            "id": "silent", "base_url": format!("http://127.0.0.1:{}", self.port),
            "version": "1", "instance_id": "one", "reasoners": [{"id": "wait"}],
        });
        let answer = send(address, "POST", "/api/v1/nodes/register", &body);
        assert_eq!(answer.status, 201, "{}", answer.body);
    }

    /// Calls it and waits until it has the call; execution and attempt.
    fn called(&self, address: &str) -> (String, String) {
        let had = self.attempts.lock().unwrap().len();
        let path = "/api/v1/execute/async/silent.wait";
        let answer = send(address, "POST", path, &json!({"input": {}}));
        assert_eq!(answer.status, 202, "{}", answer.body);
        let attempt = until("the agent has the call", || {
            self.attempts.lock().unwrap().get(had).cloned()
        });
        let id = answer.body["execution_id"].as_str().unwrap().to_owned();
        (id, attempt)
    }
}

fn take(stream: TcpStream, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut length, mut attempt) = (0, None);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap(),
                    "x-execution-id" => attempt = Some(value.trim().to_owned()),
                    _ => {}
                }
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let (status, text) = match attempt {
            Some(attempt) => {
                seen.lock().unwrap().push(attempt);
                ("202 Accepted", r#"{"status":"processing"}"#)
            }
            None => ("200 OK", r#"{"status":"healthy","node_id":"silent"}"#),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        if (&stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn callback(address: &str, attempt: &str) -> Option<Answer> {
    let path = format!("/api/v1/executions/{attempt}/status");
    let said = json!({"status": "succeeded", "result": {"ok": true}});
    try_send(address, "POST", &path, &said)
}

fn shown(address: &str, id: &str) -> Value {
    send(
        address,
        "GET",
        &format!("/api/v1/executions/{id}"),
        &Value::Null,
    )
    .body
}

#[test]
fn a_copy_made_under_load_is_whole_and_a_plane_on_it_begins_in_hold() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path(), "127.0.0.1:0");
    let agent = example_agent(dir.path(), &plane.address);
    let call = |address: &str| {
        let path = "/api/v1/execute/hello.greet";
        send(address, "POST", path, &json!({"input": {"name": "x"}}))
    };
    until("the agent has registered", || {
        (call(&plane.address).status == 200).then_some(())
    });
    let silent = Silent::start();
    silent.register(&plane.address);
    let (open, _) = silent.called(&plane.address);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (stop, address) = (stop.clone(), plane.address.clone());
            std::thread::spawn(move || {
                let mut done = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let answer = send(
                        &address,
                        "POST",
                        "/api/v1/execute/hello.greet",
                        &json!({"input": {"name": "x"}}),
                    );
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    done += 1;
                }
                done
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let copied = plane.ask(&["backup", "copy"]);
    assert!(copied.status.success(), "{}", stderr(&copied));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let done: usize = load.into_iter().map(|load| load.join().unwrap()).sum();
    assert!(done > 0);
    let again = plane.ask(&["backup", "copy"]);
    assert!(!again.status.success());
    assert!(stderr(&again).contains("already"), "{}", stderr(&again));

    let restored = run(dir.path(), &["restore", "copy", "--data", "second"]);
    assert!(restored.status.success(), "{}", stderr(&restored));
    let over = run(dir.path(), &["restore", "copy", "--data", "second"]);
    assert!(
        stderr(&over).contains("there is a store"),
        "{}",
        stderr(&over)
    );

    let mut command = muster(dir.path());
    command.args(["server", "--data", "second", "--listen", "127.0.0.1:0"]);
    let second = Running::start(command);
    let said: Value = serde_json::from_str(&second.line("\"ready\"")).unwrap();
    let address = said["address"].as_str().unwrap();
    let hold = send(address, "GET", "/api/v1/hold", &Value::Null).body;
    assert_eq!(hold["held"], true, "{hold}");
    assert!(
        hold["reason"]
            .as_str()
            .unwrap()
            .contains("copied or restored"),
        "{hold}"
    );
    let list = send(address, "GET", "/api/v1/executions?limit=500", &Value::Null).body;
    let list = list["executions"].as_array().unwrap();
    assert!(list.len() > 1);
    for execution in list {
        let id = execution["execution_id"].as_str().unwrap();
        let whole = shown(address, id);
        if whole["status"] == "succeeded" {
            assert!(whole["result"].is_object(), "{whole}");
        }
    }
    assert_eq!(shown(address, &open)["status"], "running");
    // Without a terminal nobody is asked, but what would be sent is said.
    let asked = ask(dir.path(), address, &["unhold"]);
    assert!(
        stderr(&asked).contains("nothing waits behind it"),
        "{}",
        stderr(&asked)
    );
    assert_eq!(
        send(address, "GET", "/api/v1/hold", &Value::Null).body["held"],
        true
    );
    let lifted = ask(dir.path(), address, &["unhold", "--yes"]);
    assert!(lifted.status.success(), "{}", stderr(&lifted));
    assert!(stdout(&lifted).starts_with("lifted"), "{}", stdout(&lifted));
    drop(agent);
}

/// Waits for one request with a body; its head and body. Answers 200.
fn receive(listener: &TcpListener) -> (String, Value) {
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        head += &line.to_ascii_lowercase();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let done = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    (&stream).write_all(done).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

/// A message that nobody took is still to be delivered after kill -9, by the next plane, signed
/// with the secret that was sealed.
#[test]
fn a_webhook_outlives_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("muster.toml"),
        "[webhooks]\nallow = [\"127.0.0.1\"]\nretry_first = \"100ms\"\nretry_max = \"1s\"\n",
    )
    .unwrap();
    let mut plane = Plane::start(dir.path(), "127.0.0.1:0");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let receiver = listener.local_addr().unwrap();
    drop(listener);
    let agent = Silent::start();
    agent.register(&plane.address);
    let path = "/api/v1/execute/async/silent.wait";
    let webhook = json!({"url": format!("http://{receiver}/x"), "secret": "s"});
    let wanted = json!({"input": {}, "webhook": webhook});
    let answer = send(&plane.address, "POST", path, &wanted);
    assert_eq!(answer.body["webhook_registered"], true, "{}", answer.body);
    let id = answer.body["execution_id"].as_str().unwrap().to_owned();
    let attempt = until("the agent has the call", || {
        agent.attempts.lock().unwrap().first().cloned()
    });
    assert_eq!(callback(&plane.address, &attempt).unwrap().status, 200);
    until("it was tried", || {
        let list = send(&plane.address, "GET", "/api/v1/webhooks", &Value::Null).body;
        (list["webhooks"][0]["tries"].as_u64()? > 0).then_some(())
    });
    plane.process.signal(Signal::KILL);
    plane.process.end();

    let listener = TcpListener::bind(receiver).unwrap();
    let plane = Plane::start(dir.path(), "127.0.0.1:0");
    let (head, body) = receive(&listener);
    assert_eq!(body["execution_id"], id, "{body}");
    assert_eq!(body["result"], json!({"ok": true}), "{body}");
    assert!(head.contains("webhook-signature: v1,"), "{head}");
    until("the plane knows", || {
        let listed = plane.ask(&["webhooks", "list", "--state", "delivered", "--json"]);
        stdout(&listed).contains(&id).then_some(())
    });
}
