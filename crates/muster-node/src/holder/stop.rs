//! Ends everything that descends from this holder: asks, waits, kills, looks again. A process
//! that took a session of its own or lost its parent is among them, because orphans come to the
//! holder; one whose number was reused is not, because it is looked at before it is signalled.

use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::time::{Instant, sleep, timeout_at};

use super::reaper::Reaper;
use crate::tree::{self, Found, KILL_WAIT};

/// SIGTERM, `grace`, SIGKILL until none is left. Returns those that are left all the same.
pub(crate) async fn end_tree(reaper: &Reaper, grace: Duration) -> Vec<u32> {
    ask(reaper);
    if is_gone_until(reaper, Instant::now() + grace).await {
        return Vec::new();
    }
    let deadline = Instant::now() + KILL_WAIT;
    loop {
        kill(reaper);
        let look_again = Instant::now() + Duration::from_millis(50);
        if is_gone_until(reaper, look_again.min(deadline)).await {
            return Vec::new();
        }
        if Instant::now() >= deadline {
            return living().iter().map(|found| found.process.pid).collect();
        }
    }
}

/// Whether anything of the worker is left.
pub(crate) fn is_gone(reaper: &Reaper) -> bool {
    reaper.worker().is_none() && living().is_empty()
}

fn living() -> Vec<Found> {
    let mut all = tree::descendants(std::process::id());
    all.retain(|found| !found.is_zombie);
    all
}

/// The group first, at once; then whoever is outside of it.
fn ask(reaper: &Reaper) {
    let leader = reaper.worker();
    if let Some(leader) = leader {
        signal_group(leader, Signal::TERM);
        signal_group(leader, Signal::CONT);
    }
    for found in living() {
        if Some(found.group) != leader {
            tree::signal(found.process, Signal::TERM);
            // One that was stopped would not hear it.
            tree::signal(found.process, Signal::CONT);
        }
        if tree::ignores_term(found.process.pid) {
            tree::signal(found.process, Signal::HUP);
        }
    }
}

fn kill(reaper: &Reaper) {
    if let Some(leader) = reaper.worker() {
        signal_group(leader, Signal::KILL);
    }
    for found in living() {
        tree::signal(found.process, Signal::KILL);
    }
}

/// The worker was not collected, so its number is its own, and so is its group's.
fn signal_group(leader: u32, signal: Signal) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // It has no group before it has a session: then it is signalled alone.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

async fn is_gone_until(reaper: &Reaper, deadline: Instant) -> bool {
    let mut collected = reaper.collected.subscribe();
    let mut pause = Duration::from_millis(5);
    loop {
        if is_gone(reaper) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        // A child that ends says so; a grandchild is looked for.
        let look = async {
            tokio::select! {
                _ = collected.changed() => {}
                () = sleep(pause) => {}
            }
        };
        let _ = timeout_at(deadline, look).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}
