//! Finds the workers of a state directory again: those whose holders still run, those that have
//! ended, and those whose holders are gone.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::bury::bury;
use super::core::{Core, Worker};
use super::link;
use crate::record::{Kept, Phase, StateRecord, WorkerDir};

/// How long holders that run are waited for, all together; later ones come when they come.
const MEET_WAIT: Duration = Duration::from_secs(5);

/// Takes in all that is there.
pub(crate) async fn recover(core: &Arc<Core>) -> io::Result<()> {
    let mut met = Vec::new();
    let mut burials = Vec::new();
    for entry in fs::read_dir(&core.workers_dir)? {
        let entry = entry?;
        let Ok(worker) = entry.file_name().into_string() else {
            continue;
        };
        let dir = core.dir(&worker);
        let kept = match dir.read() {
            Ok(kept) => kept,
            Err(error) => {
                // One that cannot be read is no reason to lose sight of the others.
                tracing::error!(path = %dir.path().display(), %error, "this is no worker's directory");
                continue;
            }
        };
        match find(&dir, &kept) {
            Found::Held => {
                let state = kept.state.clone().unwrap_or_else(|| unknown(&worker));
                let worker_entry = Worker::new(state, None);
                met.push((
                    worker_entry.requests.subscribe(),
                    worker_entry.over.subscribe(),
                ));
                core.adopt(worker_entry);
                core.take_in(kept);
                tokio::spawn(link::keep(core.clone(), worker));
            }
            Found::NeverRan => {
                if let Err(error) = dir.remove() {
                    tracing::warn!(worker.id = worker, %error, "an unused directory stays");
                }
            }
            Found::Ended => {
                let state = kept.state.clone().unwrap_or_else(|| unknown(&worker));
                core.adopt(Worker::new(state, kept.last().cloned()));
                core.take_in(kept);
            }
            Found::Orphaned => {
                let state = kept.state.clone().unwrap_or_else(|| unknown(&worker));
                core.adopt(Worker::new(state, None));
                let core = core.clone();
                burials.push(tokio::spawn(async move { bury(&core, &worker).await }));
            }
        }
    }
    for burial in burials {
        if let Err(error) = burial.await {
            tracing::error!(%error, "a burial failed");
        }
    }
    let all_met = async {
        for (mut requests, mut over) in met {
            tokio::select! {
                _ = requests.wait_for(Option::is_some) => {}
                // Its end came first.
                _ = over.wait_for(Option::is_some) => {}
            }
        }
    };
    if timeout(MEET_WAIT, all_met).await.is_err() {
        tracing::warn!("not every holder was reached yet");
    }
    core.forget_old();
    Ok(())
}

enum Found {
    /// Its holder runs.
    Held,
    /// A daemon died while it began.
    NeverRan,
    /// It has ended, and how is known.
    Ended,
    /// Its holder is gone.
    Orphaned,
}

fn find(dir: &WorkerDir, kept: &Kept) -> Found {
    // A holder that is just beginning and does not get the lock does not begin.
    let lock = match dir.take_lock() {
        Ok(None) => return Found::Held,
        Ok(Some(lock)) => Some(lock),
        Err(_) => None,
    };
    let was_refused = matches!(
        kept.state.as_ref().and_then(|state| state.answer.as_ref()),
        Some(muster_wire::fleet::frame::SpawnOutput::Refused { .. })
    );
    let has_state = dir.path().join("state.json").exists();
    let found = if kept.last().is_some() {
        Found::Ended
    } else if was_refused || (!has_state && kept.next_number() == 0) {
        Found::NeverRan
    } else {
        Found::Orphaned
    };
    if matches!(found, Found::NeverRan) {
        // Before the lock is let go.
        let _ = fs::remove_file(dir.path().join("lock"));
    }
    drop(lock);
    found
}

fn unknown(worker: &str) -> StateRecord {
    StateRecord {
        worker_id: worker.to_owned(),
        name: String::new(),
        phase: Phase::Starting,
        io: muster_wire::fleet::WorkerIo::Pty,
        holder: None,
        process: None,
        started_at: None,
        restarts: 0,
        next_start_at: None,
        answer: None,
        boot: crate::tree::boot_id(),
        stop_grace_ms: 10_000,
    }
}
