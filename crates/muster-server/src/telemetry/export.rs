//! The exporter: takes what ended, reads its attempts, sends batches to the collector. One task,
//! one request at a time. What the collector does not take after some tries is given up and
//! counted: traces never hold anything else up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use muster_engine::row::ExecutionRow;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::context::{Context, span_of};
use super::encode::{self, Span, Value};
use super::{News, address, spans};
use crate::app::App;
use crate::config;
use crate::dispatch::connect::Connector;

/// Executions of one request, at most.
const BATCH_MAX: usize = 256;
/// How long a batch waits for more.
const LINGER: Duration = Duration::from_secs(1);
/// How often a batch is sent, and how long before the next try.
const TRIES: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(2),
];
/// How long a connection is kept.
const IDLE: Duration = Duration::from_secs(60);
/// How much of the collector's answer is read.
const ANSWER_MAX: usize = 64 * 1024;
/// How far up the parents of an execution are looked at for a trace.
const ANCESTORS_MAX: usize = 64;

/// Where to, and as whom.
#[derive(Debug)]
pub(super) struct Target {
    uri: Uri,
    headers: HeaderMap,
    timeout: Duration,
    service: String,
}

impl Target {
    pub(super) fn read(endpoint: &str, config: &config::Telemetry) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        let given = config.headers.as_ref().map_or("", |secret| secret.reveal());
        for pair in given.split(',').filter(|pair| !pair.trim().is_empty()) {
            // Which one is not repeated: it may be a secret.
            let wrong = || "telemetry.headers must be name=value, and commas between".to_owned();
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
            let mut value = HeaderValue::from_bytes(&decode(value.trim())).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        headers.insert(header::CONTENT_TYPE, protobuf);
        headers.insert(header::USER_AGENT, crate::dispatch::agent_name());
        Ok(Self {
            uri: address(endpoint)?,
            headers,
            timeout: config.timeout.0,
            service: config.service_name.clone(),
        })
    }

    /// For the log: without what may be a password in it.
    pub(super) fn shown(&self) -> String {
        let authority = self.uri.authority().map_or("", |a| a.as_str());
        let host = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        format!(
            "{}://{host}{}",
            self.uri.scheme_str().unwrap_or("http"),
            self.uri.path()
        )
    }

    fn resource(&self, app: &App) -> Vec<(&'static str, Value)> {
        let text = |text: &str| Value::Text(text.to_owned());
        vec![
            ("service.name", text(&self.service)),
            ("service.version", text(env!("CARGO_PKG_VERSION"))),
            (
                "service.instance.id",
                text(&app.stores.decisions.about().mark),
            ),
        ]
    }
}

/// Percent-decoding, as the environment's form of the headers has it.
fn decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten();
        let byte = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    out
}

/// Takes news until nobody is left to tell any.
pub(super) async fn run(app: App, mut from: mpsc::Receiver<News>) {
    let client: Client<Connector, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(app.dialling.for_the_operator());
    let mut was_fine = true;
    loop {
        let Some(first) = from.recv().await else {
            return;
        };
        let (news, asked) = gather(first, &mut from).await;
        let spans = spans_of(&app, news).await;
        if !spans.is_empty() {
            let fine = send(&app, &client, &spans).await;
            // Said once when it begins, and once when it ends.
            match (&fine, was_fine) {
                (Err(error), true) => {
                    tracing::warn!(error = %error, spans = spans.len(), "the collector does not take traces; they are given up until it does")
                }
                (Ok(()), false) => tracing::info!("the collector takes traces again"),
                _ => {}
            }
            was_fine = fine.is_ok();
        }
        for asked in asked {
            let _ = asked.send(());
        }
    }
}

/// What came within the linger, and who waits for it to be sent.
async fn gather(
    first: News,
    from: &mut mpsc::Receiver<News>,
) -> (Vec<News>, Vec<oneshot::Sender<()>>) {
    let (mut news, mut asked) = (Vec::new(), Vec::new());
    let until = Instant::now() + LINGER;
    let mut next = Some(first);
    while let Some(one) = next {
        match one {
            News::Flush(told) => asked.push(told),
            other => news.push(other),
        }
        if news.len() >= BATCH_MAX {
            break;
        }
        next = match asked.is_empty() {
            true => tokio::time::timeout_at(until, from.recv())
                .await
                .ok()
                .flatten(),
            false => from.try_recv().ok(),
        };
    }
    (news, asked)
}

async fn spans_of(app: &App, news: Vec<News>) -> Vec<Span> {
    let sample = app.telemetry.0.as_ref().map_or(0.0, |on| on.sample);
    let work = app.clone();
    app.blocking(move |_| {
        let mut spans = Vec::new();
        for one in news {
            let (received, row) = match &one {
                News::Ended(view) => (None, &view.row),
                News::Admitted(at, row) => (Some(*at), row),
                News::Flush(_) => continue,
            };
            let from = bearer(&work, row);
            let mut context = Context::of(&from, sample);
            if !context.sampled {
                continue;
            }
            if from.id != row.id {
                // It came without a trace, from an execution that had one.
                context.parent = row.parent.as_ref().map(span_of);
            }
            match received {
                Some(at) => spans.push(spans::of_admission(&context, row, at)),
                None => {
                    let attempts = work.stores.decisions.attempts(&row.id).unwrap_or_default();
                    spans.extend(spans::of_end(&context, row, &attempts));
                }
            }
        }
        spans
    })
    .await
}

/// The row whose trace a row belongs to: itself when it was sent one or has no parent, else the
/// nearest ancestor of which that is true.
fn bearer(app: &App, row: &Arc<ExecutionRow>) -> Arc<ExecutionRow> {
    let mut at = row.clone();
    for _ in 0..ANCESTORS_MAX {
        let (None, Some(parent)) = (&at.traceparent, &at.parent) else {
            return at;
        };
        let above = match app.views.get(parent.as_str()) {
            Some(view) => Some(view.row.clone()),
            None => {
                let stored = app.stores.decisions.execution(parent);
                stored.ok().and_then(|(_, row)| row).map(Arc::new)
            }
        };
        match above {
            Some(above) => at = above,
            None => return at,
        }
    }
    at
}

async fn send(
    app: &App,
    client: &Client<Connector, Full<Bytes>>,
    spans: &[Span],
) -> Result<(), String> {
    let Some(on) = &app.telemetry.0 else {
        return Ok(());
    };
    let body = Bytes::from(encode::request(&on.target.resource(app), spans));
    let mut last = String::new();
    for wait in TRIES {
        tokio::time::sleep(wait).await;
        match once(client, &on.target, body.clone()).await {
            Ok(()) => {
                on.tally
                    .exported
                    .fetch_add(spans.len() as u64, Ordering::Relaxed);
                return Ok(());
            }
            Err((error, may_pass)) => {
                last = error;
                if !may_pass {
                    break;
                }
            }
        }
    }
    on.tally
        .failed
        .fetch_add(spans.len() as u64, Ordering::Relaxed);
    Err(last)
}

/// One try: why it failed, and whether another makes sense.
async fn once(
    client: &Client<Connector, Full<Bytes>>,
    target: &Target,
    body: Bytes,
) -> Result<(), (String, bool)> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target.uri.clone();
    *request.headers_mut() = target.headers.clone();
    let exchange = async {
        let answer = client.request(request).await;
        let answer = answer.map_err(|error| (crate::dispatch::causes(&error), true))?;
        let status = answer.status();
        let _ = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        let busy = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        match status.is_success() {
            true => Ok(()),
            false => Err((format!("it answered {status}"), busy)),
        }
    };
    match timeout(target.timeout, exchange).await {
        Ok(end) => end,
        Err(_) => Err((format!("no answer within {:?}", target.timeout), true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Secret, Telemetry};

    fn target(endpoint: &str, headers: &str) -> Result<Target, String> {
        let config = Telemetry {
            headers: Some(Secret::new(headers)),
            ..Telemetry::default()
        };
        Target::read(endpoint, &config)
    }

    #[test]
    fn the_endpoint_is_a_base_or_the_whole_address() {
        for (given, whole) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://otel.example/base",
                "https://otel.example/base/v1/traces",
            ),
            (
                "https://otel.example/v1/traces",
                "https://otel.example/v1/traces",
            ),
        ] {
            assert_eq!(target(given, "").unwrap().uri.to_string(), whole);
        }
        for bad in [
            "127.0.0.1:4318",
            "grpc://x:4317",
            "http://",
            "nonsense nonsense",
        ] {
            assert!(target(bad, "").is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_are_read_as_the_environment_has_them_and_never_shown() {
        let read = target("http://x", "api-key=s%20ecret, X-Tenant=a").unwrap();
        assert_eq!(read.headers["api-key"], "s ecret");
        assert_eq!(read.headers["x-tenant"], "a");
        assert!(!format!("{read:?}").contains("ecret"));
        for bad in ["nonsense", "a b=c", "a=%00"] {
            let error = target("http://x", bad).unwrap_err();
            assert!(!error.contains(bad), "{error}");
        }
        assert_eq!(
            target("http://u:p@x", "").unwrap().shown(),
            "http://x/v1/traces"
        );
    }
}
