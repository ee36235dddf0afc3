//! Runs a command as a child and keeps it running: again on a change, again with patience when
//! it fails. Tells the plane before and after, so that the goodbyes in between are absorbed.
//! Knows nothing of agents: it supervises a process.

use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use muster_engine::event::WorkerChange;
use muster_wire::Category;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lines;
use super::remains::Note;
use super::watch::Watch;
use crate::failure::{Failure, Outcome};
use crate::out::{self, Colour, Look, clean};

/// How long SIGTERM may take before SIGKILL. A drain of the SDK is told to be shorter.
const DRAIN: Duration = Duration::from_secs(10);
/// How long before that it may take until nothing is on its way to it.
const QUIET_WITHIN: Duration = Duration::from_secs(6);
const LOOK: Duration = Duration::from_millis(10);
const BACK_OFF_FIRST: Duration = Duration::from_millis(500);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// A process that lived so long had started well.
const LIVED: Duration = Duration::from_secs(10);
/// Lines longer than this are shown in pieces.
const LINE_MAX: usize = 64 * 1024;

/// Names and values.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// What is run, and who is told.
pub(crate) struct Supervised {
    /// The command and its arguments.
    pub(crate) command: Vec<String>,
    /// Its environment beside ours, made for each start.
    pub(crate) env: Box<dyn Fn() -> BoxFuture<'static, Outcome<Environment>> + Send + Sync>,
    /// Where it is noted while it runs.
    pub(crate) note: Note,
    /// How long the plane believes that it will be started again.
    pub(crate) restart_grace: Duration,
    /// What stands before each line of its output; `None` shows none of it.
    pub(crate) label: Option<String>,
    /// Tells the plane.
    pub(crate) tell: Box<dyn Fn(WorkerChange) + Send + Sync>,
    /// Whether the plane has heard and nothing is on its way to the process any more.
    pub(crate) is_quiet: Box<dyn Fn() -> bool + Send + Sync>,
    /// How output looks.
    pub(crate) look: Look,
    /// Told the process id of each start.
    pub(crate) started: tokio::sync::watch::Sender<Option<u32>>,
}

/// Why a process is not running any more.
enum Stopped {
    Changed,
    Ended(ExitStatus),
    Told,
}

impl Supervised {
    /// Runs until `stop`; the child is gone when it returns.
    pub(crate) async fn run(
        self,
        mut watch: Option<Watch>,
        stop: CancellationToken,
    ) -> Outcome<()> {
        let mut back_off = BACK_OFF_FIRST;
        let mut restless = Restless::default();
        loop {
            if let Some(watch) = &mut watch {
                watch.forget();
            }
            let began = Instant::now();
            let mut running = Process::start(&self, (self.env)().await?)?;
            self.note.write(running.child.id());
            self.started.send_replace(running.child.id());
            (self.tell)(WorkerChange::Started);
            let why = tokio::select! {
                status = running.child.wait() => Stopped::Ended(status?),
                file = changed(&mut watch) => {
                    if let (true, Some(watch)) = (restless.is(&file, began.elapsed()), &mut watch) {
                        self.say(&format!(
                            "{} changes whenever the agent starts; not watching it any more",
                            file.display()
                        ));
                        watch.ignore(&file);
                    } else {
                        self.say(&format!("{} changed, restarting", file.display()));
                    }
                    Stopped::Changed
                }
                () = stop.cancelled() => Stopped::Told,
            };
            self.started.send_replace(None);
            match why {
                Stopped::Changed => {
                    (self.tell)(WorkerChange::WillRestart);
                    self.quiet(&mut running).await;
                    let status = running.end(DRAIN).await?;
                    (self.tell)(WorkerChange::ExitedWillRestart(word_of(status).into()));
                    back_off = BACK_OFF_FIRST;
                }
                Stopped::Told => {
                    let status = running.end(DRAIN).await?;
                    self.note.clear();
                    (self.tell)(WorkerChange::Exited(word_of(status).into()));
                    return Ok(());
                }
                Stopped::Ended(status) => {
                    let word = word_of(status);
                    let is_broken = running.finish().await;
                    self.note.clear();
                    if began.elapsed() >= LIVED {
                        back_off = BACK_OFF_FIRST;
                    }
                    let mut given_up = None;
                    let wait = match (status.success(), is_broken) {
                        (true, _) => {
                            self.say(&format!("ended ({word}); a change starts it again"));
                            (self.tell)(WorkerChange::Exited(word.into()));
                            None
                        }
                        (false, true) => {
                            self.say(&format!(
                                "cannot start ({word}): see the error above; waiting for the next change"
                            ));
                            (self.tell)(WorkerChange::ExitedWillRestart(word.clone().into()));
                            given_up = Some(format!(
                                "its process cannot start ({word}); muster dev starts it again when a file changes"
                            ));
                            None
                        }
                        (false, false) => {
                            self.say(&format!("ended ({word}); starting again in {back_off:?}"));
                            (self.tell)(WorkerChange::ExitedWillRestart(word.into()));
                            Some(back_off)
                        }
                    };
                    back_off = (back_off * 2).min(BACK_OFF_MAX);
                    tokio::select! {
                        () = stop.cancelled() => return Ok(()),
                        file = changed(&mut watch) => {
                            self.say(&format!("{} changed, starting", file.display()));
                            back_off = BACK_OFF_FIRST;
                        }
                        () = patience(wait) => {}
                        never = self.give_up(given_up) => match never {},
                    }
                }
            }
        }
    }

    /// Tells the plane, when it has waited long enough for an edit that mends it, why there will
    /// be no process. Nothing is told when there is nothing to say.
    async fn give_up(&self, why: Option<String>) -> Infallible {
        if let Some(why) = why {
            tokio::time::sleep(self.restart_grace).await;
            (self.tell)(WorkerChange::Exited(why.into()));
        }
        std::future::pending().await
    }

    /// Waits until nothing is on its way to the process: a server that is stopped resets what it
    /// has not read yet, and the plane could not know whether that was begun.
    async fn quiet(&self, running: &mut Process) {
        let waiting = async {
            while !(self.is_quiet)() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = waiting => {}
            () = tokio::time::sleep(QUIET_WITHIN) => {}
            _ = running.child.wait() => {}
        }
    }

    fn say(&self, text: &str) {
        let label = self.label.as_deref().unwrap_or("agent");
        let line = format!("{label} | {text}");
        out::talk(&self.look.errors.paint(Colour::Yellow, &line));
    }
}

/// Notices a file that the agent itself writes when it starts: each start would be the cause of
/// the next.
#[derive(Default)]
struct Restless {
    file: std::path::PathBuf,
    times: u32,
}

impl Restless {
    const SOON: Duration = Duration::from_secs(3);
    const TIMES: u32 = 4;

    fn is(&mut self, file: &std::path::Path, after_start: Duration) -> bool {
        if after_start > Self::SOON || self.file != file {
            file.clone_into(&mut self.file);
            self.times = 0;
        }
        self.times += 1;
        self.times >= Self::TIMES
    }
}

async fn changed(watch: &mut Option<Watch>) -> std::path::PathBuf {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

async fn patience(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// `exit 1`, `signal 9`.
fn word_of(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown end".to_owned(),
    }
}

/// A child in a process group of its own. Dropping it kills the group.
struct Process {
    child: Child,
    group: Option<Pid>,
    output: TaskTracker,
    broken: Arc<AtomicBool>,
}

impl Process {
    fn start(of: &Supervised, env: Environment) -> Outcome<Self> {
        let mut command = Command::new(&of.command[0]);
        command
            .args(&of.command[1..])
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn().map_err(|error| {
            Failure::new(
                Category::NotFound,
                format!("cannot run {}: {error}", of.command[0]),
            )
            .hint("what stands behind -- is a command with its arguments: muster dev -- python agent.py")
        })?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let output = TaskTracker::new();
        let broken = Arc::new(AtomicBool::new(false));
        if let Some(stdout) = child.stdout.take() {
            let label = of
                .label
                .clone()
                .map(|label| of.look.data.paint(Colour::Dim, &format!("{label} |")));
            output.spawn(show(stdout, label, out::data, None));
        }
        if let Some(stderr) = child.stderr.take() {
            let label = of
                .label
                .clone()
                .map(|label| of.look.errors.paint(Colour::Dim, &format!("{label} |")));
            output.spawn(show(stderr, label, out::talk, Some(broken.clone())));
        }
        output.close();
        Ok(Self {
            child,
            group,
            output,
            broken,
        })
    }

    /// SIGTERM, and SIGKILL when that takes too long.
    async fn end(&mut self, patience: Duration) -> Outcome<ExitStatus> {
        self.signal(Signal::TERM);
        let status = match tokio::time::timeout(patience, self.child.wait()).await {
            Ok(status) => status?,
            Err(_) => {
                self.signal(Signal::KILL);
                self.child.wait().await?
            }
        };
        self.finish().await;
        Ok(status)
    }

    /// Ends what the child left behind and shows the rest of its output; whether that said that
    /// the source cannot be run at all.
    async fn finish(&mut self) -> bool {
        self.signal(Signal::KILL);
        self.group = None;
        // A grandchild that left the group may hold the pipe open for ever.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.output.wait()).await;
        self.broken.load(Ordering::Acquire)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Errors after which starting the same source again cannot help.
const BROKEN: &[&str] = &[
    "SyntaxError:",
    "IndentationError:",
    "TabError:",
    "ModuleNotFoundError:",
    "ImportError:",
    "can't open file",
];

async fn show(
    from: impl AsyncRead + Unpin + Send + 'static,
    label: Option<String>,
    to: fn(&str),
    broken: Option<Arc<AtomicBool>>,
) {
    let mut from = BufReader::with_capacity(LINE_MAX, from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = {
            use tokio::io::AsyncReadExt;
            (&mut from)
                .take(LINE_MAX as u64)
                .read_until(b'\n', &mut line)
                .await
        };
        if !matches!(read, Ok(n) if n > 0) {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        if let Some(broken) = &broken
            && BROKEN.iter().any(|mark| text.contains(mark))
        {
            broken.store(true, Ordering::Release);
        }
        if let (Some(label), Some(text)) = (&label, lines::shown(text)) {
            to(&format!("{label} {}", clean(&text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_file_that_changes_at_each_start_is_noticed_and_edits_of_people_are_not() {
        let mut restless = Restless::default();
        let soon = Duration::from_secs(1);
        let seen: Vec<bool> = (0..4)
            .map(|_| restless.is(Path::new("state.json"), soon))
            .collect();
        assert_eq!(seen, [false, false, false, true]);
        let mut restless = Restless::default();
        for _ in 0..9 {
            assert!(!restless.is(Path::new("agent.py"), Duration::from_secs(20)));
        }
        for n in 0..9 {
            assert!(!restless.is(Path::new(&format!("{n}.py")), soon));
        }
    }
}
