//! When a plane was there over this store: each life from its start to its last sign, kept in
//! the store. Between two of them nobody can say what happened, and silence is nobody's fault.
//! Decides nothing.

use std::time::Duration;

use bytes::Bytes;
use muster_store::{Annex, StoreResult};
use muster_wire::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::app::App;

/// The setting that holds them.
const SETTING: &str = "plane.lives";
/// The setting that holds the first start.
const FIRST: &str = "plane.first_start";
/// How often this life is marked; an end without a word is known as exactly.
const EVERY: Duration = Duration::from_secs(30);
/// How long they are kept: as long as events, and a day.
const KEPT: Duration = Duration::from_secs(8 * 86_400);
/// Lives that are kept; of more the oldest are forgotten.
const LIVES_MAX: usize = 1_000;

/// The lives of planes over one store, the oldest first; the last is this one.
#[derive(Debug)]
pub struct Lives {
    first: FirstStart,
    lives: Mutex<Vec<Life>>,
}

/// When a plane was first there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FirstStart {
    at: i64,
    /// Nothing was there before. Otherwise it is the oldest sign of a build that kept no marks.
    exact: bool,
}

/// From its start to its last sign, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Life(i64, i64);

impl Lives {
    /// Reads those of before and begins a new one. `oldest` is when the oldest event that is kept
    /// happened.
    pub(crate) fn begin(
        annex: &dyn Annex,
        now: Timestamp,
        oldest: Option<Timestamp>,
    ) -> StoreResult<Self> {
        let stored = annex.setting(SETTING)?;
        // What cannot be read is forgotten: it says nothing that anything depends on.
        let mut lives: Vec<Life> = stored
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let first = first_start(annex, &lives, now, oldest)?;
        lives.retain(|life| life.1 > (now - KEPT).0 && life.0 <= life.1 && life.1 <= now.0);
        let forgotten = lives.len().saturating_sub(LIVES_MAX - 1);
        lives.drain(..forgotten);
        lives.push(Life(now.0, now.0));
        let lives = Self {
            first,
            lives: Mutex::new(lives),
        };
        lives.store(annex)?;
        Ok(lives)
    }

    /// This one still lives.
    pub(crate) fn mark(&self, annex: &dyn Annex, now: Timestamp) -> StoreResult<()> {
        if let Some(life) = self.lives.lock().last_mut() {
            life.1 = life.1.max(now.0);
        }
        self.store(annex)
    }

    fn store(&self, annex: &dyn Annex) -> StoreResult<()> {
        let text = serde_json::to_vec(&*self.lives.lock()).unwrap_or_default();
        annex.setting_put(SETTING, Bytes::from(text))
    }

    /// When no plane was there between two moments, the earliest first. Before the first life
    /// that is known none was; the present one goes on.
    pub(crate) fn away(&self, from: Timestamp, until: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let lives = self.lives.lock();
        let mut away = Vec::new();
        let mut seen = from;
        for (n, life) in lives.iter().enumerate() {
            let (begins, ends) = (Timestamp(life.0), Timestamp(life.1));
            if begins > seen && seen < until {
                away.push((seen, begins.min(until)));
            }
            seen = seen.max(ends);
            if n + 1 == lives.len() {
                seen = until;
            }
        }
        if seen < until {
            away.push((seen, until));
        }
        away
    }

    /// What is known of a plane's presence in a time, of which these are moments at which
    /// something was written, in order.
    pub(crate) fn presence(
        &self,
        from: Timestamp,
        until: Timestamp,
        written: &[Timestamp],
    ) -> Presence {
        let marked_from = self
            .lives
            .lock()
            .first()
            .map_or(until, |life| Timestamp(life.0));
        let first = Timestamp(self.first.at).min(marked_from);
        let mut seen = Presence {
            first,
            exact: self.first.exact,
            away: Vec::new(),
            unmarked: Vec::new(),
        };
        if first < marked_from {
            seen.unmarked.push((first, marked_from));
        }
        for (begin, end) in self.away(from.max(marked_from), until.max(marked_from)) {
            // What is written after the last mark may be of that life still.
            let still = begin + EVERY * 2;
            let other = written.iter().any(|at| *at > still && *at < end);
            match other {
                true => seen.unmarked.push((begin, end)),
                false => seen.away.push((begin, end)),
            }
        }
        seen
    }
}

/// The first start as it was kept; else as far as it can be told now, and that is kept.
fn first_start(
    annex: &dyn Annex,
    lives: &[Life],
    now: Timestamp,
    oldest: Option<Timestamp>,
) -> StoreResult<FirstStart> {
    let stored = annex.setting(FIRST)?;
    if let Some(first) = stored.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
        return Ok(first);
    }
    let signs = lives.first().map(|life| life.0);
    let signs = signs.into_iter().chain(oldest.map(|at| at.0)).min();
    let first = FirstStart {
        at: signs.unwrap_or(now.0).min(now.0),
        exact: signs.is_none(),
    };
    let text = serde_json::to_vec(&first).unwrap_or_default();
    annex.setting_put(FIRST, Bytes::from(text))?;
    Ok(first)
}

/// When a plane was there in some time, and when nobody can say.
#[derive(Debug)]
pub(crate) struct Presence {
    first: Timestamp,
    exact: bool,
    /// None was there.
    away: Vec<(Timestamp, Timestamp)>,
    /// One was there for some of it, and kept no marks of its presence.
    unmarked: Vec<(Timestamp, Timestamp)>,
}

/// What is known of a plane's presence in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// None was there in some of it.
    pub(crate) plane_down: bool,
    /// Why nothing can be known of all of it.
    pub(crate) unknown: Option<&'static str>,
}

impl Presence {
    /// Of a stretch, in which something was written or not.
    pub(crate) fn of(&self, from: Timestamp, until: Timestamp, written: bool) -> Stretch {
        if until <= self.first {
            return Stretch {
                plane_down: false,
                unknown: match (written, self.exact) {
                    (true, _) => None,
                    (false, true) => Some("before this plane's first start"),
                    (false, false) => Some("nothing is kept of that time"),
                },
            };
        }
        let whole = until.since(from.max(self.first));
        let gone = covered(&self.away, from, until);
        let unmarked = covered(&self.unmarked, from, until);
        Stretch {
            plane_down: gone > Duration::ZERO,
            unknown: if gone >= whole {
                Some("no plane was there")
            } else if gone + unmarked >= whole && !written {
                Some("nothing is kept of that time")
            } else {
                None
            },
        }
    }
}

/// Marks this life now and then.
pub(crate) fn start(app: &App) {
    crate::health::duty::start(app, "life", EVERY, |app| async move {
        let work = app.clone();
        app.blocking(move |stores| work.lives.mark(&*stores.annex, work.clock.now()))
            .await
            .map_err(|error| error.to_string())?;
        Ok("noted".to_owned())
    });
}

/// How much of a stretch lies in others.
pub(crate) fn covered(
    stretches: &[(Timestamp, Timestamp)],
    from: Timestamp,
    until: Timestamp,
) -> Duration {
    let parts = stretches.iter().map(|(begin, end)| {
        let (begin, end) = ((*begin).max(from), (*end).min(until));
        end.since(begin)
    });
    parts.sum()
}

#[cfg(test)]
mod tests {
    use muster_store::MemoryStore;

    use super::*;

    const S: i64 = 1_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * S)
    }

    #[test]
    fn what_lies_between_two_lives_is_away_and_a_start_forgets_nothing() {
        let store = MemoryStore::new();
        let first = Lives::begin(&store, at(100), None).unwrap();
        first.mark(&store, at(160)).unwrap();
        let second = Lives::begin(&store, at(400), None).unwrap();
        assert_eq!(
            second.away(at(0), at(500)),
            [(at(0), at(100)), (at(160), at(400))]
        );
        assert_eq!(second.away(at(120), at(150)), []);
        assert_eq!(second.away(at(200), at(300)), [(at(200), at(300))]);
        assert_eq!(second.away(at(450), at(9_000)), [], "this life goes on");
        let away = second.away(at(0), at(500));
        assert_eq!(
            covered(&away, at(90), at(200)),
            Duration::from_secs(10 + 40)
        );
    }

    #[test]
    fn before_the_first_start_no_plane_was_down() {
        let store = MemoryStore::new();
        let first = Lives::begin(&store, at(100), None).unwrap();
        first.mark(&store, at(160)).unwrap();
        let second = Lives::begin(&store, at(400), Some(at(100))).unwrap();
        let seen = second.presence(at(0), at(500), &[]);
        let look = |from, until| {
            let one = seen.of(at(from), at(until), false);
            (one.plane_down, one.unknown)
        };
        assert_eq!(
            look(0, 50),
            (false, Some("before this plane's first start"))
        );
        assert_eq!(look(50, 150), (false, None), "it began in this one");
        assert_eq!(look(110, 150), (false, None));
        assert_eq!(look(150, 200), (true, None));
        assert_eq!(look(200, 300), (true, Some("no plane was there")));
        assert_eq!(look(390, 450), (true, None));
        assert_eq!(look(450, 500), (false, None));
    }

    #[test]
    fn where_something_was_written_a_plane_was_there_whatever_the_marks_say() {
        let store = MemoryStore::new();
        // A build that keeps marks starts on the store of one that did not.
        let lives = Lives::begin(&store, at(1_000), Some(at(100))).unwrap();
        let seen = lives.presence(at(0), at(2_000), &[at(150)]);
        assert_eq!(seen.of(at(100), at(200), true).unknown, None);
        let kept = Some("nothing is kept of that time");
        for (from, until) in [(0, 90), (200, 300)] {
            let one = seen.of(at(from), at(until), false);
            assert_eq!((one.plane_down, one.unknown), (false, kept));
        }
        lives.mark(&store, at(1_100)).unwrap();
        let lives = Lives::begin(&store, at(5_000), Some(at(100))).unwrap();
        let away = lives.presence(at(0), at(5_000), &[at(1_120)]);
        assert!(
            away.of(at(2_000), at(3_000), false).plane_down,
            "its last words"
        );
        let other = lives.presence(at(0), at(5_000), &[at(2_500)]);
        let one = other.of(at(3_000), at(4_000), false);
        assert_eq!((one.plane_down, one.unknown), (false, kept));
        assert_eq!(other.of(at(2_000), at(3_000), true).unknown, None);
    }

    #[test]
    fn what_cannot_be_read_and_what_is_long_ago_is_forgotten() {
        let store = MemoryStore::new();
        store
            .setting_put(SETTING, Bytes::from_static(b"nonsense"))
            .unwrap();
        let lives = Lives::begin(&store, at(100), None).unwrap();
        lives.mark(&store, at(110)).unwrap();
        let late = at(110) + KEPT + Duration::from_secs(1);
        let lives = Lives::begin(&store, late, None).unwrap();
        assert_eq!(lives.away(at(100), late), [(at(100), late)]);
    }
}
