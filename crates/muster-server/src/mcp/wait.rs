//! `wait_run`, and waiting for an end as such: woken by commits that changed the run, for at
//! most as long as was asked for. The store is read when something may have ended, not to see
//! whether.

use std::time::Duration;

use muster_engine::Refusal;
use muster_wire::{ExecutionId, RunId, Status};
use serde_json::Value;
use tokio::time::Instant;

use super::answer::{Found, put, put_if};
use super::argument::{Argument, Arguments, Kind, optional};
use super::progress::Progress;
use super::runs::{self, ID};
use super::{output, shape};
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::followers::{Follower, Woken};

/// The longest wait.
pub(super) const WAIT_MAX_S: i64 = 300;
/// The usual wait of `wait_run`: below what clients usually wait for an answer.
const WAIT_S: u64 = 30;
/// Reads of the store for one waiter are at least so far apart.
const LOOK: Duration = Duration::from_millis(250);
/// Progress is told at most so often.
const TELL: Duration = Duration::from_secs(1);

/// What `wait_run` takes.
pub(super) const ARGUMENTS: &[Argument] = &[
    ID,
    optional(
        "wait_seconds",
        Kind::Whole(0, WAIT_MAX_S),
        "How long to wait at most; 30 when absent. Keep it below your client's own time-out.",
    ),
];

/// A wish to wait.
pub(super) struct Wait {
    id: String,
    within: Duration,
}

impl Wait {
    pub(super) fn read(given: &Arguments<'_>) -> Self {
        Self {
            id: given.text("id").unwrap_or_default(),
            within: Duration::from_secs(given.count("wait_seconds").unwrap_or(WAIT_S)),
        }
    }
}

/// Waits for what an id names.
pub(super) async fn run(
    app: &App,
    caller: &Caller,
    wait: &Wait,
    progress: &mut Progress,
) -> Result<Found, Problem> {
    let named = runs::find(app, caller, &wait.id).await?;
    let wanted = Wanted {
        run: named.run.id.clone(),
        execution: named.execution.id.clone(),
        whole: !named.is_execution,
    };
    drop(named);
    let end = until(app, &wanted, wait.within, progress).await?;
    // As it is now: what was read before the wait may be old.
    let named = runs::find(app, caller, &wait.id).await?;
    let done = match wanted.whole {
        true => named.run.status.is_terminal(),
        false => named.execution.status.is_terminal(),
    };
    let mut found = shape::run(&named.run);
    put(&mut found, "done", done);
    put(
        &mut found,
        "execution",
        runs::whole(app, named.execution).await?,
    );
    if !done {
        let leaving = end == End::Leaving;
        put_if(&mut found, "shutting_down", leaving.then_some(true));
        put(&mut found, "next", next(leaving));
    }
    Ok(found)
}

/// What to do about something that goes on.
pub(super) fn next(leaving: bool) -> &'static str {
    if leaving {
        "the plane is shutting down and it goes on: call wait_run again in a moment"
    } else {
        "it goes on: call wait_run again, or why to see what it waits for"
    }
}

/// Whose end is waited for.
pub(super) struct Wanted {
    pub(super) run: RunId,
    /// The execution; the root, where the whole run is meant.
    pub(super) execution: ExecutionId,
    /// Whether everything in the run must have ended.
    pub(super) whole: bool,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// What was waited for has ended.
    Ended,
    /// The time is over.
    OutOfTime,
    /// The plane stops.
    Leaving,
}

/// Waits for an end.
///
/// # Errors
/// When too many wait already, or the store cannot be read.
pub(super) async fn until(
    app: &App,
    wanted: &Wanted,
    within: Duration,
    progress: &mut Progress,
) -> Result<End, Problem> {
    // Before the first look, so that nothing is missed between the two.
    let Some(follower) = app.followers.follow(&wanted.run) else {
        return Err(Refusal::Overloaded { retry_after: 1 }.into());
    };
    let now = Instant::now();
    let mut watch = Watch {
        app,
        wanted,
        follower,
        until: now + within,
        look_at: now,
        tells: progress.is_wanted(),
        told_at: now,
        tell_at: progress.is_wanted().then_some(now),
    };
    loop {
        if watch.has_ended().await? {
            return Ok(End::Ended);
        }
        watch.tell(progress).await?;
        match watch.next().await {
            None => {}
            Some(end) => return Ok(end),
        }
    }
}

struct Watch<'a> {
    app: &'a App,
    wanted: &'a Wanted,
    follower: Follower,
    until: Instant,
    /// When the store may be read again.
    look_at: Instant,
    /// Whether progress is wanted.
    tells: bool,
    /// When it was last told.
    told_at: Instant,
    /// When it is told next, if there is something to tell.
    tell_at: Option<Instant>,
}

impl Watch<'_> {
    async fn has_ended(&mut self) -> Result<bool, Problem> {
        let id = &self.wanted.execution;
        if let Some(status) = self.at_hand() {
            if !status.is_terminal() {
                return Ok(false);
            }
            if !self.wanted.whole {
                return Ok(true);
            }
        }
        tokio::time::sleep_until(self.look_at.min(self.until)).await;
        self.look_at = Instant::now() + LOOK;
        if self.wanted.whole {
            let run = runs::run_of(self.app, &self.wanted.run).await?;
            return Ok(run.is_none_or(|run| run.status.is_terminal()));
        }
        let row = runs::row_of(self.app, id).await?;
        Ok(row.is_none_or(|row| row.status.is_terminal()))
    }

    /// The execution's status, where the store need not be asked.
    fn at_hand(&self) -> Option<Status> {
        let view = self.app.views.get(self.wanted.execution.as_str())?;
        Some(view.row.status)
    }

    /// Tells progress when it is time.
    async fn tell(&mut self, progress: &mut Progress) -> Result<(), Problem> {
        if self.tell_at.is_none_or(|at| at > Instant::now()) {
            return Ok(());
        }
        (self.told_at, self.tell_at) = (Instant::now(), None);
        if self.wanted.whole {
            if let Some(run) = runs::run_of(self.app, &self.wanted.run).await? {
                let all: u64 = run.counts.iter().map(|(_, count)| count).sum();
                let ended = run.counts.iter().filter(|(status, _)| status.is_terminal());
                let ended: u64 = ended.map(|(_, count)| count).sum();
                let message = format!("{ended} of {all} executions have ended");
                progress.tell(ended, all, message).await;
            }
        } else if let Some(row) = runs::row_of(self.app, &self.wanted.execution).await? {
            // Queued, at work, ended: two steps.
            let step = u64::from(row.status != Status::Queued);
            let message = format!("{}.{} is {}", row.agent, row.function, row.status);
            progress.tell(step, 2, message).await;
        }
        Ok(())
    }

    /// Waits until something changed or is due; `None` to look again.
    async fn next(&mut self) -> Option<End> {
        let due = self.tell_at.unwrap_or(self.until).min(self.until);
        tokio::select! {
            biased;
            woken = self.follower.next() => {
                if woken == Woken::Leave {
                    return Some(End::Leaving);
                }
                if self.tells && self.tell_at.is_none() {
                    self.tell_at = Some(self.told_at + TELL);
                }
                None
            }
            () = tokio::time::sleep_until(due) => (due >= self.until).then_some(End::OutOfTime),
        }
    }
}

/// What `wait_run` gives.
pub(super) fn schema() -> Value {
    let mut members = shape::run_members();
    let cancelled_at = members.pop();
    members.extend([
        (
            "done",
            output::flag("Whether what was waited for has ended."),
        ),
        ("execution", shape::whole_schema()),
        ("shutting_down", output::flag("The plane is about to stop.")),
        ("next", output::text("What to do now.")),
    ]);
    members.extend(cancelled_at);
    output::object(6, members)
}
