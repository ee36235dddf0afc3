//! An agent below HTTP: what it writes is what the test says, byte by byte. It counts what it was
//! sent.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::TestPlane;

/// What a raw agent does with one call after the other; the last is done again and again.
#[derive(Clone)]
pub(crate) enum Does {
    /// Writes these bytes and closes.
    Writes(&'static str),
    /// Reads the call and closes.
    Breaks,
}

pub(crate) struct RawAgent {
    calls: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl RawAgent {
    /// Listens and registers with the reasoner `f` and the idempotent reasoner `i`.
    pub(crate) async fn start(plane: &TestPlane, id: &str, does: Vec<Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let registration = json!({
            "id": id, "base_url": format!("http://127.0.0.1:{port}"), "instance_id": "raw",
            "lifecycle_status": "starting",
            "reasoners": [{"id": "f"}, {"id": "i", "tags": ["idempotent"]}],
        });
        let answer = plane
            .client
            .post("/api/v1/nodes/register", &registration)
            .await;
        assert_eq!(answer.status, 201, "{}", answer.json());
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let server = tokio::spawn(serve(listener, calls.clone(), does));
        Self { calls, server }
    }

    /// The attempt ids of the calls that came.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().clone()
    }
}

impl Drop for RawAgent {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, calls: Arc<Mutex<Vec<String>>>, does: Vec<Does>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = head(&mut stream).await;
        // A dial that sees whether somebody listens sends nothing.
        let Some(id) = attempt_of(&head) else {
            continue;
        };
        let n = calls.lock().len();
        calls.lock().push(id);
        if let Does::Writes(text) = &does[n.min(does.len() - 1)] {
            let _ = stream.write_all(text.as_bytes()).await;
        }
        let _ = stream.shutdown().await;
    }
}

async fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(n) if n > 0 => bytes.extend_from_slice(&piece[..n]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn attempt_of(head: &str) -> Option<String> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("x-execution-id"))
        .map(|(_, id)| id.trim().to_owned())
}
