//! Follows the log of one execution as server-sent events: what is there, what comes, and an
//! `end` when the execution has ended and nothing more came. Woken by writes, never by a timer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{Stream, StreamExt as _, unfold};
use muster_engine::row::EventRow;
use muster_store::annex::LogRow;
use muster_wire::ExecutionId;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep_until};

use super::{Gravity, READ, page, shown};
use crate::api::memory::unbuffered;
use crate::app::App;
use crate::meters::Stream as Kind;

/// How long after the end lines are waited for: the last ones travel beside the result.
const AFTER_END: Duration = Duration::from_secs(1);

struct Follow {
    app: App,
    id: ExecutionId,
    at: u64,
    least: Gravity,
    lines: VecDeque<LogRow>,
    written: Arc<Notify>,
    events: broadcast::Receiver<Arc<EventRow>>,
    /// When it ends, once its execution has.
    until: Option<Instant>,
    /// The first read must happen before anything is waited for.
    is_fresh: bool,
    ended: bool,
}

/// The answer.
pub(super) fn stream(app: App, id: ExecutionId, after: u64, least: Gravity) -> Response {
    let follow = Follow {
        written: app.logs.follow(&id),
        events: app.feed.subscribe(),
        id,
        at: after,
        least,
        lines: VecDeque::new(),
        until: None,
        is_fresh: true,
        ended: false,
        app: app.clone(),
    };
    let reading = app.meters.reading(Kind::Sse);
    let stream = follow
        .stream()
        .map(move |event| {
            let _open = &reading;
            Ok::<_, Infallible>(event)
        })
        .take_until(app.stop.clone().cancelled_owned());
    let sse = Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)));
    unbuffered(sse.into_response())
}

impl Follow {
    fn stream(self) -> impl Stream<Item = Event> + Send {
        unfold(self, |mut follow| async move {
            let event = follow.next().await?;
            Some((event, follow))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                let id = line.seq.to_string();
                return Some(Event::default().id(id).data(shown(&line).to_string()));
            }
            if self.ended {
                return None;
            }
            let written = self.written.clone();
            let mut written = std::pin::pin!(written.notified());
            // From here on no write is missed, whatever the read below sees.
            written.as_mut().enable();
            if self.read().await? || std::mem::take(&mut self.is_fresh) && self.until.is_some() {
                continue;
            }
            let until = self.until;
            let silence = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = written => {}
                () = silence => {
                    self.ended = true;
                    return Some(Event::default().event("end").data("{}"));
                }
                event = self.events.recv() => self.heard(event),
            }
        }
    }

    fn heard(&mut self, event: Result<Arc<EventRow>, broadcast::error::RecvError>) {
        match event {
            Ok(event) if event.execution.as_ref() == Some(&self.id) => {
                if event.status.is_some_and(|status| status.is_terminal()) {
                    self.ends_soon();
                }
            }
            Ok(_) => {}
            // Missed some: the next read asks for the row.
            Err(broadcast::error::RecvError::Lagged(_)) => self.is_fresh = true,
            Err(broadcast::error::RecvError::Closed) => self.ends_soon(),
        }
    }

    fn ends_soon(&mut self) {
        self.until.get_or_insert_with(|| Instant::now() + AFTER_END);
    }

    /// Reads on; whether there was something. `None` when the store cannot be read.
    async fn read(&mut self) -> Option<bool> {
        let (id, at, least) = (self.id.clone(), self.at, self.least);
        let asks_row = self.is_fresh;
        let read = self
            .app
            .blocking(move |stores| {
                let row = if asks_row {
                    stores.decisions.execution(&id)?.1
                } else {
                    None
                };
                let ended = row.is_some_and(|row| row.status.is_terminal());
                Ok::<_, muster_store::StoreError>((ended, page(stores, &id, at, least, READ)?))
            })
            .await;
        match read {
            Ok((ended, page)) => {
                self.at = page.at;
                self.lines = page.lines.into();
                if ended {
                    self.ends_soon();
                }
                Some(!self.lines.is_empty() || page.has_more)
            }
            Err(error) => {
                tracing::warn!(error = %error, "a follower of a log is sent away: the store could not be read");
                None
            }
        }
    }
}
