//! The route: who asks and what their arguments were is put beside the message, then the
//! library's service answers. Host, origin and key were checked by the guard in front of every
//! route, so the library's own rules about them are off.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::envelope::{self, Fault};
use super::server::Tools;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::bodies::{Held, Patience};

/// The largest message without a tool's arguments: the library makes a tree of all of it.
const MESSAGE_MAX: usize = 256 * 1024;
/// The longest of the library's own sentences that is passed on.
const SENTENCE_MAX: usize = 1_024;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(mcp))
}

/// One request of a client, beside the message that the library reads.
#[derive(Clone)]
pub(super) struct Asking(Arc<Inner>);

struct Inner {
    app: App,
    caller: Caller,
    carried: Mutex<Carried>,
}

/// The body, for as long as a tool needs it.
#[derive(Default)]
pub(super) struct Carried {
    /// A tool's arguments as they came.
    pub(super) arguments: Option<Bytes>,
    /// The body that they are a part of, with its place in the room for bodies.
    pub(super) held: Held,
}

impl Asking {
    /// The plane.
    pub(super) fn app(&self) -> &App {
        &self.0.app
    }

    /// Who asks.
    pub(super) fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// The body; the second time there is none.
    pub(super) fn take(&self) -> Carried {
        std::mem::take(&mut *self.0.carried.lock())
    }
}

static SERVICE: LazyLock<StreamableHttpService<Tools, NeverSessionManager>> = LazyLock::new(|| {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        // The body was read and bounded before.
        .with_max_request_body_bytes(usize::MAX);
    StreamableHttpService::new(|| Ok(Tools), Arc::default(), config)
});

/// Tools for language models
///
/// The Model Context Protocol over streamable HTTP, without sessions: one JSON-RPC message in
/// each request. Tools: `discover_agents`, `get_reasoner_schema`, `execute_reasoner`,
/// `wait_run`, `get_run`, `list_runs`, `cancel_run`, `why`. A refusal is a tool result with
/// `isError` whose `structuredContent` is the one error shape.
#[utoipa::path(
    post, path = "/mcp", tag = "mcp",
    request_body(content = serde_json::Value, description = "One JSON-RPC 2.0 message; `Accept` names application/json and text/event-stream"),
    responses(
        (status = 200, description = "The JSON-RPC answer; as events when progress was asked for", body = serde_json::Value),
        (status = 202, description = "A notification was taken"),
        (status = 400, description = "Not a message of the protocol: a JSON-RPC error"),
    )
)]
async fn mcp(State(app): State<App>, caller: Caller, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let max = usize::try_from(app.config.server.max_body.0).unwrap_or(usize::MAX);
    let held = match app.room.read(body, max, Patience::Usual).await {
        Ok(held) => held,
        Err(why) => return why.problem(max).into_response(),
    };
    // Where a request is signed, the signature holds for all of it, on this lane too.
    let signed = app
        .identity
        .verify_submission(&head.headers, &held.bytes, app.clock.now());
    if let Err(fault) = signed {
        return Problem::from(fault).into_response();
    }
    let envelope = match envelope::read(&held.bytes) {
        Ok(envelope) => envelope,
        Err(fault) => return fault.into_response(),
    };
    let message = envelope.without_arguments(&held.bytes);
    if message.len() > MESSAGE_MAX {
        return Fault::too_large(&envelope.id, MESSAGE_MAX).into_response();
    }
    let carried = Carried {
        arguments: envelope.arguments(&held.bytes),
        held,
    };
    head.headers.remove(header::CONTENT_LENGTH);
    head.extensions.insert(Asking(Arc::new(Inner {
        app,
        caller,
        carried: Mutex::new(carried),
    })));
    let request = http::Request::from_parts(head, Full::new(message));
    let response = SERVICE.handle(request).await;
    if is_plain_refusal(response.status().as_u16(), response.headers()) {
        return refused(response, &envelope.id).await;
    }
    response.map(Body::new)
}

/// Whether the library refused in words that no client of the protocol can read.
fn is_plain_refusal(status: u16, headers: &HeaderMap) -> bool {
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == "application/json");
    status >= 400 && !is_json
}

/// The same refusal as a JSON-RPC error.
async fn refused<B>(response: http::Response<B>, id: &str) -> Response
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
{
    let status = response.status();
    let said = response.into_body().collect().await;
    let said = said.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
    let message = if status.is_server_error() {
        tracing::error!(%status, "a tool's answer was lost by a fault of ours");
        "a fault of ours; the plane's log has the cause".to_owned()
    } else if said.starts_with(b"fail to deserialize") {
        // What it goes on with may quote the body.
        "the message does not have the form that its method has in the protocol".to_owned()
    } else {
        String::from_utf8_lossy(&said[..said.len().min(SENTENCE_MAX)]).into_owned()
    };
    Fault::refused(id, status, message).into_response()
}
