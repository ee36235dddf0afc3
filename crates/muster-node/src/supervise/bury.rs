//! What is done when a holder is gone and its worker's end was not told: ends what is left of
//! the worker, and writes down that nobody saw how it ended.

use std::sync::Arc;
use std::time::Duration;

use muster_wire::Timestamp;
use muster_wire::fleet::ExitReport;
use muster_wire::fleet::frame::SpawnOutput;
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::core::Core;
use super::plan::tags;
use crate::record::{ExitRecord, Kept, StateRecord};
use crate::tree::{self, Found, KILL_WAIT};

/// Buries a worker whose holder is gone.
pub(crate) async fn bury(core: &Arc<Core>, worker: &str) {
    let dir = core.dir(worker);
    // While this is held no holder that comes too late can begin.
    let _lock = dir.take_lock();
    let kept = dir.read().unwrap_or_else(|error| {
        tracing::error!(worker.id = worker, %error, "a worker's directory cannot be read");
        Kept::default()
    });
    let state = kept
        .state
        .clone()
        .or_else(|| core.look(worker, |one| one.state.clone()));
    let left = end_strays(core, worker, state.as_ref()).await;
    if let Some(SpawnOutput::Refused { message, .. }) =
        state.as_ref().and_then(|state| state.answer.clone())
    {
        return core.refuse(worker, message);
    }
    let last = kept.last().cloned();
    let number = kept.next_number();
    core.take_in(kept);
    if let Some(last) = last {
        core.ended_before(last);
        return core.over(worker, pids(&left));
    }
    let record = ExitRecord {
        worker_id: worker.to_owned(),
        name: state
            .as_ref()
            .map_or_else(String::new, |state| state.name.clone()),
        number,
        restarts: state.as_ref().map_or(0, |state| state.restarts),
        exit: ExitReport {
            reason: Some(words(state.as_ref(), left.len())),
            ..ExitReport::default()
        },
        next_start_at: None,
        written_at: Timestamp::wall_clock(),
    };
    tracing::warn!(
        worker.id = worker,
        strays = left.len(),
        "a worker lost its holder"
    );
    if let Err(error) = dir.write_exit(&record) {
        // It has the same id when it is found and written again.
        tracing::error!(worker.id = worker, %error, "an exit was not written");
    }
    core.exited(record);
    core.over(worker, pids(&left));
}

fn pids(left: &[Found]) -> Vec<u32> {
    left.iter().map(|found| found.process.pid).collect()
}

fn words(state: Option<&StateRecord>, left: usize) -> String {
    let rest = match left {
        0 => String::new(),
        left => format!("; {left} of its processes are still there after SIGKILL"),
    };
    let Some(state) = state else {
        return format!("its holder was killed before it had begun{rest}");
    };
    if state.boot != tree::boot_id() {
        return format!("the machine was started again{rest}");
    }
    let holder = state
        .holder
        .map_or_else(String::new, |holder| format!(" (process {})", holder.pid));
    format!("its holder{holder} was killed, and the worker with it: how it ended nobody saw{rest}")
}

/// Kills what carries the worker's tags, and the process that it is known to have had. Returns
/// what is left.
async fn end_strays(core: &Core, worker: &str, state: Option<&StateRecord>) -> Vec<Found> {
    let tags = tags(worker, &core.epoch);
    if let Some(process) = state
        .filter(|state| state.boot == tree::boot_id())
        .and_then(|state| state.process)
    {
        tree::signal(process, Signal::KILL);
    }
    let deadline = Instant::now() + KILL_WAIT;
    loop {
        let mut left = tree::tagged(&tags);
        left.retain(|found| !found.is_zombie);
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        for found in &left {
            tree::signal(found.process, Signal::KILL);
        }
        sleep(Duration::from_millis(10)).await;
    }
}
