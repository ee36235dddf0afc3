//! What every answer that is polled says of itself: the plane's time, and the position in the
//! event sequence that it reflects at least.

use muster_wire::api::At;

use super::cursor::Cursors;
use super::write::Writer;
use crate::app::App;

/// Time and position of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    /// The plane's time.
    pub(crate) as_of: At,
    /// The cursor of the last event that was committed.
    pub(crate) position: String,
}

impl Stamp {
    /// As of now. Taken before the first read, so that nothing after `position` is missed.
    pub(crate) fn now(app: &App) -> Self {
        Self::at(app, app.driver.vitals().last_seq)
    }

    /// As of now, with a position that a read told.
    pub(crate) fn at(app: &App, seq: u64) -> Self {
        Self {
            as_of: At(app.clock.now()),
            position: Cursors::of(app).text(seq),
        }
    }

    /// Writes both as the first members of an object: a tag of its bytes leaves them out there.
    pub(crate) fn write(&self, writer: &mut Writer) {
        writer
            .time_if("as_of", Some(self.as_of.0))
            .text("position", &self.position);
    }
}
