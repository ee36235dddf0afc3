//! One open event stream: what goes out, and when. Knows the words of server-sent events;
//! what a reader wants is the filter's, where events come from is the tail's.
//!
//! A reader that is slow is not waited for: nothing is kept for it here, its tail falls behind
//! the live feed, and it reads on in the store.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use muster_wire::api::events::{
    ChangedFrame, ChangedTopic, EndFrame, EndReason, GapFrame, ResetFrame, StreamMessage, TickFrame,
};
use tokio::time::Instant;

use super::shown;
use super::topics::Filter;
use crate::api::cursor::Cursors;
use crate::app::App;
use crate::meters::{Open, Stream};
use crate::tail::{Step, Tail};

/// How often something is sent while nothing happens.
const TICK: Duration = Duration::from_secs(5);
/// Between two messages that say that the same thing changed.
const CHANGED_APART: Duration = Duration::from_secs(1);
/// After the first change of a while: what else the same commit brings belongs to it.
const CHANGED_SETTLE: Duration = Duration::from_millis(50);

/// The body of a stream. With `resumed`, its reader has a position and may have missed changes.
pub(super) fn body(app: App, tail: Tail, filter: Filter, resumed: bool) -> Body {
    let now = Instant::now();
    let changes = filter.changed().map(|topic| Change {
        topic,
        due: resumed.then_some(now),
        not_before: now,
    });
    let reader = Reader {
        cursors: Cursors::of(&app),
        changes: changes.collect(),
        tail,
        filter,
        life: Life::Fresh,
        tick_at: now + TICK,
        _open: app.meters.reading(Stream::Sse),
        app,
    };
    Body::from_stream(stream::unfold(reader, |mut reader| async {
        let frame = reader.next().await?;
        Some((Ok::<Bytes, Infallible>(frame), reader))
    }))
}

/// A topic of which only the fact is told that it changed.
struct Change {
    topic: ChangedTopic,
    /// When to tell; `None` while nothing changed since it was told last.
    due: Option<Instant>,
    /// Not earlier than this.
    not_before: Instant,
}

enum Life {
    /// Nothing was sent.
    Fresh,
    /// The head went out.
    Connected,
    /// The first tick went out.
    Greeted,
    /// The last message went out.
    Done,
}

struct Reader {
    app: App,
    tail: Tail,
    cursors: Cursors,
    filter: Filter,
    changes: Vec<Change>,
    life: Life,
    tick_at: Instant,
    _open: Open,
}

impl Reader {
    /// The next bytes; `None` after the last.
    async fn next(&mut self) -> Option<Bytes> {
        match self.life {
            Life::Done => return None,
            Life::Fresh => {
                // The head goes out at once, so that the other side knows that it is connected.
                self.life = Life::Connected;
                return Some(Bytes::from_static(b": connected\n\n"));
            }
            Life::Connected => {
                self.life = Life::Greeted;
                let message = match self.tail.settle().await {
                    Ok(()) => self.tick(),
                    Err(error) => self.broken(&error),
                };
                return Some(self.told(&message));
            }
            Life::Greeted => {}
        }
        let message = self.message().await;
        Some(self.told(&message))
    }

    async fn message(&mut self) -> StreamMessage {
        loop {
            let now = Instant::now();
            if let Some(changed) = self.due_change(now) {
                return changed;
            }
            // A long run of what is not told must not keep the other side waiting.
            if now >= self.tick_at {
                return self.tick();
            }
            let dues = self.changes.iter().filter_map(|change| change.due);
            let wake = dues.fold(self.tick_at, Instant::min);
            let step = tokio::select! {
                biased;
                step = self.tail.next() => step,
                () = tokio::time::sleep_until(wake) => continue,
            };
            match step {
                Ok(Step::Event(row)) => {
                    for place in self.filter.moved_by(row.kind) {
                        self.changes[place].moved(now);
                    }
                    if self.filter.fits(&row) {
                        return StreamMessage::Event(Box::new(shown(&row, self.cursors)));
                    }
                }
                Ok(Step::Gap(missed)) => {
                    self.app.meters.gap(Stream::Sse);
                    return StreamMessage::Gap(GapFrame { missed });
                }
                Ok(Step::Reset(after)) => {
                    let oldest = self.cursors.text(after);
                    return StreamMessage::Reset(ResetFrame { oldest });
                }
                Ok(Step::End) => {
                    self.life = Life::Done;
                    let reason = EndReason::Shutdown.into();
                    return StreamMessage::End(EndFrame { reason });
                }
                Err(error) => return self.broken(&error),
            }
        }
    }

    fn tick(&self) -> StreamMessage {
        StreamMessage::Tick(TickFrame {
            at: self.app.clock.now().into(),
            position: self.cursors.text(self.tail.position()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.app.start_id.to_string(),
        })
    }

    fn due_change(&mut self, now: Instant) -> Option<StreamMessage> {
        let is_due = |change: &&mut Change| change.due.is_some_and(|due| due <= now);
        let change = self.changes.iter_mut().find(is_due)?;
        change.due = None;
        change.not_before = now + CHANGED_APART;
        Some(StreamMessage::Changed(ChangedFrame {
            topic: change.topic.into(),
            at: self.app.clock.now().into(),
            position: self.cursors.text(self.tail.position()),
        }))
    }

    fn broken(&mut self, error: &muster_store::StoreError) -> StreamMessage {
        tracing::error!(error = %error, "an event stream could not read the store");
        self.life = Life::Done;
        let reason = EndReason::Store.into();
        StreamMessage::End(EndFrame { reason })
    }

    /// Something goes out: the next sign of life is not due for a while.
    fn told(&mut self, message: &StreamMessage) -> Bytes {
        self.tick_at = Instant::now() + TICK;
        frame(message)
    }
}

impl Change {
    fn moved(&mut self, now: Instant) {
        if self.due.is_none() {
            self.due = Some(self.not_before.max(now + CHANGED_SETTLE));
        }
    }
}

/// A message as the stream spells it.
fn frame(message: &StreamMessage) -> Bytes {
    let mut text = String::with_capacity(256);
    if let Some(name) = message.name() {
        text += "event: ";
        text += name;
        text.push('\n');
    }
    if let Some(id) = message.id() {
        text += "id: ";
        text += id;
        text.push('\n');
    }
    text += "data: ";
    text += &serde_json::to_string(message).unwrap_or_default();
    text += "\n\n";
    text.into()
}
