//! The parameters behind the `?` of an act or of a list, held against the document: whoever asks
//! for a trial (`dry_run`) that a route does not know, or mistypes a name, is told so before
//! anything happens. Routes that agents and other clients speak are asked for `dry_run` alone:
//! what else they send there is theirs. Values are the handlers' affair.

use std::sync::Arc;

use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::problem::Problem;
use crate::auth::{Need, table};

const TRIAL: &str = "dry_run";

/// What each route takes, by its template and then its method.
#[derive(Debug, Clone)]
pub(super) struct Parameters(Arc<FxHashMap<String, Vec<Taken>>>);

#[derive(Debug)]
struct Taken {
    method: Method,
    names: Vec<String>,
    /// Whether every other name is refused too.
    strict: bool,
}

impl Parameters {
    /// Reads them out of the document.
    pub(super) fn of(document: &Value) -> Self {
        let paths = document["paths"].as_object().into_iter().flatten();
        Self(Arc::new(
            paths
                .map(|(path, item)| {
                    let operations = item.as_object().into_iter().flatten();
                    let taken = operations.filter_map(|(method, operation)| {
                        Some(Taken::of(
                            method.to_uppercase().parse().ok()?,
                            path,
                            operation,
                        ))
                    });
                    (path.clone(), taken.collect())
                })
                .collect(),
        ))
    }

    /// The first of these names that the route does not take, with what it takes.
    fn surplus<'a>(
        &'a self,
        method: &Method,
        path: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Option<(String, &'a [String])> {
        let method = if *method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let taken = self
            .0
            .get(path)?
            .iter()
            .find(|taken| taken.method == *method)?;
        let surplus = names
            .into_iter()
            .find(|name| (taken.strict || name == TRIAL) && !taken.names.contains(name))?;
        Some((surplus, &taken.names))
    }
}

impl Taken {
    fn of(method: Method, path: &str, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let names: Vec<String> = parameters
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| parameter["name"].as_str().map(str::to_owned))
            .collect();
        let need = table::look_up(&method, Some(path)).0;
        let strict = match need {
            Need::Operate | Need::Admin | Need::Cancel | Need::Read => path.starts_with("/api/v1/"),
            _ => names.iter().any(|name| name == TRIAL),
        };
        Self {
            method,
            names,
            strict,
        }
    }
}

/// Refuses what the route does not take.
pub(super) async fn checked(
    State(parameters): State<Parameters>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    if request.uri().query().is_some_and(|query| !query.is_empty())
        && let Some(path) = path
        && let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
        && let Some((name, takes)) = parameters.surplus(
            request.method(),
            path.as_str(),
            pairs.into_iter().map(|(name, _)| name),
        )
    {
        // It may be a secret in the wrong place: only what looks like a name is repeated.
        let named =
            name.len() <= 32 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let what = if named {
            format!("there is no parameter {name}")
        } else {
            "one of its parameters is unknown".to_owned()
        };
        let read = matches!(*request.method(), Method::GET | Method::HEAD);
        let done = if read { "" } else { ", so nothing was done" };
        let known = match takes {
            [] => "it takes none".to_owned(),
            names => format!("known are {}", names.join(", ")),
        };
        return Problem::validation(format!("{what}{done}; {known}"))
            .details(json!({ "parameter": named.then_some(name), "takes": takes }))
            .into_response();
    }
    next.run(request).await
}
