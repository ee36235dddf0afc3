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
/// How often this life is marked; an end without a word is known as exactly.
const EVERY: Duration = Duration::from_secs(30);
/// How long they are kept: as long as events, and a day.
const KEPT: Duration = Duration::from_secs(8 * 86_400);
/// Lives that are kept; of more the oldest are forgotten.
const LIVES_MAX: usize = 1_000;

/// The lives of planes over one store, the oldest first; the last is this one.
#[derive(Debug, Default)]
pub struct Lives(Mutex<Vec<Life>>);

/// From its start to its last sign, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Life(i64, i64);

impl Lives {
    /// Reads those of before and begins a new one.
    pub(crate) fn begin(annex: &dyn Annex, now: Timestamp) -> StoreResult<Self> {
        let stored = annex.setting(SETTING)?;
        // What cannot be read is forgotten: it says nothing that anything depends on.
        let mut lives: Vec<Life> = stored
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        lives.retain(|life| life.1 > (now - KEPT).0 && life.0 <= life.1 && life.1 <= now.0);
        let forgotten = lives.len().saturating_sub(LIVES_MAX - 1);
        lives.drain(..forgotten);
        lives.push(Life(now.0, now.0));
        let lives = Self(Mutex::new(lives));
        lives.store(annex)?;
        Ok(lives)
    }

    /// This one still lives.
    pub(crate) fn mark(&self, annex: &dyn Annex, now: Timestamp) -> StoreResult<()> {
        if let Some(life) = self.0.lock().last_mut() {
            life.1 = life.1.max(now.0);
        }
        self.store(annex)
    }

    fn store(&self, annex: &dyn Annex) -> StoreResult<()> {
        let text = serde_json::to_vec(&*self.0.lock()).unwrap_or_default();
        annex.setting_put(SETTING, Bytes::from(text))
    }

    /// When no plane was there between two moments, the earliest first. Before the first life
    /// that is known none was; the present one goes on.
    pub(crate) fn away(&self, from: Timestamp, until: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let lives = self.0.lock();
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
        let first = Lives::begin(&store, at(100)).unwrap();
        first.mark(&store, at(160)).unwrap();
        let second = Lives::begin(&store, at(400)).unwrap();
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
    fn what_cannot_be_read_and_what_is_long_ago_is_forgotten() {
        let store = MemoryStore::new();
        store
            .setting_put(SETTING, Bytes::from_static(b"nonsense"))
            .unwrap();
        let lives = Lives::begin(&store, at(100)).unwrap();
        lives.mark(&store, at(110)).unwrap();
        let late = at(110) + KEPT + Duration::from_secs(1);
        let lives = Lives::begin(&store, late).unwrap();
        assert_eq!(lives.away(at(100), late), [(at(100), late)]);
    }
}
