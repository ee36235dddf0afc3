//! The no-op agent: `fast` answers 200 with a value; `later` answers 202 and calls back from a
//! pool of connections; `never` answers 202 and is silent. Counts what it gets. On each of its
//! addresses it is another agent: `bench` on 127.0.0.1, `queue-0` on 127.0.1.1, and so on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use crate::say;

/// What this process does while it lives.
struct Agent {
    plane: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    delivered: AtomicU64,
    called_back: AtomicU64,
}

/// Serves as `bench` and as so many queues, one port, until killed.
///
/// # Errors
/// When it cannot listen.
pub(crate) fn serve(plane: SocketAddr, port: u16, queues: u8) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let agent = Arc::new(Agent {
            plane,
            client: Client::builder(TokioExecutor::new()).build(connector),
            delivered: AtomicU64::new(0),
            called_back: AtomicU64::new(0),
        });
        let mut addresses = vec![([127, 0, 0, 1], "bench".to_owned())];
        addresses.extend((0..queues).map(|n| ([127, 0, 1, n + 1], format!("queue-{n}"))));
        for (ip, id) in addresses {
            let listener = TcpListener::bind(SocketAddr::from((ip, port))).await?;
            tokio::spawn(accept(listener, id.into(), Arc::clone(&agent)));
        }
        say::line("ready");
        std::future::pending::<()>().await;
        Ok(())
    })
}

async fn accept(listener: TcpListener, id: Arc<str>, agent: Arc<Agent>) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).ok();
        let (id, agent) = (Arc::clone(&id), Arc::clone(&agent));
        tokio::spawn(async move {
            let service =
                service_fn(move |request| answer(request, Arc::clone(&id), Arc::clone(&agent)));
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    id: Arc<str>,
    agent: Arc<Agent>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    body.collect().await?;
    let (status, text) = match head.uri.path() {
        "/skills/fast" => {
            agent.delivered.fetch_add(1, Ordering::Relaxed);
            (200, Bytes::from_static(br#"{"ok":true}"#))
        }
        "/reasoners/later" | "/reasoners/never" => {
            agent.delivered.fetch_add(1, Ordering::Relaxed);
            if head.uri.path().ends_with("later")
                && let Some(id) = head.headers.get("x-execution-id")
            {
                let id = id.to_str().unwrap_or_default().to_owned();
                tokio::spawn(call_back(Arc::clone(&agent), id));
            }
            (202, Bytes::from_static(br#"{"status":"processing"}"#))
        }
        "/count" => {
            let delivered = agent.delivered.load(Ordering::Relaxed);
            let called_back = agent.called_back.load(Ordering::Relaxed);
            let text = format!(r#"{{"delivered":{delivered},"called_back":{called_back}}}"#);
            (200, Bytes::from(text))
        }
        "/health" => {
            let text = format!(r#"{{"status":"healthy","node_id":"{id}"}}"#);
            (200, Bytes::from(text))
        }
        _ => (404, Bytes::from_static(br#"{"detail":"Not Found"}"#)),
    };
    let mut response = Response::new(Full::new(text));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    Ok(response)
}

async fn call_back(agent: Arc<Agent>, id: String) {
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!(
            "http://{}/api/v1/executions/{id}/status",
            agent.plane
        ))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from_static(
            br#"{"status":"succeeded","result":{"ok":true},"duration_ms":0}"#,
        )));
    let Ok(request) = request else { return };
    if let Ok(answer) = agent.client.request(request).await {
        let taken = answer.status().is_success();
        answer.into_body().collect().await.ok();
        if taken {
            agent.called_back.fetch_add(1, Ordering::Relaxed);
        }
    }
}
