//! `POST /api/v1/executions/batch-status`: many polls in one. Each entry is the body of
//! `GET /api/v1/executions/{id}`.

use axum::extract::State;
use axum::http::StatusCode;
use muster_wire::Category;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::{RawBody, json};
use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::show;
use super::write::answer;
use crate::app::App;

/// Ids of one request.
const IDS_MAX: usize = 500;
/// The longest answer: what comes after it is told without its result.
const BYTES_MAX: usize = 32 * 1024 * 1024;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(batch))
}

/// Which executions.
#[derive(Debug, Deserialize, ToSchema)]
struct Wanted {
    /// At most 500.
    execution_ids: Vec<String>,
}

/// Several executions at once: a map from each id, as it was asked for, to its body. One that
/// does not exist is there too, with the status `unknown` and the error `not_found`.
#[utoipa::path(post, path = "/api/v1/executions/batch-status", tag = "executions",
    request_body = Wanted,
    responses((status = 200, description = "A map from id to execution", body = serde_json::Value),
              (status = 400, description = "More than 500 ids")))]
async fn batch(State(app): State<App>, caller: Caller, RawBody(body): RawBody) -> Answer {
    let wanted: Wanted = json(&body, "{execution_ids: […]}")?;
    if wanted.execution_ids.len() > IDS_MAX {
        return Err(Problem::validation(format!(
            "at most {IDS_MAX} execution_ids; ask in several requests"
        )));
    }
    let mut ids = wanted.execution_ids;
    ids.sort_unstable();
    ids.dedup();
    let mut out = Vec::with_capacity(ids.len() * 768 + 2);
    out.push(b'{');
    for id in &ids {
        if out.len() > 1 {
            out.push(b',');
        }
        // Writing text into a vector cannot fail.
        let _ = serde_json::to_writer(&mut out, id);
        out.push(b':');
        let found = match show::execution_id(id) {
            Ok(execution) => match show::find(&app, &execution).await {
                Ok(found) => found.filter(|view| caller.sees(&view.row.principal)),
                // One that cannot be read harms no other.
                Err(problem) if problem.body.error_category == Category::InternalError => {
                    let unknown = serde_json::json!({
                        "status": "unknown",
                        "error": problem.body.error,
                        "error_category": Category::InternalError,
                        "message": problem.body.message,
                    });
                    let _ = serde_json::to_writer(&mut out, &unknown);
                    continue;
                }
                Err(problem) => return Err(problem),
            },
            Err(_) => None,
        };
        out = match found {
            Some(view) if out.len() < BYTES_MAX => show::whole(out, &view),
            Some(view) => show::line(out, &view.row),
            None => {
                out.extend_from_slice(
                    br#"{"status":"unknown","error":"not_found","error_category":"not_found","message":"there is no such execution"}"#,
                );
                out
            }
        };
    }
    out.push(b'}');
    Ok(answer(StatusCode::OK, out.into()))
}
