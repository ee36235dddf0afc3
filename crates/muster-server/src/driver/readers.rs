//! A few threads that read what the engine asked for and hand the same event in again.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_engine::event::Waiter;
use muster_engine::fleet::FleetEvent;
use muster_engine::{Event, Load};
use muster_store::{Store, StoreResult};

use super::Shared;

/// How many reads run at once.
const THREADS: usize = 2;
/// How often a failed read is tried again before its caller is told that nobody can decide.
const TRIES: u32 = 4;

/// The way to the reader threads; dropping it ends them and waits for that.
pub(crate) struct Readers {
    sender: Option<Sender<Load>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(crate) fn start(store: &Arc<dyn Store>, shared: &Arc<Shared>) -> std::io::Result<Self> {
        let (sender, receiver) = channel::<Load>();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut threads = Vec::with_capacity(THREADS);
        for n in 0..THREADS {
            let (store, shared, receiver) = (store.clone(), shared.clone(), receiver.clone());
            let thread = std::thread::Builder::new()
                .name(format!("muster-read-{n}"))
                .spawn(move || {
                    while let Some(load) = next(&receiver) {
                        read(&*store, &shared, load);
                    }
                })?;
            threads.push(thread);
        }
        Ok(Self {
            sender: Some(sender),
            threads,
        })
    }

    pub(crate) fn start_read(&self, load: Load) {
        // The threads live as long as this sender does.
        if let Some(sender) = &self.sender {
            let _ = sender.send(load);
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.sender = None;
        for thread in self.threads.drain(..) {
            // A reader that panicked has said so already.
            let _ = thread.join();
        }
    }
}

fn next(receiver: &Mutex<Receiver<Load>>) -> Option<Load> {
    receiver.lock().ok()?.recv().ok()
}

fn read(store: &dyn Store, shared: &Shared, load: Load) {
    let event = match load {
        Load::Submission(mut submission) => {
            match tried(|| store.known(&submission)) {
                Some(known) => submission.known = known,
                // Nothing was written: "unavailable" is the truth.
                None => return given_up(shared, submission.waiter),
            }
            Event::Submitted(submission)
        }
        Load::Callback(mut callback) => {
            match tried(|| store.execution(&callback.from.execution)) {
                Some((seq, row)) => callback.known = Some((seq, row.map(Box::new))),
                None => return given_up(shared, callback.waiter),
            }
            Event::CalledBack(callback)
        }
        Load::Cancel(mut cancel) => {
            match tried(|| store.execution(&cancel.execution)) {
                Some((seq, row)) => cancel.known = Some((seq, row.map(Box::new))),
                None => return given_up(shared, cancel.waiter),
            }
            Event::CancelRequested(cancel)
        }
        Load::Pause(mut wish) => {
            match tried(|| store.execution(&wish.execution)) {
                Some((seq, row)) => wish.known = Some((seq, row.map(Box::new))),
                None => return given_up(shared, wish.waiter),
            }
            Event::PauseRequested(wish)
        }
        Load::TreePause(mut wish) => {
            match tried(|| store.tree(&wish.run)) {
                Some(tree) => wish.known = Some(tree),
                None => return given_up(shared, wish.waiter),
            }
            Event::TreePauseRequested(wish)
        }
        Load::ApprovalAsk(mut ask) => {
            match tried(|| store.execution(&ask.from.execution)) {
                Some((seq, row)) => ask.known = Some((seq, row.map(Box::new))),
                None => return given_up(shared, ask.waiter),
            }
            let execution = Some(&ask.from.execution);
            match tried(|| store.approvals_named(execution, Some(&ask.request))) {
                Some((_, found)) => ask.earlier = found.into_iter().next().map(Box::new),
                None => return given_up(shared, ask.waiter),
            }
            Event::ApprovalAsked(ask)
        }
        Load::Verdict(mut verdict) => {
            let named = || {
                let request = verdict.request.as_deref();
                store.approvals_named(verdict.execution.as_ref(), request)
            };
            match tried(named) {
                Some(found) => verdict.known = Some(found),
                None => return given_up(shared, verdict.waiter),
            }
            Event::ApprovalDecided(verdict)
        }
        Load::Fleet(mut event) => {
            if let FleetEvent::ReleaseAsked {
                waiter,
                worker,
                known,
                ..
            } = &mut *event
            {
                match tried(|| store.worker(worker)) {
                    Some(row) => *known = Some(row.map(Box::new)),
                    None => return given_up(shared, *waiter),
                }
            }
            Event::Fleet(event)
        }
        Load::Awaiter(mut awaiter) => {
            match tried(|| store.execution(&awaiter.from.execution)) {
                Some((seq, row)) => awaiter.known = Some((seq, row.map(Box::new))),
                None => return given_up(shared, awaiter.waiter),
            }
            Event::AwaiterReported(awaiter)
        }
        Load::Tree(mut wish) => {
            match tried(|| store.tree(&wish.run)) {
                Some(tree) => wish.known = Some(tree),
                None => return given_up(shared, wish.waiter),
            }
            Event::TreeCancelRequested(wish)
        }
        Load::Bereaved { limit } => loop {
            if let Some((as_of, rows, more)) = tried(|| store.bereaved(limit)) {
                break Event::BereavedLoaded { rows, more, as_of };
            }
            // Until it is read, queued calls that end with their parent do not start.
            if shared.inbox.is_closed() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        },
        Load::Window {
            agent,
            after,
            limit,
        } => loop {
            if let Some(window) = tried(|| store.window(&agent, after, limit)) {
                break Event::WindowLoaded {
                    agent,
                    rows: window.rows,
                    exhausted: window.exhausted,
                    as_of: window.as_of,
                };
            }
            // A queue whose window never comes would stand for ever.
            if shared.inbox.is_closed() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        },
    };
    shared.inbox.push_back(event);
}

fn tried<T>(read: impl Fn() -> StoreResult<T>) -> Option<T> {
    for n in 0..TRIES {
        match read() {
            Ok(value) => return Some(value),
            Err(error) => {
                tracing::warn!(error = %error, attempt = n + 1, "a read for a decision failed");
                std::thread::sleep(Duration::from_millis(20 << n));
            }
        }
    }
    None
}

/// Nobody can decide now: the caller is answered 503 by dropping its seat.
fn given_up(shared: &Shared, waiter: Waiter) {
    shared.waiters.leave(waiter);
}
