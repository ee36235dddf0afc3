//! What the library asks of a server: who it is, which tools it has, and to call one. A tool
//! whose client has left is dropped where it stands, like the handler of any other route.

use std::future::Future;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use super::catalog;
use super::door::Asking;
use super::progress::Progress;

/// What a client reads first.
const INSTRUCTIONS: &str = "Muster runs AI agents. Find functions with discover_agents, read what one takes with get_reasoner_schema, call it with execute_reasoner (wait_seconds waits for the result), and wait for longer work with wait_run. get_run shows a run with its steps, list_runs finds earlier ones, why explains where something stands, cancel_run stops it.";

/// The methods that this server has.
const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/call",
    "tools/list",
];

/// The server. What a request is about comes with the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tools;

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let version = env!("CARGO_PKG_VERSION");
        let identity = Implementation::new("muster", version).with_title("Muster");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(identity)
            .with_instructions(INSTRUCTIONS)
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let tools = catalog::ALL.iter().map(catalog::Entry::tool).collect();
        std::future::ready(Ok(ListToolsResult::with_all_items(tools)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        catalog::find(name).map(catalog::Entry::tool)
    }

    fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CustomResult, ErrorData>> + Send + '_ {
        // The library takes a known method with other params for an unknown one.
        let known = METHODS.contains(&request.method.as_str());
        std::future::ready(Err(if known {
            let message = "params do not have the form that this method has in the protocol";
            ErrorData::invalid_params(message, None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "there is no such method", None)
        }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = catalog::find(&request.name) else {
            let names: Vec<&str> = catalog::ALL.iter().map(|entry| entry.name).collect();
            let names = names.join(", ");
            let message = format!("there is no such tool; there are {names}");
            return Err(ErrorData::invalid_params(message, None));
        };
        let head = context.extensions.get::<http::request::Parts>();
        let Some(asking) = head.and_then(|head| head.extensions.get::<Asking>().cloned()) else {
            let message = "nobody checked who asks";
            return Err(ErrorData::internal_error(message, None));
        };
        let trace = head.and_then(|head| crate::api::call::traceparent(&head.headers));
        let progress = Progress::to(&context);
        let left = context.ct.clone();
        // Nothing of the request is kept while a tool waits.
        drop(context);
        tokio::select! {
            biased;
            () = left.cancelled() => Err(ErrorData::internal_error("the client has left", None)),
            result = catalog::run(entry, asking, trace, progress) => Ok(result.into()),
        }
    }
}
