//! What is done now and then: retention, left-over payloads, room on the disk. Each run is
//! bounded and never holds a commit up for long.

use std::time::Duration;

use muster_engine::Event;
use muster_store::annex::KeyRecord;
use muster_store::{Retention, StoreError, StoreResult, StoreSizes};
use muster_wire::{Timestamp, WorkerId, plain};

use crate::app::App;
use crate::auth::Auth;
use crate::config::Config;
use crate::health::duty;

/// How often what is too old goes.
const RETENTION: Duration = Duration::from_secs(60);
/// Rows of one pass.
const RETIRED_MAX: usize = 2_000;
/// How long one run of retention goes on at most.
const AT_IT_MAX: Duration = Duration::from_secs(20);
/// Executions that go for want of room before it is measured again.
const EARLY_MAX: usize = 200;
/// How often left-over payloads are looked for, and how old one must be.
const LEFTOVERS: Duration = Duration::from_secs(600);
/// Left-overs of one pass.
const LEFTOVERS_MAX: usize = 1_000;
/// How often keys of workers that ended are looked for.
const WORKER_KEYS: Duration = Duration::from_secs(3_600);
/// How often sessions that are over are looked for.
const SESSIONS: Duration = Duration::from_secs(600);
/// How often the disk is looked at.
const DISK: Duration = Duration::from_secs(5);
/// The reserve when the configuration names none: this, or a twentieth of the disk.
const MIN_FREE: u64 = 1024 * 1024 * 1024;
/// How long gone instances are shown.
const INSTANCES_KEPT: Duration = Duration::from_secs(7 * 86_400);
/// How long workers that ended are kept at least.
const WORKERS_LEAST: Duration = Duration::from_secs(86_400);

/// Starts them.
pub(crate) fn start(app: &App) {
    duty::start(app, "retention", RETENTION, |app| async move {
        let rows = retire(&app).await.map_err(|error| error.to_string())?;
        let early = make_room(&app).await.map_err(|error| error.to_string())?;
        Ok(match early {
            0 => format!("{rows} rows"),
            early => format!("{rows} rows, {early} before their time for retention.max_store"),
        })
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
    duty::start(app, "worker keys", WORKER_KEYS, |app| async move {
        let work = app.clone();
        let gone = app.blocking(move |stores| sweep_worker_keys(&work.auth, stores));
        let gone = gone.await.map_err(|error| error.to_string())?;
        Ok(format!("{gone} removed"))
    });
    duty::start(app, "sessions", SESSIONS, |app| async move {
        let (work, now) = (app.clone(), app.clock.now());
        let gone = app.blocking(move |stores| work.auth.sweep_sessions(&*stores.annex, now));
        let gone = gone.await.map_err(|error| error.to_string())?;
        Ok(format!("{gone} removed"))
    });
    duty::start(app, "disk", DISK, |app| async move {
        let sizes: StoreResult<StoreSizes> = app.blocking(|stores| stores.decisions.sizes()).await;
        let sizes = sizes.map_err(|error| error.to_string())?;
        let Some(free) = sizes.free else {
            return Ok("no disk".to_owned());
        };
        let reserve = reserve(&app.config, sizes.disk);
        app.growth
            .sample(app.clock.now(), crate::growth::used(&sizes));
        let is_full = free < reserve;
        app.growth.set_spare(free.saturating_sub(reserve));
        if app.growth.set_full(is_full) {
            tracing::warn!(free, reserve, full = is_full, "room on the disk changed");
            app.driver.tell(Event::StoreRoom { full: is_full });
        }
        Ok(format!(
            "{} free, reserve {}",
            plain::bytes(free),
            plain::bytes(reserve)
        ))
    });
}

/// Removes the keys of workers that ended. They go with their workers; these are left from a
/// plane that ended between the commit and that.
fn sweep_worker_keys(auth: &Auth, stores: &muster_store::Stores) -> StoreResult<usize> {
    let mut gone = 0;
    for record in auth.ring.some(|record| worker_of(record).is_some()) {
        let Some(id) = worker_of(&record) else {
            continue;
        };
        // A supervisor's worker that no node runs has no row.
        let row = match stores.decisions.worker(&id) {
            Err(StoreError::Unreadable(_)) => continue,
            row => row?,
        };
        if row.is_some_and(|row| row.ended.is_some()) {
            gone += usize::from(auth.ring.remove(&*stores.annex, &record.id)?);
        }
    }
    Ok(gone)
}

fn worker_of(record: &KeyRecord) -> Option<WorkerId> {
    let word = record.scopes.first()?.strip_prefix("worker:")?;
    WorkerId::parse(word).ok()
}

/// Removes what is too old, pass by pass, for at most some seconds.
async fn retire(app: &App) -> StoreResult<u64> {
    let began = std::time::Instant::now();
    let mut all = 0;
    loop {
        let cut = cut(&app.config, app.clock.now());
        let pass = move |stores: &muster_store::Stores| stores.decisions.retire(&cut, RETIRED_MAX);
        let rows = app.blocking(pass).await?;
        all += rows;
        if rows > 0 {
            app.views
                .forget_ended_before(cut.executions_before.max(cut.payloads_before));
        }
        if rows < RETIRED_MAX as u64 || began.elapsed() > AT_IT_MAX || app.stop.is_cancelled() {
            return Ok(all);
        }
    }
}

impl App {
    /// Removes the oldest finished runs while the store is larger than it may be; how many rows.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn make_room(&self) -> StoreResult<u64> {
        make_room(self).await
    }
}

async fn make_room(app: &App) -> StoreResult<u64> {
    let Some(max) = app.config.retention.max_store else {
        return Ok(0);
    };
    let began = std::time::Instant::now();
    let mut all = 0;
    loop {
        let sizes = app.blocking(|stores| stores.decisions.sizes()).await?;
        let over = crate::growth::used(&sizes) > max.0;
        if !over || began.elapsed() > AT_IT_MAX || app.stop.is_cancelled() {
            return Ok(all);
        }
        let rows = app
            .blocking(|stores| stores.decisions.retire_oldest(EARLY_MAX))
            .await?;
        if rows == 0 {
            tracing::warn!(
                bytes = crate::growth::used(&sizes),
                max = max.0,
                "the store is larger than retention.max_store, and no finished run is left to go"
            );
            return Ok(all);
        }
        all += rows;
    }
}

/// Below how many free bytes new work is refused.
pub(crate) fn reserve(config: &Config, disk: Option<u64>) -> u64 {
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
        payloads_before: now - kept.payloads.0.unwrap_or(kept.executions.0),
        events_before: now - kept.events.0,
        memory_events_before: now - kept.memory_events.0,
        webhooks_before: now - kept.webhooks.0,
        keys_before: now - kept.idempotency.0,
        logs_before: now - kept.logs.0,
        audit_before: now - kept.audit.0,
        quarantine_before: now - kept.quarantine.0,
        instances_before: now - INSTANCES_KEPT,
        // A start reads those that ended in the last day; no key may be free before.
        workers_before: now - kept.workers.0.max(WORKERS_LEAST),
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
