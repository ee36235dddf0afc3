//! A collector of traces, which reads OTLP's protobuf by itself. Knows nothing of what the spans
//! should say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use muster_server::Config;
use muster_server::config::Secret;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::eventually;

/// One span as it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) state: String,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) error: Option<String>,
}

/// A field of a message of protobuf: its number, and a number or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for at in 0.. {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let mut take = |n: usize| {
            let (head, rest) = bytes.split_at(n);
            bytes = rest;
            head
        };
        let field = match tag & 7 {
            1 => Field::Number(u64::from_le_bytes(take(8).try_into().unwrap())),
            5 => Field::Number(u32::from_le_bytes(take(4).try_into().unwrap()).into()),
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (head, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(head)
            }
            wire => panic!("wire type {wire}"),
        };
        found.push((tag >> 3, field));
    }
    found
}

pub(crate) fn parts<'a>(message: &'a [u8], number: u64) -> Vec<&'a [u8]> {
    let of = |(n, field): (u64, Field<'a>)| match field {
        Field::Bytes(bytes) if n == number => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn attribute(message: &[u8]) -> (String, String) {
    let key = text(parts(message, 1)[0]);
    let value = match fields(parts(message, 2)[0]).remove(0) {
        (1, Field::Bytes(bytes)) => text(bytes),
        (2 | 3, Field::Number(n)) => n.to_string(),
        _ => panic!("a value of no known kind"),
    };
    (key, value)
}

fn span(message: &[u8]) -> Span {
    let mut span = Span::default();
    for (number, field) in fields(message) {
        match (number, field) {
            (1, Field::Bytes(bytes)) => span.trace = hex(bytes),
            (2, Field::Bytes(bytes)) => span.id = hex(bytes),
            (3, Field::Bytes(bytes)) => span.state = text(bytes),
            (4, Field::Bytes(bytes)) => span.parent = hex(bytes),
            (5, Field::Bytes(bytes)) => span.name = text(bytes),
            (6, Field::Number(n)) => span.kind = n,
            (7, Field::Number(n)) => span.start = n,
            (8, Field::Number(n)) => span.end = n,
            (9, Field::Bytes(bytes)) => span.attributes.extend([attribute(bytes)]),
            (15, Field::Bytes(bytes)) => {
                span.error = Some(text(parts(bytes, 2)[0]));
                assert!(
                    fields(bytes)
                        .iter()
                        .any(|(n, f)| *n == 3 && matches!(f, Field::Number(2)))
                );
            }
            (number, _) => panic!("a span has a field {number}"),
        }
    }
    span
}

#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) requests: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    /// Its status; 0 is none at all.
    pub(crate) answer: Arc<AtomicU16>,
}

/// A collector.
pub(crate) struct Collector {
    port: u16,
    pub(crate) seen: Seen,
    server: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Seen::default();
        seen.answer.store(200, Ordering::SeqCst);
        let take = |State(seen): State<Seen>, headers: HeaderMap, bytes: Bytes| async move {
            let status = seen.answer.load(Ordering::SeqCst);
            if status == 0 {
                return std::future::pending().await;
            }
            if status == 200 {
                seen.requests.lock().push((headers, bytes));
            }
            StatusCode::from_u16(status).unwrap()
        };
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(seen.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, seen, server }
    }

    pub(crate) fn set(&self, config: &mut Config) {
        config.telemetry.endpoint = Some(format!("http://127.0.0.1:{}", self.port));
        config.telemetry.headers = Some(Secret::new("x-token=of%20mine"));
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.seen.requests.lock();
        let resources = requests.iter().flat_map(|(_, body)| parts(body, 1));
        let scopes = resources.flat_map(|resource| parts(resource, 2));
        scopes.flat_map(|scope| parts(scope, 2)).map(span).collect()
    }

    /// The spans of an execution, by name, when all that are wanted have come: the admission and
    /// the rest may come in several requests.
    pub(crate) async fn of(&self, execution: &str, wanted: &[&str]) -> BTreeMap<String, Span> {
        eventually(&format!("the spans {wanted:?} came"), || async {
            let found = self.now(execution);
            wanted
                .iter()
                .all(|name| found.contains_key(*name))
                .then_some(found)
        })
        .await
    }

    /// The spans of an execution that came up to now, by name; its own is `execution`.
    fn now(&self, execution: &str) -> BTreeMap<String, Span> {
        let spans = self.spans();
        let is_own = |span: &&Span| {
            let id = span.attributes.get("muster.execution.id");
            span.kind == 2 && id.is_some_and(|id| id == execution)
        };
        let mut found = BTreeMap::new();
        let Some(own) = spans.iter().find(is_own) else {
            return found;
        };
        let mut family = vec![own.id.clone()];
        found.insert("execution".to_owned(), own.clone());
        while let Some(parent) = family.pop() {
            for span in spans.iter().filter(|s| s.parent == parent && s.kind != 2) {
                family.push(span.id.clone());
                found.insert(span.name.clone(), span.clone());
            }
        }
        found
    }
}
