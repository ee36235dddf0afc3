//! A running plane and somebody who asks it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use muster_server::{Config, Plane, Running};
use muster_store::memory::MemoryStore;
use muster_store::sqlite::{Durability, Options, SqliteStore};
use muster_store::{Annex, Store, Stores};
use serde_json::Value;

/// How long a test waits for something that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A plane on a store of its own.
pub(crate) struct World {
    pub(crate) plane: Option<Running>,
    pub(crate) stores: Stores,
    client: Client<HttpConnector, Full<Bytes>>,
    pub(crate) base: String,
    pub(crate) directory: tempfile::TempDir,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The one error shape, whole.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, category: &str) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        let body = self.json();
        assert_eq!(body["error_category"], category, "{self:?}");
        assert!(body["error"].is_string() && body["message"].is_string());
        assert!(body.as_object().unwrap().values().all(|v| !v.is_null()));
        self
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            durability: Durability::Process,
            ..Options::default()
        };
        let store = Arc::new(SqliteStore::open(directory.path(), options).unwrap());
        Self::start(directory, store.clone(), store).await
    }

    pub(crate) async fn memory() -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::start(tempfile::tempdir().unwrap(), store.clone(), store).await
    }

    async fn start(
        directory: tempfile::TempDir,
        decisions: Arc<dyn Store>,
        annex: Arc<dyn Annex>,
    ) -> Self {
        let mut config = Config::default();
        config.server.listen = ([127, 0, 0, 1], 0).into();
        config.store.data = Some(directory.path().to_owned());
        let stores = Stores { decisions, annex };
        let plane = Plane::start(config, stores.clone()).await.unwrap();
        Self {
            base: format!("http://{}", plane.address),
            plane: Some(plane),
            stores,
            client: Client::builder(TokioExecutor::new()).build_http(),
            directory,
        }
    }

    /// The plane's address without a scheme.
    pub(crate) fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> http::Response<Incoming> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            let value = http::HeaderValue::from_bytes(value.as_bytes()).unwrap();
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        self.client.request(request).await.unwrap()
    }

    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let answer = self.open(method, path, headers, body).await;
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.raw("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        self.raw("POST", path, headers, body.to_string()).await
    }

    /// Asks again until the answer is right.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        path: &str,
        right: impl Fn(&Answer) -> Option<T>,
    ) -> T {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.get(path).await;
            if let Some(found) = right(&answer) {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "{what}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads what a plane counted.
    pub(crate) async fn counter(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.text;
        text.lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(plane) = self.plane.take() {
            plane.stop().await;
        }
    }
}

/// Server-sent events of an open answer.
pub(crate) struct Events {
    body: Incoming,
    buffer: String,
}

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Events {
    pub(crate) async fn of(world: &World, path: &str, headers: &[(&str, &str)]) -> Self {
        let answer = world.open("GET", path, headers, "").await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self {
            body: answer.into_body(),
            buffer: String::new(),
        }
    }

    /// The next message with data; `None` when the stream is over.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        tokio::time::timeout(PATIENCE, self.read())
            .await
            .expect("a message in time")
    }

    async fn read(&mut self) -> Option<Message> {
        loop {
            while let Some(end) = self.buffer.find("\n\n") {
                let text: String = self.buffer.drain(..end + 2).collect();
                assert!(!text.contains('\r'), "{text:?}");
                let mut message = Message::default();
                for line in text.lines() {
                    match line.split_once(':') {
                        Some(("id", rest)) => message.id = rest.trim().to_owned(),
                        Some(("event", rest)) => message.event = rest.trim().to_owned(),
                        Some(("data", rest)) => message.data.push_str(rest.trim_start()),
                        _ => {}
                    }
                }
                if !message.data.is_empty() {
                    return Some(message);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            let bytes = frame.into_data().ok()?;
            self.buffer.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }
}
