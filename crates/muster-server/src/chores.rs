//! What is done now and then: retention, left-over payloads, room on the disk. Each run is
//! bounded and never holds a commit up for long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_engine::Event;
use muster_store::{Retention, StoreResult, StoreSizes};
use muster_wire::Timestamp;

use crate::app::App;
use crate::config::Config;
use crate::health::duty;

/// How often what is too old goes.
const RETENTION: Duration = Duration::from_secs(60);
/// Rows of one pass.
const RETIRED_MAX: usize = 2_000;
/// How often left-over payloads are looked for, and how old one must be.
const LEFTOVERS: Duration = Duration::from_secs(600);
/// Left-overs of one pass.
const LEFTOVERS_MAX: usize = 1_000;
/// How often the disk is looked at.
const DISK: Duration = Duration::from_secs(10);
/// The reserve when the configuration names none: this, or a twentieth of the disk.
const MIN_FREE: u64 = 1024 * 1024 * 1024;
/// How long gone instances are shown.
const INSTANCES_KEPT: Duration = Duration::from_secs(7 * 86_400);

/// Starts them.
pub(crate) fn start(app: &App) {
    duty::start(app, "retention", RETENTION, |app| async move {
        let cut = cut(&app.config, app.clock.now());
        let retire =
            move |stores: &muster_store::Stores| stores.decisions.retire(&cut, RETIRED_MAX);
        let rows = app
            .blocking(retire)
            .await
            .map_err(|error| error.to_string())?;
        Ok(format!("{rows} rows"))
    });
    duty::start(app, "leftovers", LEFTOVERS, |app| async move {
        let before = app.clock.now() - LEFTOVERS;
        let collect = move |stores: &muster_store::Stores| {
            stores.decisions.collect_leftovers(before, LEFTOVERS_MAX)
        };
        let gone = app
            .blocking(collect)
            .await
            .map_err(|error| error.to_string())?;
        Ok(format!("{gone} payloads"))
    });
    let full = std::sync::Arc::new(AtomicBool::new(false));
    duty::start(app, "disk", DISK, move |app| {
        let full = full.clone();
        async move {
            let sizes: StoreResult<StoreSizes> =
                app.blocking(|stores| stores.decisions.sizes()).await;
            let sizes = sizes.map_err(|error| error.to_string())?;
            let Some(free) = sizes.free else {
                return Ok("no disk".to_owned());
            };
            let reserve = reserve(&app.config, sizes.disk);
            let is_full = free < reserve;
            if full.swap(is_full, Ordering::AcqRel) != is_full {
                tracing::warn!(free, reserve, full = is_full, "room on the disk changed");
                app.driver.tell(Event::StoreRoom { full: is_full });
            }
            Ok(format!("{free} bytes free, reserve {reserve}"))
        }
    });
}

/// Below how many free bytes new work is refused.
fn reserve(config: &Config, disk: Option<u64>) -> u64 {
    match config.store.min_free {
        Some(size) => size.0,
        None => disk.map_or(MIN_FREE, |disk| (disk / 20).min(MIN_FREE)),
    }
}

/// Up to which moment each kind is kept.
fn cut(config: &Config, now: Timestamp) -> Retention {
    let kept = &config.retention;
    Retention {
        executions_before: now - kept.executions.0,
        events_before: now - kept.events.0,
        keys_before: now - kept.idempotency.0,
        logs_before: now - kept.logs.0,
        audit_before: now - kept.audit.0,
        quarantine_before: now - kept.quarantine.0,
        instances_before: now - INSTANCES_KEPT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_the_smaller_of_a_gibibyte_and_a_twentieth() {
        let config = Config::default();
        assert_eq!(reserve(&config, Some(10 * MIN_FREE)), MIN_FREE / 2);
        assert_eq!(reserve(&config, Some(1000 * MIN_FREE)), MIN_FREE);
    }
}
