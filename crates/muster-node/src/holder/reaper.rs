//! Collects every child of this process that has ended: the worker, and orphans of it that came
//! to the holder. Nothing else in a holder waits for children.

use std::cell::Cell;
use std::rc::Rc;

use rustix::process::{WaitOptions, WaitStatus};
use tokio::signal::unix::Signal;
use tokio::sync::watch;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl Ended {
    fn of(status: WaitStatus) -> Self {
        Self {
            code: status.exit_status(),
            signal: status.terminating_signal(),
        }
    }
}

/// The children of this process.
#[derive(Debug)]
pub(crate) struct Reaper {
    /// The worker's process, until it was collected.
    worker: Cell<Option<u32>>,
    ended: watch::Sender<Option<Ended>>,
    /// Counts collections: who waits for a tree to go looks again.
    pub(crate) collected: watch::Sender<u64>,
}

impl Reaper {
    /// With no worker yet.
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            worker: Cell::new(None),
            ended: watch::Sender::new(None),
            collected: watch::Sender::new(0),
        })
    }

    /// Says which child is the worker. Must be told before anything is awaited after the start.
    pub(crate) fn watch(&self, pid: u32) {
        self.ended.send_replace(None);
        self.worker.set(Some(pid));
    }

    /// The worker's process, while its number is provably its own: it was not collected yet.
    pub(crate) fn worker(&self) -> Option<u32> {
        self.worker.get()
    }

    /// Waits for the worker's end.
    pub(crate) async fn ended(&self) -> Ended {
        let mut ended = self.ended.subscribe();
        let seen = ended.wait_for(Option::is_some).await;
        match seen.ok().and_then(|seen| *seen) {
            Some(ended) => ended,
            None => std::future::pending().await,
        }
    }

    fn collect(&self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            if self.worker.get() == Some(pid) {
                self.worker.set(None);
                self.ended.send_replace(Some(Ended::of(status)));
            }
        }
        self.collected.send_modify(|count| *count += 1);
    }
}

/// Collects whenever a child has ended, for ever.
pub(crate) async fn reap(reaper: Rc<Reaper>, mut ended: Signal) {
    loop {
        reaper.collect();
        if ended.recv().await.is_none() {
            return;
        }
    }
}
