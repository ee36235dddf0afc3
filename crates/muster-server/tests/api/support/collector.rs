//! A collector of traces, which reads OTLP with the types of OpenTelemetry. Knows nothing of what
//! the spans should say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use muster_server::Config;
use muster_server::config::Secret;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as StatusCodeOfSpan;
use opentelemetry_proto::tonic::trace::v1::{self as proto, SpanFlags};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::eventually;

/// One span as it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) state: String,
    /// Whether its parent is not the plane's.
    pub(crate) is_remote: bool,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) error: Option<String>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Attributes as text, by name.
pub(crate) fn attributes(given: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &AnyValue| match value.value.as_ref() {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(n)) => n.to_string(),
        Some(any_value::Value::BoolValue(flag)) => flag.to_string(),
        other => panic!("a value of no known kind: {other:?}"),
    };
    let pair = |pair: &KeyValue| (pair.key.clone(), text(pair.value.as_ref().unwrap()));
    given.iter().map(pair).collect()
}

fn span(sent: &proto::Span) -> Span {
    let status = sent.status.clone().unwrap_or_default();
    let is_error = status.code() == StatusCodeOfSpan::Error;
    assert!(is_error || status.message.is_empty(), "{sent:?}");
    Span {
        trace: hex(&sent.trace_id),
        id: hex(&sent.span_id),
        parent: hex(&sent.parent_span_id),
        state: sent.trace_state.clone(),
        is_remote: sent.flags & SpanFlags::ContextIsRemoteMask as u32 != 0,
        name: sent.name.clone(),
        kind: sent.kind(),
        start: sent.start_time_unix_nano,
        end: sent.end_time_unix_nano,
        attributes: attributes(&sent.attributes),
        error: is_error.then_some(status.message),
    }
}

#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) requests: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    /// Its status; 0 is none at all.
    pub(crate) answer: Arc<AtomicU16>,
    /// How many spans of a request it says that it rejects.
    pub(crate) rejects: Arc<AtomicI64>,
    /// How many requests came, whatever it answered.
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Seen {
    /// What is said to a request that is taken.
    fn thanks(&self) -> Vec<u8> {
        let rejected_spans = self.rejects.load(Ordering::SeqCst);
        let partial = ExportTracePartialSuccess {
            rejected_spans,
            error_message: "no room".to_owned(),
        };
        let partial_success = (rejected_spans > 0).then_some(partial);
        ExportTraceServiceResponse { partial_success }.encode_to_vec()
    }
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
            seen.asked.fetch_add(1, Ordering::SeqCst);
            let status = seen.answer.load(Ordering::SeqCst);
            if status == 0 {
                return std::future::pending().await;
            }
            if status == 200 {
                seen.requests.lock().push((headers, bytes));
            }
            (StatusCode::from_u16(status).unwrap(), seen.thanks())
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

    /// What came, as it came.
    pub(crate) fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        let requests = self.seen.requests.lock();
        let read = |(_, body): &(HeaderMap, Bytes)| {
            ExportTraceServiceRequest::decode(&**body).expect("it is OTLP")
        };
        requests.iter().map(read).collect()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.requests();
        let resources = requests.iter().flat_map(|request| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| &scope.spans).map(span).collect()
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
            span.kind == SpanKind::Server && id.is_some_and(|id| id == execution)
        };
        let mut found = BTreeMap::new();
        let Some(own) = spans.iter().find(is_own) else {
            return found;
        };
        let mut family = vec![own.id.clone()];
        found.insert("execution".to_owned(), own.clone());
        while let Some(parent) = family.pop() {
            for span in spans
                .iter()
                .filter(|s| s.parent == parent && s.kind != SpanKind::Server)
            {
                family.push(span.id.clone());
                found.insert(span.name.clone(), span.clone());
            }
        }
        found
    }
}
