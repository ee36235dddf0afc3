//! A plain HTTP client.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// Asserts the one error shape, and that header and field agree.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, category: &str) -> Value {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        assert_eq!(body["error_category"], category, "{body}");
        assert!(
            body["error"].is_string() && body["message"].is_string(),
            "{body}"
        );
        let object = body.as_object().unwrap();
        assert!(
            object.values().all(|value| !value.is_null()),
            "a null in {body}"
        );
        let header = self
            .headers
            .get("retry-after")
            .map(|v| v.to_str().unwrap().to_owned());
        let field = body.get("retry_after").map(Value::to_string);
        assert_eq!(header, field, "{body}");
        body
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A client of one base address.
#[derive(Clone)]
pub(crate) struct Client {
    base: String,
    inner: Hyper<HttpConnector, Full<Bytes>>,
}

impl Client {
    pub(crate) fn new(base: String) -> Self {
        Self {
            base,
            inner: Hyper::builder(TokioExecutor::new()).build_http(),
        }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.try_send(method, path, headers, body).await.unwrap()
    }

    /// The same of a plane that may be gone.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, hyper_util::client::legacy::Error> {
        let mut request = Request::builder()
            .method(method.clone())
            .uri(format!("{}{path}", self.base))
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = self.inner.request(request).await?;
        let (parts, body) = response.into_parts();
        let answer = Answer {
            status: parts.status,
            headers: parts.headers,
            bytes: body.collect().await.unwrap().to_bytes(),
        };
        if answer.header("content-type") == Some("application/json") {
            let status = answer.status.as_u16();
            super::document::check(method.as_str(), path, status, &answer.bytes);
        }
        Ok(answer)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, &[], body.to_string()).await
    }

    pub(crate) async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        self.send(Method::POST, path, headers, body.to_string())
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }
}
