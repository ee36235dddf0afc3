//! `GET /api/v1/executions/{id}/payload/{kind}`: one payload as it was stored, whole or a range
//! of it.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use muster_engine::row::PayloadKind;
use muster_wire::ExecutionId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::caller::Caller;
use super::problem::{Answer, Problem};
use super::show;
use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(payload))
}

/// One payload, as the bytes that came in.
#[utoipa::path(
    get, path = "/api/v1/executions/{id}/payload/{kind}", tag = "executions",
    params(
        ("id" = String, Path, description = "The execution"),
        ("kind" = String, Path, description = "input, result, error_details or late"),
    ),
    responses(
        (status = 200, description = "The payload", body = serde_json::Value),
        (status = 206, description = "The range that was asked for"),
        (status = 404, description = "No such execution, or it has no such payload"),
        (status = 410, description = "It was there and was removed by retention.payloads"),
        (status = 416, description = "The range is beyond its end"),
    )
)]
async fn payload(
    State(app): State<App>,
    caller: Caller,
    path: Result<Path<(String, String)>, axum::extract::rejection::PathRejection>,
    headers: HeaderMap,
) -> Answer {
    let Ok(Path((id, kind))) = path else {
        return Err(Problem::validation("the path cannot be decoded"));
    };
    let execution = show::execution_id(&id)?;
    let kind = kind_of(&kind)?;
    let wanted = execution.clone();
    let (row, size) = app
        .blocking(move |stores| -> muster_store::StoreResult<_> {
            let (_, row) = stores.decisions.execution(&wanted)?;
            let size = match row {
                Some(_) => stores.decisions.payload_size(&wanted, kind)?,
                None => None,
            };
            Ok((row, size))
        })
        .await?;
    let row = row
        .filter(|row| caller.sees(&row.principal))
        .ok_or_else(|| show::unknown_execution(&execution))?;
    let none = || match show::had(&row, kind) {
        true => gone(&execution, kind),
        false => Problem::not_found(format!("{execution} has no {}", kind.word())),
    };
    let size = size.ok_or_else(none)?;
    let range = headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let part = match range.and_then(|range| bounds(range, size)) {
        Some(Err(())) => return Ok(beyond(size)),
        Some(Ok((from, to))) => Some((from, to)),
        None => None,
    };
    // What is not asked for is not read: the first bytes of a large one cost what they are.
    let (from, until) = part.map_or((0, size), |(from, to)| (from, to + 1));
    let wanted = execution.clone();
    let bytes = app
        .blocking(move |stores| stores.decisions.payload_part(&wanted, kind, from..until))
        .await?
        .ok_or_else(none)?
        .0;
    let mut response = with_kind(bytes.into_response());
    if let Some((from, to)) = part {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let range = format!("bytes {from}-{to}/{size}");
        set(&mut response, header::CONTENT_RANGE, &range);
    }
    Ok(response)
}

/// 410: its row says that it was there.
fn gone(execution: &ExecutionId, kind: PayloadKind) -> Problem {
    let mut problem = Problem::not_found(format!(
        "the {} of {execution} was removed by retention.payloads; the execution itself is kept longer",
        kind.word()
    ));
    problem.status = StatusCode::GONE;
    problem
}

fn kind_of(word: &str) -> Result<PayloadKind, Problem> {
    [
        PayloadKind::Input,
        PayloadKind::Result,
        PayloadKind::ErrorDetails,
        PayloadKind::Late,
    ]
    .into_iter()
    .find(|kind| kind.word() == word)
    .ok_or_else(|| Problem::validation("a payload is input, result, error_details or late"))
}

/// 416: with the size, so that the next one can be asked for rightly.
fn beyond(size: usize) -> Response {
    let mut problem = Problem::validation(format!("the payload has {size} bytes"));
    problem.status = StatusCode::RANGE_NOT_SATISFIABLE;
    let mut response = problem.into_response();
    let range = format!("bytes */{size}");
    set(&mut response, header::CONTENT_RANGE, &range);
    response
}

fn with_kind(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    response
}

fn set(response: &mut Response, name: header::HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        response.headers_mut().insert(name, value);
    }
}

/// One range of bytes. `None` for what is no single range, which is answered whole; an error
/// for one beyond the end.
fn bounds(range: &str, size: usize) -> Option<Result<(usize, usize), ()>> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = (from.trim(), to.trim());
    if from.is_empty() {
        let last: usize = to.parse().ok()?;
        return Some(if last == 0 || size == 0 {
            Err(())
        } else {
            Ok((size.saturating_sub(last), size - 1))
        });
    }
    let from: usize = from.parse().ok()?;
    let to: usize = if to.is_empty() {
        usize::MAX
    } else {
        to.parse().ok()?
    };
    if to < from {
        return None;
    }
    Some(if from >= size {
        Err(())
    } else {
        Ok((from, to.min(size - 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::bounds;

    #[test]
    fn ranges_are_read_as_http_means_them() {
        for (range, want) in [
            ("bytes=0-3", Some(Ok((0, 3)))),
            ("bytes=4-", Some(Ok((4, 9)))),
            ("bytes=-3", Some(Ok((7, 9)))),
            ("bytes=-99", Some(Ok((0, 9)))),
            ("bytes=0-99", Some(Ok((0, 9)))),
            ("bytes=10-", Some(Err(()))),
            ("bytes=-0", Some(Err(()))),
            ("bytes=5-4", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
        ] {
            assert_eq!(bounds(range, 10), want, "{range}");
        }
    }
}
