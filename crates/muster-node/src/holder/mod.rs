//! The holder of one worker: a small process that outlives the daemon. It is the worker's parent
//! and the parent of its orphans, owns its terminal, keeps its last output and its screen, starts
//! it again by its policy, writes its exits to disk, and serves a daemon over a socket. It has
//! one thread and ends after its worker.

pub(crate) mod boot;
mod held;
mod launch;
mod life;
pub(crate) mod protocol;
mod reaper;
mod serve;
mod stop;
mod terminal;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

use self::boot::Boot;
use self::held::{Held, Typed, Wish};
use self::reaper::{Reaper, reap};
use crate::attachment::INPUT_WAIT;
use crate::record::{Phase, StateRecord, WorkerDir};
use crate::tree::{self, Process};

/// The words after `muster holder`.
#[derive(Debug, Clone)]
pub struct HolderArguments {
    /// As they came.
    pub words: Vec<OsString>,
}

/// What a holder says on its stdout when it serves.
pub(crate) const READY: &str = "ready";

/// After stdin, stdout and stderr.
pub(crate) const FIRST_OTHER_FILE: i32 = 3;

/// Runs a holder until its worker has ended for good.
pub fn main(arguments: HolderArguments) -> ExitCode {
    match arguments.words.as_slice() {
        [first, words @ ..] if first == "--launch" => launch::launch(words),
        [first, directory] if first == "--dir" => match begin(directory.into()) {
            Ok(holder) => holder.run(),
            Err(sentence) => {
                say(&sentence);
                ExitCode::FAILURE
            }
        },
        _ => {
            complain("a holder is started by `muster node`, not by hand");
            ExitCode::from(2)
        }
    }
}

/// Something went wrong that nobody asked about: the worker's `holder.log`.
pub(crate) fn complain(sentence: &str) {
    // A log that cannot be written is no reason to stop.
    let _ = writeln!(
        io::stderr(),
        "{} {sentence}",
        muster_wire::Timestamp::wall_clock()
    );
}

/// Tells the daemon that waits at the other end of stdout.
fn say(sentence: &str) {
    // A daemon that is gone hears nothing.
    let _ = writeln!(io::stdout(), "{sentence}");
    let _ = io::stdout().flush();
}

struct Holder {
    dir: WorkerDir,
    boot: Boot,
    /// Held while this process lives: who cannot take it knows that a holder is here.
    _lock: std::fs::File,
}

fn begin(directory: PathBuf) -> Result<Holder, String> {
    let told = |what: &str, error: io::Error| format!("{what}: {error}");
    // Whatever this process was given, its worker is not.
    close_fds::set_fds_cloexec(FIRST_OTHER_FILE, &[]);
    // A session of its own: neither the daemon's terminal nor its end reaches this process.
    // It fails only for one that has one.
    let _ = rustix::process::setsid();
    let dir = WorkerDir::at(directory);
    let boot = boot::read(&mut io::stdin().lock())
        .map_err(|error| told("what the holder was told could not be read", error))?;
    let lock = dir
        .take_lock_of(&boot.start)
        .map_err(|error| told("the worker's directory cannot be locked", error))?
        .ok_or("another holder has this worker, or it was given up")?;
    let kept = dir
        .read()
        .map_err(|error| told("the worker's directory cannot be read", error))?;
    if kept.state.is_some() || !kept.untold.is_empty() || !kept.told.is_empty() {
        return Err("this worker was started before".into());
    }
    tree::become_reaper().map_err(|error| told("the holder cannot take orphans", error))?;
    std::env::set_current_dir(dir.path())
        .map_err(|error| told("the worker's directory cannot be entered", error))?;
    Ok(Holder {
        dir,
        boot,
        _lock: lock,
    })
}

impl Holder {
    fn run(self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let ended = runtime.and_then(|runtime| LocalSet::new().block_on(&runtime, self.hold()));
        match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&format!("the holder could not begin: {error}"));
                ExitCode::FAILURE
            }
        }
    }

    async fn hold(self) -> io::Result<()> {
        // A name alone, in this directory: an address has room for few letters.
        let listener = UnixListener::bind("sock")?;
        let children = signal(SignalKind::child())?;
        let state = self.first_state();
        self.dir.write_state(&state)?;
        say(READY);
        let_go_of_stdio()?;

        let (typed, typing) = mpsc::channel(held::TYPED_MAX);
        let held = Held::new(self.dir, self.boot, state, typed);
        let reaper = Reaper::new();
        spawn_local(reap(reaper.clone(), children));
        spawn_local(serve::serve(held.clone(), listener));
        spawn_local(type_in(held.clone(), typing));
        spawn_local(life::write_late(held.clone()));
        hear_signals(&held)?;
        life::live(held.clone(), reaper).await;
        linger(&held).await;
        Ok(())
    }

    fn first_state(&self) -> StateRecord {
        let pid = std::process::id();
        StateRecord {
            worker_id: self.boot.worker_id.clone(),
            name: self.boot.name.clone(),
            phase: Phase::Starting,
            io: self.boot.io,
            holder: tree::start_of(pid).map(|start| Process { pid, start }),
            process: None,
            started_at: None,
            restarts: 0,
            next_start_at: None,
            answer: None,
            boot: tree::boot_id(),
            stop_grace_ms: u64::try_from(self.boot.stop_grace.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Gives up the pipes to the daemon that started this.
fn let_go_of_stdio() -> io::Result<()> {
    let nothing = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(())
}

/// Types what was asked for, in order, one after the other.
async fn type_in(held: Rc<Held>, mut typing: mpsc::Receiver<Typed>) {
    while let Some((bytes, answer)) = typing.recv().await {
        let end = held.end.borrow().clone();
        let is_terminal = held.boot.io == muster_wire::fleet::WorkerIo::Pty;
        let written = match end.filter(|_| is_terminal) {
            Some(end) => end.write(&bytes, INPUT_WAIT).await,
            None => 0,
        };
        if let Some(answer) = answer {
            // Whoever typed is gone.
            let _ = answer.send(written);
        }
    }
}

/// A hangup or an interrupt is the daemon's; SIGTERM is the machine that goes down.
fn hear_signals(held: &Rc<Held>) -> io::Result<()> {
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
    ] {
        let mut heard = signal(kind)?;
        spawn_local(async move { while heard.recv().await.is_some() {} });
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let held = held.clone();
    spawn_local(async move {
        while terminate.recv().await.is_some() {
            let grace = held.boot.stop_grace;
            let reason = Some("its holder was told to stop (SIGTERM)".to_owned());
            held.wish_for(Wish { grace, reason });
        }
    });
    Ok(())
}

/// Lets the daemon read the end, and waits until the exits are on disk or their directory is
/// gone.
async fn linger(held: &Held) {
    let mut connections = held.connections.subscribe();
    let all_left = connections.wait_for(|count| *count == 0);
    let _ = timeout(Duration::from_secs(2), all_left).await;
    while !held.is_written() && held.dir.path().exists() {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
