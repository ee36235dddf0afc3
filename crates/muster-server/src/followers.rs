//! Who follows a run until it, or one of its executions, has ended: told after each commit that
//! changed the run, so that nobody asks the store again and again. Holds no fact: what changed
//! is in the views and in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use muster_wire::RunId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Followers at once; one more is refused.
const FOLLOWERS_MAX: usize = 4_096;

/// Everybody who follows a run.
#[derive(Debug, Clone, Default)]
pub struct Followers(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// How many there are: what a commit looks at before it takes the lock.
    count: AtomicUsize,
    runs: Mutex<FxHashMap<RunId, Followed>>,
    leave: CancellationToken,
}

#[derive(Debug)]
struct Followed {
    changes: watch::Sender<()>,
    by: usize,
}

/// Somebody who follows a run; dropping it ends that.
#[derive(Debug)]
pub(crate) struct Follower {
    of: Followers,
    run: RunId,
    changed: watch::Receiver<()>,
}

/// Why a follower was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Something in the run changed.
    Changed,
    /// The plane stops: answer now.
    Leave,
}

impl Followers {
    /// Follows a run from now on: what is looked at after this and changes later wakes it.
    /// `None` when too many follow already.
    pub(crate) fn follow(&self, run: &RunId) -> Option<Follower> {
        // Before the lock, so that a commit after it sees this one: see `changed`.
        if self.0.count.fetch_add(1, Ordering::SeqCst) >= FOLLOWERS_MAX {
            self.0.count.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        let mut runs = self.0.runs.lock();
        let followed = runs.entry(run.clone()).or_insert_with(|| Followed {
            changes: watch::channel(()).0,
            by: 0,
        });
        followed.by += 1;
        Some(Follower {
            changed: followed.changes.subscribe(),
            of: self.clone(),
            run: run.clone(),
        })
    }

    /// Tells whoever follows this run. Called after what changed can be seen: a follower that
    /// looked before that was counted before that.
    pub(crate) fn changed(&self, run: &RunId) {
        if self.0.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(followed) = self.0.runs.lock().get(run) {
            followed.changes.send_replace(());
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Wakes everybody for the last time.
    pub(crate) fn leave(&self) {
        self.0.leave.cancel();
    }
}

impl Follower {
    /// Waits for the next change of the run; what changed since the last time counts.
    pub(crate) async fn next(&mut self) -> Woken {
        tokio::select! {
            biased;
            () = self.of.0.leave.cancelled() => Woken::Leave,
            // The sender lives as long as somebody follows.
            _ = self.changed.changed() => Woken::Changed,
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut runs = self.of.0.runs.lock();
        if let Some(followed) = runs.get_mut(&self.run) {
            followed.by -= 1;
            if followed.by == 0 {
                runs.remove(&self.run);
            }
        }
        drop(runs);
        self.of.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_follower_hears_of_its_run_and_of_no_other_and_leaves_nothing_behind() {
        let followers = Followers::default();
        let (one, other) = (RunId::trusted("run_1"), RunId::trusted("run_2"));
        let mut follower = followers.follow(&one).unwrap();
        let second = followers.follow(&one).unwrap();
        followers.changed(&other);
        followers.changed(&one);
        followers.changed(&one);
        assert_eq!(follower.next().await, Woken::Changed);
        let nothing = tokio::time::timeout(std::time::Duration::from_millis(20), follower.next());
        assert!(nothing.await.is_err(), "two changes wake it once");
        drop(second);
        followers.changed(&one);
        assert_eq!(follower.next().await, Woken::Changed);
        followers.leave();
        assert_eq!(follower.next().await, Woken::Leave);
        drop(follower);
        assert_eq!(followers.len(), 0);
        assert!(followers.0.runs.lock().is_empty());
    }

    #[tokio::test]
    async fn one_too_many_is_not_taken_and_not_counted() {
        let followers = Followers::default();
        let run = RunId::trusted("run_1");
        let all: Vec<_> = (0..FOLLOWERS_MAX)
            .map(|_| followers.follow(&run).unwrap())
            .collect();
        assert!(followers.follow(&run).is_none());
        drop(all);
        assert_eq!(followers.len(), 0);
    }
}
