//! The bare one-hop reverse proxy that the plane is measured against: passes a request on over
//! a pool of connections and its answer back. Checks, stores and decides nothing.

use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::{Client, Error, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use crate::say;

/// Serves on a loopback port until killed.
///
/// # Errors
/// When it cannot listen.
pub(crate) fn serve(port: u16, upstream: SocketAddr) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
        say::line("ready");
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let client = client.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| pass_on(request, client.clone(), upstream));
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await
                    .ok();
            });
        }
    })
}

async fn pass_on(
    mut request: Request<Incoming>,
    client: Client<HttpConnector, Incoming>,
    upstream: SocketAddr,
) -> Result<Response<Incoming>, Error> {
    let path = request.uri().path_and_query().map_or("/", |p| p.as_str());
    if let Ok(uri) = format!("http://{upstream}{path}").parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    client.request(request).await
}
