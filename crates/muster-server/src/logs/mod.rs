//! Logs and notes on their way to the store. Taking one in is cheap: it is queued, bounded, and
//! written with what came within a tenth of a second. Whether a line proves that it comes from
//! its execution is judged there, off the request's path: a line without proof is dropped and
//! counted.

mod judge;
mod queue;
pub mod text;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use muster_engine::effect::Count;
use muster_store::annex::{LogRow, NoteRow};
use muster_wire::{AttemptRef, ExecutionId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::api::caller::Caller;
use crate::app::App;
use judge::{Judge, Verdict};
use queue::Queue;

/// How long lines wait for company.
const WRITE_EVERY: Duration = Duration::from_millis(100);
/// How long a line may name an execution that is not there yet: the report of an in-process
/// call and its first lines are sent at the same moment.
const UNKNOWN_MAX: Duration = Duration::from_secs(2);

/// Where lines wait for the next write.
#[derive(Debug, Clone, Default)]
pub struct LogSink(Arc<Sink>);

#[derive(Debug, Default)]
struct Sink {
    queue: Mutex<Queue>,
    judge: Mutex<Judge>,
    /// One write at a time, so that lines stay in order.
    writing: tokio::sync::Mutex<()>,
    followers: Mutex<FxHashMap<ExecutionId, Weak<Notify>>>,
}

/// A line with what it claims about its origin.
#[derive(Debug)]
pub struct Line {
    /// The execution it is about, with the proof that came with it.
    pub about: AttemptRef,
    /// The parent it names, with its proof: proves an in-process call.
    pub parent: Option<AttemptRef>,
    /// Who sent it.
    pub by: Caller,
    /// What it says.
    pub what: What,
    /// When it came in.
    pub since: Instant,
}

/// What a line says.
#[derive(Debug)]
pub enum What {
    /// A log line.
    Log(LogRow),
    /// A note.
    Note(NoteRow),
}

impl Line {
    /// About how much memory it takes.
    fn size(&self) -> usize {
        256 + match &self.what {
            What::Log(row) => row.message.len() + row.attributes.len(),
            What::Note(row) => row.message.len() + row.tags.iter().map(String::len).sum::<usize>(),
        }
    }

    /// Dropped before others when there are too many.
    fn is_debug(&self) -> bool {
        matches!(&self.what, What::Log(row) if matches!(row.level.as_str(), "debug" | "trace"))
    }
}

impl LogSink {
    /// Takes lines in. Never waits.
    pub fn push(&self, app: &App, lines: Vec<Line>) {
        let mut queue = self.0.queue.lock();
        for line in lines {
            queue.push(line);
        }
        app.meters.lines_dropped(queue.take_dropped());
        if queue.begin_writing() {
            drop(queue);
            let (sink, app) = (self.clone(), app.clone());
            app.tasks
                .clone()
                .spawn(async move { sink.write_until_empty(&app).await });
        }
    }

    async fn write_until_empty(&self, app: &App) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(WRITE_EVERY) => {}
                () = app.stop.cancelled() => {}
            }
            self.flush(app).await;
            if self.0.queue.lock().end_writing() {
                return;
            }
        }
    }

    /// Writes what waits; when it returns, what was taken in before is in the store.
    pub async fn flush(&self, app: &App) {
        let _one_at_a_time = self.0.writing.lock().await;
        let batch = self.0.queue.lock().take();
        if batch.is_empty() {
            return;
        }
        let (sink, work) = (self.clone(), app.clone());
        let written = app.blocking(move |_| sink.write(&work, batch)).await;
        let mut followers = self.0.followers.lock();
        for execution in &written {
            if let Some(follower) = followers.get(execution).and_then(Weak::upgrade) {
                follower.notify_waiters();
            }
        }
        followers.retain(|_, follower| follower.strong_count() > 0);
    }

    /// Is told after each write that had a line of this execution.
    pub fn follow(&self, execution: &ExecutionId) -> Arc<Notify> {
        let mut followers = self.0.followers.lock();
        if let Some(there) = followers.get(execution).and_then(Weak::upgrade) {
            return there;
        }
        let fresh = Arc::new(Notify::new());
        followers.insert(execution.clone(), Arc::downgrade(&fresh));
        fresh
    }

    /// Judges and writes a batch; says which executions got lines. Blocks.
    fn write(&self, app: &App, batch: queue::Batch) -> Vec<ExecutionId> {
        let annex = &*app.stores.annex;
        let (mut logs, mut notes, mut early) = (Vec::new(), Vec::new(), Vec::new());
        let last_chance = app.stop.is_cancelled();
        {
            let mut judge = self.0.judge.lock();
            judge.begin();
            for line in batch.lines {
                match judge.judge(app, &line) {
                    Verdict::Keep => match line.what {
                        What::Log(row) => logs.push(row),
                        What::Note(row) => notes.push(row),
                    },
                    Verdict::Later if !last_chance && line.since.elapsed() < UNKNOWN_MAX => {
                        early.push(line);
                    }
                    Verdict::Later | Verdict::Drop => app.meters.count(&Count::Unproved),
                }
            }
        }
        self.0.queue.lock().put_back(early);
        for (execution, count) in batch.gaps {
            logs.push(text::gap(execution, count, app.clock.now()));
        }
        // The store counts per execution: lines of one go together, in their order.
        logs.sort_by(|a, b| a.execution.cmp(&b.execution));
        let mut written: Vec<ExecutionId> = logs.iter().map(|row| row.execution.clone()).collect();
        written.dedup();
        let (log_count, note_count) = (logs.len(), notes.len());
        if !logs.is_empty()
            && let Err(error) = annex.logs_add(logs)
        {
            tracing::error!(error = %error, lines = log_count, "log lines were lost: the store could not be written");
            app.meters.lines_dropped(log_count as u64);
        }
        if !notes.is_empty()
            && let Err(error) = annex.notes_add(notes)
        {
            tracing::error!(error = %error, notes = note_count, "notes were lost: the store could not be written");
            app.meters.lines_dropped(note_count as u64);
        }
        written
    }
}
