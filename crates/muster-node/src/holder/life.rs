//! The life of a worker, over all its processes: start, start window, exit, wait, start again,
//! until it ends for good. The holder does this itself, so that a restart policy holds while no
//! daemon is there.

use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use muster_wire::Timestamp;
use muster_wire::fleet::frame::SpawnOutput;
use muster_wire::fleet::{ExitReport, WorkerIo};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::held::{Again, Held, Over, Wish};
use super::launch;
use super::reaper::{Ended, Reaper};
use super::stop::{end_tree, is_gone};
use super::terminal;
use crate::backoff::{Ran, Row};
use crate::record::Phase;
use crate::tree::{self, Process};

/// How long the output is read on after an exit: what was written last is read, and a stray that
/// keeps the terminal open holds up nothing.
const DRAIN: Duration = Duration::from_millis(200);
/// How much of the output an exit has with it.
const EXIT_OUTPUT_MAX: usize = 8 * 1024;
/// A start whose policy goes on trying is answered after its window and this.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Between the outputs of two processes: what the first did to the terminal is undone.
const SOFT_RESET: &[u8] = b"\x1b[!p\x1b[?1049l\x1b[?25h\x1b[0m\r\n";

/// The file in which a launch says why it failed.
const LAUNCH_FAILURE: &str = "launch-failure";

/// One process of the worker.
struct Run {
    started: Instant,
    reader: JoinHandle<()>,
}

/// How a wait for the next start was over.
enum Waited {
    /// It is time.
    Out,
    /// Somebody wants it started now.
    Again,
    /// Somebody wants it ended.
    Wish(Wish),
}

/// Runs the worker until it has ended for good, and everything of it is gone.
pub(crate) async fn live(held: Rc<Held>, reaper: Rc<Reaper>) {
    let life = Life { held, reaper };
    let over = life.whole().await;
    life.held.over.send_replace(Some(over));
}

struct Life {
    held: Rc<Held>,
    reaper: Rc<Reaper>,
}

impl Life {
    async fn whole(&self) -> Over {
        let mut row = Row::default();
        let answer_by = Instant::now() + self.held.boot.start_window + ANSWER_WAIT;
        loop {
            let (exit, ran) = match self.start() {
                Ok(run) => self.run(run, answer_by).await,
                Err(sentence) if self.held.state.borrow().answer.is_none() => {
                    return self.refuse(sentence);
                }
                Err(sentence) => (
                    unstarted(sentence),
                    Ran {
                        length: Duration::ZERO,
                        failed: true,
                    },
                ),
            };
            if let Some(sentence) = self.never_ran(&exit) {
                return self.refuse(sentence);
            }
            if let Some(wish) = self.wish() {
                return self.finish(exit, wish).await;
            }
            let boot = &self.held.boot;
            let again = self.held.again.send_replace(None);
            self.held.stuck.send_replace(Vec::new());
            let wait = match &again {
                // Whatever the policy says; and the policy counts from here anew.
                Some(_) => {
                    row = Row::default();
                    Some(Duration::ZERO)
                }
                None => {
                    // Of one that was to be started again by hand: it was, and did not live.
                    let exit = exit.clone();
                    self.held.answer_restart(&Ok(SpawnOutput::Exited { exit }));
                    row.next(boot.restart, boot.waits, ran, dice())
                }
            };
            let Some(wait) = wait else {
                let wish = Wish {
                    grace: boot.stop_grace,
                    reason: None,
                };
                return self.finish(exit, wish).await;
            };
            self.record_restart(&exit, wait);
            let grace = again.map_or(boot.stop_grace, |again| again.grace);
            match self.wait_for_restart(wait, grace, answer_by).await {
                Waited::Out => {}
                // Somebody has less patience than its policy.
                Waited::Again => row = Row::default(),
                Waited::Wish(wish) => {
                    let exit = ExitReport {
                        at: Some(Timestamp::wall_clock()),
                        reason: Some("it was released while it waited for its next start".into()),
                        ..exit
                    };
                    return self.finish(exit, wish).await;
                }
            }
            self.held.change(|state| {
                state.phase = Phase::Starting;
                state.restarts += 1;
                state.next_start_at = None;
            });
        }
    }

    /// Starts a process. Awaits nothing: its end cannot be collected before it is known.
    fn start(&self) -> Result<Run, String> {
        let held = &self.held;
        let boot = &held.boot;
        let failure = held.dir.path().join(LAUNCH_FAILURE);
        let _ = std::fs::remove_file(&failure);
        let no_terminal = |error| format!("no terminal for it could be opened: {error}");
        let (end, worker_end) = terminal::open(boot.io, held.size()).map_err(no_terminal)?;
        let (program, words) = boot.prefix.split_first().ok_or("no holder command")?;
        let has_terminal = boot.io == WorkerIo::Pty;
        let launch = launch::words(
            &failure,
            has_terminal,
            &boot.program,
            &boot.command,
            &boot.args,
        );
        let child = Command::new(program)
            .arg0("muster")
            .args(words)
            .arg("--launch")
            .args(launch)
            .env_clear()
            .envs(&boot.env)
            .current_dir(&boot.cwd)
            .stdin(worker_end.stdin)
            .stdout(worker_end.stdout)
            .stderr(worker_end.stderr)
            .spawn()
            .map_err(|error| sentence_of_spawn(&error, boot))?;
        let pid = child.id();
        self.reaper.watch(pid);
        held.output.borrow_mut().run_start = *held.grown.borrow();
        *held.end.borrow_mut() = Some(end.clone());
        let reader = tokio::task::spawn_local(read(held.clone(), end));
        held.change(|state| {
            state.process = tree::start_of(pid).map(|start| Process { pid, start });
            state.started_at = Some(Timestamp::wall_clock());
        });
        Ok(Run {
            started: Instant::now(),
            reader,
        })
    }

    /// Waits for a process's end, through its start window and whatever is asked meanwhile.
    async fn run(&self, run: Run, answer_by: Instant) -> (ExitReport, Ran) {
        let window = run.started + self.held.boot.start_window;
        let ended = self.until_end(window, answer_by).await;
        let length = run.started.elapsed();
        self.drain(run.reader).await;
        let failed = ended.code != Some(0);
        (self.exit_report(ended), Ran { length, failed })
    }

    async fn until_end(&self, window: Instant, answer_by: Instant) -> Ended {
        let mut is_running = false;
        loop {
            tokio::select! {
                biased;
                ended = self.reaper.ended() => return ended,
                wish = self.wished() => return self.end(wish.grace).await,
                again = self.wanted_again() => return self.end(again.grace).await,
                () = sleep_until(window), if !is_running => {
                    is_running = true;
                    self.held.change(|state| state.phase = Phase::Running);
                    self.answer_started();
                    self.held.answer_restart(&Ok(self.started()));
                }
                () = sleep_until(answer_by), if self.is_unanswered() => self.answer_started(),
            }
        }
    }

    /// Ends the process, with the tree. One that not even SIGKILL ends is told of, and waited
    /// for.
    async fn end(&self, mut grace: Duration) -> Ended {
        let stopping = async {
            loop {
                tokio::select! {
                    stuck = end_tree(&self.reaper, grace) => {
                        self.held.stuck.send_replace(stuck);
                        return std::future::pending::<()>().await;
                    }
                    shorter = self.wished_shorter(grace) => grace = shorter,
                }
            }
        };
        tokio::select! {
            biased;
            ended = self.reaper.ended() => ended,
            () = stopping => self.reaper.ended().await,
        }
    }

    /// Reads the last of the output, for a bounded time, and lets the terminal go.
    async fn drain(&self, mut reader: JoinHandle<()>) {
        if timeout(DRAIN, &mut reader).await.is_err() {
            reader.abort();
        }
        *self.held.end.borrow_mut() = None;
    }

    fn exit_report(&self, ended: Ended) -> ExitReport {
        let wished = || match self.wish() {
            Some(wish) => wish.reason,
            None => self.held.again.borrow().clone().map(|again| again.reason),
        };
        ExitReport {
            code: ended.code,
            signal: ended.signal,
            at: Some(Timestamp::wall_clock()),
            output: text_tail(&self.held.run_tail(EXIT_OUTPUT_MAX)),
            reason: self.launch_failure(ended.code).or_else(wished),
        }
    }

    /// Why the program never ran, where it did not.
    fn launch_failure(&self, code: Option<i32>) -> Option<String> {
        let file = self.held.dir.path().join(LAUNCH_FAILURE);
        let sentence = std::fs::read_to_string(file).ok()?;
        (code == Some(i32::from(launch::NOT_RUN))).then_some(sentence)
    }

    /// The sentence of a first launch that failed: nothing ran, so nothing exited.
    fn never_ran(&self, exit: &ExitReport) -> Option<String> {
        let is_first = self.is_unanswered() && *self.held.exits.borrow() == 0;
        self.launch_failure(exit.code).filter(|_| is_first)
    }

    fn refuse(&self, sentence: String) -> Over {
        let exit = unstarted(sentence.clone());
        self.held.change(|state| {
            state.phase = Phase::Ended;
            state.process = None;
            state.answer = Some(SpawnOutput::Refused {
                message: sentence,
                full: false,
            });
        });
        Over {
            exit,
            stuck: Vec::new(),
        }
    }

    fn record_restart(&self, exit: &ExitReport, wait: Duration) {
        let next = Timestamp::wall_clock() + wait;
        self.held.record(exit.clone(), Some(next));
        self.held.change(|state| {
            state.phase = Phase::Restarting;
            state.process = None;
            state.next_start_at = Some(next);
        });
        self.undo_terminal();
    }

    fn undo_terminal(&self) {
        if self.held.boot.io == WorkerIo::Pty {
            self.held.take_output(SOFT_RESET);
        }
    }

    /// Ends what the process left behind and waits, unless somebody has a wish meanwhile.
    async fn wait_for_restart(
        &self,
        wait: Duration,
        grace: Duration,
        answer_by: Instant,
    ) -> Waited {
        let next = Instant::now() + wait;
        if !is_gone(&self.reaper) {
            tokio::select! {
                _ = end_tree(&self.reaper, grace) => {}
                wish = self.wished() => return Waited::Wish(wish),
            }
        }
        loop {
            tokio::select! {
                biased;
                wish = self.wished() => return Waited::Wish(wish),
                _ = self.wanted_again() => {
                    self.held.again.send_replace(None);
                    return Waited::Again;
                }
                () = sleep_until(next) => return Waited::Out,
                () = sleep_until(answer_by), if self.is_unanswered() => self.answer_started(),
            }
        }
    }

    /// The last exit: first it is recorded, then what is left of the worker is ended.
    async fn finish(&self, exit: ExitReport, wish: Wish) -> Over {
        let over = Err("it was released before it was started again".to_owned());
        self.held.answer_restart(&over);
        self.held.record(exit.clone(), None);
        self.held.answer(SpawnOutput::Exited { exit: exit.clone() });
        self.held.change(|state| {
            state.phase = Phase::Ended;
            state.process = None;
            state.next_start_at = None;
        });
        let (_, tail) = {
            let output = self.held.output.borrow();
            output.ring.from(0, crate::ring::RING_BYTES)
        };
        if let Err(error) = self.held.dir.write_output(&tail) {
            super::complain(&format!("the last output was not kept: {error}"));
        }
        let stuck = if is_gone(&self.reaper) {
            Vec::new()
        } else {
            tokio::select! {
                stuck = end_tree(&self.reaper, wish.grace) => stuck,
                // Somebody has less patience than the worker's own grace.
                shorter = self.wished_shorter(wish.grace) => end_tree(&self.reaper, shorter).await,
            }
        };
        Over { exit, stuck }
    }

    fn is_unanswered(&self) -> bool {
        self.held.state.borrow().answer.is_none()
    }

    fn answer_started(&self) {
        self.held.answer(self.started());
    }

    fn started(&self) -> SpawnOutput {
        let (process, started_at) = {
            let state = self.held.state.borrow();
            (state.process, state.started_at)
        };
        // A worker that keeps dying and coming back has no process at this moment, perhaps.
        SpawnOutput::Started {
            pid: process.map(|process| process.pid),
            started_at: process.and(started_at),
        }
    }

    fn wish(&self) -> Option<Wish> {
        self.held.wish.borrow().clone()
    }

    async fn wished(&self) -> Wish {
        let mut wish = self.held.wish.subscribe();
        let seen = wish.wait_for(Option::is_some).await;
        match seen.ok().and_then(|seen| seen.clone()) {
            Some(wish) => wish,
            None => std::future::pending().await,
        }
    }

    async fn wanted_again(&self) -> Again {
        let mut again = self.held.again.subscribe();
        let seen = again.wait_for(Option::is_some).await;
        match seen.ok().and_then(|seen| seen.clone()) {
            Some(again) => again,
            None => std::future::pending().await,
        }
    }

    async fn wished_shorter(&self, than: Duration) -> Duration {
        let mut wish = self.held.wish.subscribe();
        let is_shorter = |wish: &Option<Wish>| wish.as_ref().is_some_and(|wish| wish.grace < than);
        let seen = wish.wait_for(is_shorter).await;
        match seen.ok().and_then(|seen| seen.clone()) {
            Some(wish) => wish.grace,
            None => std::future::pending().await,
        }
    }
}

async fn read(held: Rc<Held>, end: terminal::End) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match end.read(&mut buffer).await {
            0 => return,
            read => held.take_output(&buffer[..read]),
        }
        // A worker that never stops printing leaves room for everybody else.
        tokio::task::yield_now().await;
    }
}

fn sentence_of_spawn(error: &std::io::Error, boot: &super::boot::Boot) -> String {
    if error.raw_os_error() == Some(rustix::io::Errno::TOOBIG.raw_os_error()) {
        return "its arguments and variables together are longer than this machine takes: shorten \
                them, or put them into a file"
            .to_owned();
    }
    format!("{} could not be started: {error}", boot.program.display())
}

fn unstarted(sentence: String) -> ExitReport {
    ExitReport {
        at: Some(Timestamp::wall_clock()),
        reason: Some(sentence),
        ..ExitReport::default()
    }
}

/// The end of some output as text, at most [`EXIT_OUTPUT_MAX`] bytes of it.
fn text_tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut from = text.len().saturating_sub(EXIT_OUTPUT_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

/// From 0 to 1; not a secret.
fn dice() -> f64 {
    let random = RandomState::new().hash_one(std::process::id());
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// Writes what could not be written, until the disk takes it or the directory is gone.
pub(crate) async fn write_late(held: Rc<Held>) {
    let mut pause = Duration::from_secs(1);
    let mut exits = held.exits.subscribe();
    loop {
        if held.is_written() {
            pause = Duration::from_secs(1);
            if exits.changed().await.is_err() {
                return;
            }
            continue;
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(30));
        if !held.dir.path().exists() {
            return;
        }
        if let Err(error) = held.write_exits() {
            super::complain(&format!("an exit was not written, yet: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_text_and_within_its_bound_whatever_the_bytes_are() {
        assert_eq!(text_tail(b"a\xffb"), "a\u{fffd}b");
        let bad = vec![0xff; EXIT_OUTPUT_MAX];
        assert!(text_tail(&bad).len() <= EXIT_OUTPUT_MAX);
        assert!(text_tail(&bad).chars().all(|letter| letter == '\u{fffd}'));
        let dice = dice();
        assert!((0.0..1.0).contains(&dice));
    }
}
