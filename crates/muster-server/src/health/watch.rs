//! The duties of this part: keeping keys fresh, keeping meters bounded, and noticing when some
//! other duty is late.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::duty;
use crate::app::App;

/// How stale the keys in memory may be.
const KEYS: Duration = Duration::from_secs(5);
/// How often the last use of keys is written.
const KEYS_USED_US: i64 = 60_000_000;
/// How often samples are moved into their buckets.
const METERS: Duration = Duration::from_secs(5);
/// How often the other duties are looked at.
const WATCH: Duration = Duration::from_secs(10);

/// Starts them.
pub(crate) fn start_duties(app: &App) {
    let written = AtomicI64::new(app.clock.now().0);
    duty::start(app, "keys", KEYS, move |app| {
        let now = app.clock.now().0;
        let write = now - written.load(Ordering::Relaxed) >= KEYS_USED_US;
        if write {
            written.store(now, Ordering::Relaxed);
        }
        async move {
            let work = app.clone();
            app.blocking(move |stores| {
                let used = if write {
                    work.auth.ring.write_used(&*stores.annex)?
                } else {
                    0
                };
                work.auth.ring.refresh(&*stores.annex)?;
                Ok(format!(
                    "{} keys, last use of {used} written",
                    work.auth.ring.len()
                ))
            })
            .await
            .map_err(|error: muster_store::StoreError| error.to_string())
        }
    });
    duty::start(app, "meters", METERS, |app| async move {
        app.meters.upkeep();
        Ok(String::new())
    });
    let known = Mutex::new(BTreeSet::new());
    duty::start(app, "watch", WATCH, move |app| {
        let late = look(&app, &known);
        async move { Ok(format!("{late} late")) }
    });
}

/// Logs what became late, or came back, since the last look; how many are late.
fn look(app: &App, known: &Mutex<BTreeSet<&'static str>>) -> usize {
    let mut known = known.lock();
    let now = app.clock.now();
    for duty in app.duties.report(now) {
        if duty.late && known.insert(duty.name) {
            let silent_s = now.since(duty.last_run.unwrap_or(duty.since)).as_secs();
            tracing::warn!(
                duty = duty.name,
                silent_s,
                every_s = duty.every.as_secs(),
                "a duty is late"
            );
        } else if !duty.late && known.remove(duty.name) {
            tracing::info!(duty = duty.name, "a duty that was late runs again");
        }
    }
    known.len()
}
