//! The plane's HTTP API from the outside: requests, the one error shape, the event stream.
//! A connection per request: a command makes a handful.

mod events;
mod owner;
mod refused;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use muster_wire::Category;
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::failure::{Failure, Outcome};

use self::events::EventReader;
use self::owner::{owner_directories, owner_key};
pub(crate) use events::{EventStream, StreamEvent};
pub(crate) use owner::{home, read_owner_key};

const DIAL: Duration = Duration::from_secs(5);

/// The largest answer a command reads: a result may have 64 MiB.
const ANSWER_MAX: usize = 80 << 20;

/// A socket of the plane's.
pub(crate) type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// A plane that can be asked.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    base: Uri,
    key: Option<String>,
    /// The key was found on this machine and not given: it may belong to another plane here.
    found: bool,
}

/// An answer below 400.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The body.
    pub(crate) body: Bytes,
    /// The plane's clock.
    pub(crate) date: Option<String>,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Outcome<Value> {
        self.read()
    }

    /// The body as something known.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Outcome<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::new(
                Category::BadResponse,
                format!("the plane's answer cannot be read: {error}"),
            )
            .hint("is that address a muster plane, and of this version? `muster doctor` looks")
        })
    }
}

impl Client {
    /// A client for a base address such as `http://127.0.0.1:8080`.
    pub(crate) fn new(server: &str, key: Option<String>) -> Outcome<Self> {
        let text = if server.contains("://") {
            server.to_owned()
        } else {
            format!("http://{server}")
        };
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        if scheme.eq_ignore_ascii_case("https") {
            return Err(Failure::new(
                Category::NotSupported,
                format!("{server}: this build speaks plain http only"),
            )
            .hint("reach a remote plane through a tunnel: ssh -L 8080:127.0.0.1:8080 HOST"));
        }
        let wrong = |why: &str| {
            Failure::new(Category::Validation, format!("{server:?} {why}"))
                .hint("write it like http://127.0.0.1:8080")
        };
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(wrong(
                "is no address of a plane: it must begin with http://",
            ));
        }
        if rest.is_empty() || rest.starts_with(['/', ':', '?', '#']) {
            return Err(wrong("names no host"));
        }
        let base: Uri = text
            .trim_end_matches('/')
            .parse()
            .map_err(|_| wrong("is no address"))?;
        if let Some(key) = &key
            && http::HeaderValue::from_str(key).is_err()
        {
            return Err(Failure::new(
                Category::Validation,
                "MUSTER_API_KEY holds a character that no key has, such as a line's end",
            )
            .hint("set it to the key alone, on one line"));
        }
        Ok(Self {
            base,
            key,
            found: false,
        })
    }

    /// The plane that the flag or the environment names, else the local one; with the key from
    /// `MUSTER_API_KEY`, else the owner key where there is one.
    pub(crate) fn find(server: Option<&str>) -> Outcome<Self> {
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let address = server
            .map(str::to_owned)
            .or_else(|| env("MUSTER_SERVER"))
            .or_else(|| env("AGENTFIELD_SERVER"))
            .unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
        let mut client = Self::new(&address, env("MUSTER_API_KEY"))?;
        // The owner key is for the plane of this machine; it is never sent to another.
        if client.key.is_none() && client.is_local() {
            client.key = owner_key(&owner_directories());
            client.found = client.key.is_some();
        }
        Ok(client)
    }

    /// Whether it is this machine's.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.base.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }

    /// The base address as text.
    pub(crate) fn address(&self) -> String {
        self.base.to_string().trim_end_matches('/').to_owned()
    }

    /// Asks.
    pub(crate) async fn get(&self, path: &str) -> Outcome<Answer> {
        self.send(Method::GET, path, None, &[]).await
    }

    /// Asks for JSON.
    pub(crate) async fn get_json(&self, path: &str) -> Outcome<Value> {
        // Some routes have text for people, too.
        let headers = [("accept", "application/json")];
        self.send(Method::GET, path, None, &headers).await?.json()
    }

    /// Asks for something to be done.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Outcome<Answer> {
        self.send(Method::POST, path, Some(body.to_string().into()), &[])
            .await
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        headers: &[(&str, &str)],
    ) -> Outcome<Answer> {
        let response = self.open(method, path, body, headers).await?;
        let status = response.status();
        let date = response
            .headers()
            .get(http::header::DATE)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let limited = http_body_util::Limited::new(response.into_body(), ANSWER_MAX);
        let body = limited
            .collect()
            .await
            .map_err(|error| self.gone(&error.to_string()))?
            .to_bytes();
        if status.as_u16() < 400 {
            return Ok(Answer { body, date });
        }
        Err(self.refused(path, status.as_u16(), &body))
    }

    /// Opens a request with the key. A found key that this plane does not know is another
    /// plane's: what needs none on loopback works without it.
    async fn open(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        headers: &[(&str, &str)],
    ) -> Outcome<http::Response<Incoming>> {
        let key = self.key.as_deref();
        let response = self
            .open_as(key, method.clone(), path, body.clone(), headers)
            .await?;
        if self.found && response.status() == http::StatusCode::UNAUTHORIZED {
            return self.open_as(None, method, path, body, headers).await;
        }
        Ok(response)
    }

    async fn open_as(
        &self,
        key: Option<&str>,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        headers: &[(&str, &str)],
    ) -> Outcome<http::Response<Incoming>> {
        let host = self.base.host().unwrap_or("127.0.0.1");
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.base.port_u16().unwrap_or(80);
        let stream = tokio::time::timeout(DIAL, TcpStream::connect((host, port)))
            .await
            .map_err(|_| self.absent("no answer to the dial in 5 s"))?
            .map_err(|error| self.absent(&error.to_string()))?;
        let _ = stream.set_nodelay(true);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.gone(&error.to_string()))?;
        tokio::spawn(connection.with_upgrades());
        let prefix = self.base.path().trim_end_matches('/');
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{prefix}{path}"))
            .header(
                http::header::HOST,
                self.base.authority().map_or("", |a| a.as_str()),
            )
            .header(
                http::header::USER_AGENT,
                concat!("muster/", env!("CARGO_PKG_VERSION")),
            );
        if body.is_some() {
            request = request.header(http::header::CONTENT_TYPE, "application/json");
        }
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|error| {
                Failure::new(
                    Category::Validation,
                    format!("cannot ask for {path}: {error}"),
                )
            })?;
        sender
            .send_request(request)
            .await
            .map_err(|error| self.gone(&error.to_string()))
    }

    /// Opens an event stream.
    pub(crate) async fn events(&self, path: &str) -> Outcome<EventStream> {
        let response = self
            .open(Method::GET, path, None, &[("accept", "text/event-stream")])
            .await?;
        if response.status().as_u16() >= 400 {
            let status = response.status().as_u16();
            let body = response
                .into_body()
                .collect()
                .await
                .map_err(|error| self.gone(&error.to_string()))?
                .to_bytes();
            return Err(self.refused(path, status, &body));
        }
        Ok(EventStream {
            body: response.into_body().into_data_stream(),
            reader: EventReader::default(),
            lost: self.gone("the event stream ended"),
        })
    }

    /// Opens a WebSocket.
    pub(crate) async fn socket(&self, path: &str) -> Outcome<Socket> {
        let key = generate_key();
        let headers = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", key.as_str()),
        ];
        let response = self.open(Method::GET, path, None, &headers).await?;
        let status = response.status();
        if status != http::StatusCode::SWITCHING_PROTOCOLS {
            let body = http_body_util::Limited::new(response.into_body(), ANSWER_MAX)
                .collect()
                .await
                .map_err(|error| self.gone(&error.to_string()))?
                .to_bytes();
            return Err(self.refused(path, status.as_u16(), &body));
        }
        let accepted = response.headers().get("sec-websocket-accept");
        if accepted.and_then(|value| value.to_str().ok())
            != Some(derive_accept_key(key.as_bytes()).as_str())
        {
            return Err(self.gone("it answered as something that is no WebSocket"));
        }
        let stream = hyper::upgrade::on(response)
            .await
            .map_err(|error| self.gone(&error.to_string()))?;
        Ok(WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Client, None).await)
    }
}

/// Writes a value into a query string or a path.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b':' => {
                out.push(byte as char);
            }
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}

/// `?a=1&b=2` of what is there.
pub(crate) fn query(pairs: &[(&str, Option<String>)]) -> String {
    let mut out = String::new();
    for (name, value) in pairs {
        if let Some(value) = value {
            out.push(if out.is_empty() { '?' } else { '&' });
            out += &format!("{name}={}", encode(value));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use muster_wire::ErrorBody;

    use super::refused::refusal;
    use super::*;

    #[test]
    fn events_are_cut_wherever_the_bytes_are_cut() {
        let text = b": hello\n\nid: 7\nevent: execution.started\ndata: {\"a\":\ndata: 1}\n\nid: 8\ndata: x\r\n\r\n";
        for step in [1, 3, text.len()] {
            let mut reader = EventReader::default();
            let mut events = Vec::new();
            for chunk in text.chunks(step) {
                reader.push(chunk);
                events.extend(std::iter::from_fn(|| reader.next()));
            }
            assert_eq!(events.len(), 2, "{step}");
            assert_eq!(events[0].id.as_deref(), Some("7"));
            assert_eq!(events[0].name.as_deref(), Some("execution.started"));
            assert_eq!(events[0].data, "{\"a\":\n1}");
            assert_eq!(events[1].data, "x");
        }
    }

    #[test]
    fn a_wrong_address_and_a_wrong_key_are_refused_for_what_they_are() {
        for (server, code, says) in [
            ("http://", 2, "names no host"),
            ("http://:80", 2, "names no host"),
            ("", 2, "names no host"),
            ("ftp://x", 2, "it must begin with http://"),
            ("https://x", 3, "plain http only"),
            ("http://x y", 2, "is no address"),
        ] {
            let failure = Client::new(server, None).unwrap_err();
            assert_eq!(failure.exit_code(), code, "{server}");
            assert!(failure.body.message.contains(says), "{failure:?}");
        }
        for server in ["http://x", "x:80", "[::1]:80", "HTTP://x/base/"] {
            Client::new(server, None).unwrap();
        }
        let failure = Client::new("x", Some("mk_canary\nmk_other".into())).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.body.message.contains("MUSTER_API_KEY"));
        assert!(!format!("{failure:?}").contains("canary"));
    }

    #[test]
    fn an_answer_outside_the_error_shape_is_said_to_be_that() {
        assert_eq!(refusal(502, b"<html>").exit_code(), 1);
        let body =
            br#"{"error":"target_not_found","error_category":"target_not_found","message":"no"}"#;
        assert_eq!(refusal(404, body).exit_code(), 66);
    }

    #[test]
    fn what_is_not_found_has_the_list_it_would_be_in_for_a_hint() {
        let body = |message: &str| ErrorBody::new(Category::NotFound, message);
        let hint = |server: &str, path: &str, message: &str| {
            let body = serde_json::to_vec(&body(message)).unwrap();
            let client = Client::new(server, None).unwrap();
            client.refused(path, 404, &body).hint.unwrap_or_default()
        };
        for (path, command) in [
            ("/api/v1/webhooks/x/redrive", "`muster webhooks` lists"),
            ("/api/v1/quarantine/1", "`muster quarantine` lists"),
            ("/api/v1/nodes/x/history", "`muster agents` lists"),
            ("/api/v1/fleet/nodes/x", "`muster nodes` lists"),
        ] {
            assert!(
                hint("x:80", path, "there is none").starts_with(command),
                "{path}"
            );
        }
        // What may be anything is looked for everywhere.
        assert_eq!(hint("x:80", "/api/v1/why/x", "nothing of that id"), "");
        let told = "there is no route /base/api/v1/nodes; see /docs";
        assert!(hint("x:80/base", "/api/v1/nodes", told).contains("is /base in --server"));
        assert!(hint("x:80", "/api/v1/new", told).contains("another version"));
    }

    #[test]
    fn only_plain_http_and_the_owner_key_only_for_this_machine() {
        assert!(Client::new("https://plane.example", None).is_err());
        assert!(Client::new("127.0.0.1:8080", None).unwrap().is_local());
        assert!(Client::new("http://[::1]:8080", None).unwrap().is_local());
        assert!(
            !Client::new("http://10.0.0.5:8080", None)
                .unwrap()
                .is_local()
        );
    }
}
