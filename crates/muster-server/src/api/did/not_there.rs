//! What of the upstream's identity surface this plane does not have: chains of credentials, and
//! what agents with local verification ask for.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::problem::Problem;
use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(chain))
        .routes(routes!(run_credential))
        .routes(routes!(export))
        .routes(routes!(policies))
        .routes(routes!(revocations))
        .routes(routes!(registered))
        .routes(routes!(public_key))
}

macro_rules! not_there {
    ($($name:ident: $method:ident $path:literal, $doc:literal, $what:literal;)*) => {
        $(
            #[doc = $doc]
            #[utoipa::path($method, path = $path, tag = "identity",
                responses((status = 501, description = "Not supported")))]
            async fn $name() -> Problem {
                Problem::not_supported($what)
            }
        )*
    };
}

not_there! {
    chain: get "/api/v1/did/workflow/{run}/vc-chain", "Chains of credentials are not supported: answers 501.", "a chain of credentials";
    run_credential: post "/api/v1/did/workflow/{run}/vc", "Credentials of runs are not supported: answers 501.", "a credential of a run";
    export: get "/api/v1/did/export/vcs", "Export of credentials is not supported: answers 501.", "export of credentials";
    policies: get "/api/v1/policies", "Local verification is not supported: answers 501.", "local verification";
    revocations: get "/api/v1/revocations", "Local verification is not supported: answers 501.", "local verification";
    registered: get "/api/v1/registered-dids", "Local verification is not supported: answers 501.", "local verification";
    public_key: get "/api/v1/admin/public-key", "Local verification is not supported: answers 501.", "local verification";
}
