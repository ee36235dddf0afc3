//! The collector: where it is, who we are to it, how it is reached and asked again. Knows nothing
//! of executions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry::KeyValue;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::time::timeout;

use crate::app::App;
use crate::config;
use crate::dispatch::connect::Connector;

/// How long a connection is kept.
const IDLE: Duration = Duration::from_secs(60);
/// How much of the collector's answer is read.
const ANSWER_MAX: usize = 64 * 1024;
/// How often a batch that was not taken is sent again.
const RETRIES: usize = 2;
/// How long before the first of these.
const BETWEEN: Duration = Duration::from_millis(500);
/// How long before any of them, unless the collector asks for more.
const BETWEEN_MAX: Duration = Duration::from_secs(2);

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

    /// The exporter that sends there, and what it hears of it.
    pub(super) fn exporter(&self, app: &App) -> Result<(SpanExporter, Arc<Said>), String> {
        let said = Arc::<Said>::default();
        let client = Client {
            http: HyperClient::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .build(app.dialling.for_the_operator()),
            headers: self.headers.clone(),
            timeout: self.timeout,
            said: said.clone(),
        };
        let tries = u32::try_from(RETRIES).unwrap_or(u32::MAX).saturating_add(1);
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(self.uri.to_string())
            .with_protocol(Protocol::HttpBinary)
            // Of all tries together: each has the whole of its own.
            .with_timeout(self.timeout.saturating_mul(tries) + BETWEEN_MAX * tries)
            .with_retry_policy(
                RetryPolicy::recommended()
                    .with_max_retries(RETRIES)
                    .with_initial_delay(BETWEEN)
                    .with_max_delay(BETWEEN_MAX),
            )
            .with_http_client(client)
            .build()
            .map_err(|error| error.to_string())?;
        exporter.set_resource(&self.resource(app));
        Ok((exporter, said))
    }

    fn resource(&self, app: &App) -> Resource {
        Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", self.service.clone()),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new(
                    "service.instance.id",
                    app.stores.decisions.about().mark.to_string(),
                ),
            ])
            .build()
    }
}

/// What the collector said last, which the exporter's own errors leave out.
#[derive(Debug, Default)]
pub(super) struct Said(Mutex<(u64, Option<String>)>);

impl Said {
    /// How many spans it rejected, and why the last try failed; forgets both.
    pub(super) fn take(&self) -> (u64, Option<String>) {
        std::mem::take(&mut *self.0.lock())
    }

    fn heard(&self, answer: &Result<Response<Bytes>, HttpError>) {
        *self.0.lock() = match answer {
            Ok(answer) if answer.status().is_success() => (rejected(answer.body()), None),
            Ok(answer) => (0, Some(format!("it answered {}", answer.status()))),
            Err(error) => (0, Some(crate::dispatch::causes(&**error))),
        };
    }
}

/// How many spans a collector took the request without.
fn rejected(body: &Bytes) -> u64 {
    let answer = ExportTraceServiceResponse::decode(&**body).unwrap_or_default();
    let partial = answer.partial_success.unwrap_or_default();
    u64::try_from(partial.rejected_spans).unwrap_or_default()
}

/// The plane's way out: it dials by the plane's rules, over no proxy, and follows nobody.
#[derive(Debug)]
struct Client {
    http: HyperClient<Connector, Full<Bytes>>,
    headers: HeaderMap,
    timeout: Duration,
    said: Arc<Said>,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut request = request.map(Full::new);
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        let exchange = async {
            let (head, body) = self.http.request(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_MAX).collect().await?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let late = || format!("no answer within {:?}", self.timeout).into();
        let answer = timeout(self.timeout, exchange).await;
        let answer = answer.unwrap_or_else(|_| Err(late()));
        self.said.heard(&answer);
        answer
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

/// Where the collector is, as an address that can be used.
fn address(endpoint: &str) -> Result<Uri, String> {
    let wrong = || "telemetry.endpoint must be an address like http://127.0.0.1:4318".to_owned();
    let text = endpoint.trim().trim_end_matches('/');
    let whole = match text.ends_with("/v1/traces") {
        true => text.to_owned(),
        false => format!("{text}/v1/traces"),
    };
    let uri: Uri = whole.parse().map_err(|_| wrong())?;
    let known = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    known.then_some(uri).ok_or_else(wrong)
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
