//! The history of memory changes, and the filter that all readers of changes share.

use axum::extract::State;
use axum::http::StatusCode;
use muster_store::annex::MemoryEventFilter;
use serde::Deserialize;

use super::{json_text, may_read, moment, without_secret};
use crate::api::body::Query;
use crate::api::caller::Caller;
use crate::api::problem::{Answer, Problem};
use crate::app::App;
use crate::memory::{Change, EventFilter, ScopeWord};

/// The longest history.
const HISTORY_MAX: usize = 1_000;

/// Which changes.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Globs over keys, comma-separated; `*` is any run of characters, `?` one.
    pub(super) patterns: Option<String>,
    /// Only this scope.
    pub(super) scope: Option<String>,
    /// Only this scope id.
    pub(super) scope_id: Option<String>,
    /// At or after this time (history only).
    pub(super) since: Option<String>,
    /// The newest so many, up to 1,000 (history only; 100).
    pub(super) limit: Option<usize>,
}

impl EventsQuery {
    pub(super) fn filter(&self) -> Result<EventFilter, Problem> {
        let scope = match self.scope.as_deref() {
            None | Some("") => None,
            Some(word) => Some(
                ScopeWord::parse(word)
                    .map_err(super::refuse)?
                    .word()
                    .to_owned(),
            ),
        };
        Ok(EventFilter {
            patterns: EventFilter::patterns(self.patterns.as_deref().unwrap_or(""))
                .map_err(Problem::validation)?,
            scope,
            scope_id: self
                .scope_id
                .as_deref()
                .filter(|id| !id.is_empty())
                .map(|id| without_secret(id).to_owned()),
        })
    }
}

/// The latest changes, oldest first.
#[utoipa::path(get, path = "/api/v1/memory/events/history", tag = "memory", params(EventsQuery),
    responses((status = 200, description = "An array of changes")))]
pub(super) async fn history(
    State(app): State<App>,
    caller: Caller,
    Query(wish): Query<EventsQuery>,
) -> Answer {
    may_read(&caller)?;
    let filter = wish.filter()?;
    let since = wish.since.as_deref().filter(|text| !text.is_empty());
    let question = MemoryEventFilter {
        since: since.map(moment).transpose()?,
        ..filter.for_store(None, wish.limit.unwrap_or(100).min(HISTORY_MAX))
    };
    let events = app
        .blocking(move |stores| stores.annex.memory_events(&question))
        .await?;
    let mut text = String::from("[");
    for event in events {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Change::new(event).text);
    }
    text.push(']');
    Ok(json_text(StatusCode::OK, text))
}
