//! The memory change feed as server-sent events. `id` is the change's number; a reader that
//! names the last one it has seen gets what came after it, from the store if need be.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, StreamExt as _, unfold};

use super::events::EventsQuery;
use super::may_read;
use crate::api::body::Query;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::memory::{Change, Next, Reader};
use crate::meters::Stream as Kind;

/// Rows read at once from the store.
const PAGE: usize = 64;

/// The live feed of memory changes, resumable by `Last-Event-ID`.
#[utoipa::path(get, path = "/api/v1/memory/events/sse", tag = "memory", params(EventsQuery),
    responses((status = 200, description = "`data` is one change; `id` is its number",
               content_type = "text/event-stream")))]
pub(super) async fn sse(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Query(wish): Query<EventsQuery>,
) -> Result<Response, Problem> {
    may_read(&caller)?;
    let filter = wish.filter()?;
    let last_seen = match headers.get("last-event-id") {
        None => None,
        Some(value) => Some(
            value
                .to_str()
                .ok()
                .and_then(|text| text.parse::<u64>().ok())
                .ok_or_else(|| Problem::validation("Last-Event-ID is not one of this stream"))?,
        ),
    };
    let memory = app.memory.clone();
    let reader = app
        .blocking(move |stores| memory.reader(&*stores.annex, last_seen, filter))
        .await?;
    let changes = Follow {
        app: app.clone(),
        reader,
        stored: VecDeque::new(),
        behind: None,
    };
    let reading = app.meters.reading(Kind::Sse);
    let stream = changes
        .stream()
        .map(move |change| {
            let _open = &reading;
            Ok::<_, Infallible>(event(&change))
        })
        .take_until(app.stop.clone().cancelled_owned());
    let sse = Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)));
    Ok(unbuffered(sse.into_response()))
}

fn event(change: &Change) -> Event {
    Event::default()
        .id(change.seq.to_string())
        .data(change.text.as_str())
}

/// Tells proxies to pass on what they get at once.
pub(crate) fn unbuffered(mut response: Response) -> Response {
    response.headers_mut().insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// One reader, who is never told less than there is.
struct Follow {
    app: App,
    reader: Reader,
    /// Read from the store, not yet given out.
    stored: VecDeque<Arc<Change>>,
    /// Up to which number the store must be read, and from where.
    behind: Option<(u64, u64)>,
}

impl Follow {
    fn stream(self) -> impl Stream<Item = Arc<Change>> + Send {
        unfold(self, |mut follow| async move {
            let change = follow.next().await?;
            Some((change, follow))
        })
    }

    /// `None` when the store cannot be read: the reader comes back with its number.
    async fn next(&mut self) -> Option<Arc<Change>> {
        loop {
            if let Some(change) = self.stored.pop_front() {
                return Some(change);
            }
            if let Some((after, until)) = self.behind.take() {
                self.read_stored(after, until).await?;
                continue;
            }
            match self.reader.next().await {
                Next::Change(change) => return Some(change),
                Next::Missed { after, until } => {
                    self.app.meters.gap(Kind::Sse);
                    self.behind = Some((after, until));
                }
            }
        }
    }

    async fn read_stored(&mut self, after: u64, until: u64) -> Option<()> {
        let question = self.reader.filter().for_store(Some(after), PAGE);
        let read = self
            .app
            .blocking(move |stores| stores.annex.memory_events(&question))
            .await;
        let events = match read {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(error = %error, "a reader of memory changes is sent away: the store could not be read");
                return None;
            }
        };
        let is_last = events.len() < PAGE;
        let mut last = after;
        for event in events {
            if event.seq > until {
                // The live end has it.
                return Some(());
            }
            last = event.seq;
            self.stored.push_back(Arc::new(Change::new(event)));
        }
        if !is_last && last < until {
            self.behind = Some((last, until));
        }
        Some(())
    }
}
