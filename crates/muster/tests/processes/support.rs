//! Starts the command in a directory of its own and reads what it says. Ends what it started.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Generous: the machine may be busy with other tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_muster");

/// A command with nothing of the caller's environment that it would read.
pub(crate) fn muster(directory: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command.current_dir(directory).env("HOME", directory);
    for (name, _) in std::env::vars() {
        if name.starts_with("MUSTER_") || name.starts_with("AGENTFIELD_") || name == "CI" {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its end.
pub(crate) fn run(directory: &Path, arguments: &[&str]) -> Output {
    muster(directory)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Looks again and again until something is there.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < DEADLINE, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that runs; ended when it is dropped.
pub(crate) struct Running {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        listen(child.stdout.take().unwrap(), said.clone());
        listen(child.stderr.take().unwrap(), said.clone());
        Self { child, said }
    }

    /// Everything it has said, both streams as they came.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits for a line that holds a text.
    pub(crate) fn line(&self, text: &str) -> String {
        until(
            &format!("it says {text:?}; it said:\n{}", self.said()),
            || {
                self.said()
                    .lines()
                    .find(|line| line.contains(text))
                    .map(str::to_owned)
            },
        )
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let mut seen = None;
        until("it ends", || {
            seen = self.child.try_wait().unwrap();
            seen
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // First kindly: it ends its own children.
            self.signal(Signal::TERM);
            for _ in 0..500 {
                if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn listen(from: impl Read + Send + 'static, said: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut said = said.lock().unwrap();
            said.push_str(&line);
            said.push('\n');
        }
    });
}

/// Whether a process exists.
pub(crate) fn is_alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // A zombie has ended; whoever adopted it has not looked yet.
    !stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .trim_start()
        .starts_with('Z')
}

/// A plane on a port of its own.
pub(crate) struct Plane {
    pub(crate) process: Running,
    pub(crate) address: String,
    pub(crate) directory: PathBuf,
}

impl Plane {
    /// `muster server` on a free port, or on one that was used before.
    pub(crate) fn start(directory: &Path, listen: &str) -> Self {
        let mut command = muster(directory);
        command.args(["server", "--data", ".muster", "--listen", listen]);
        let process = Running::start(command);
        let line = process.line("\"ready\"");
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        Self {
            address: said["address"].as_str().unwrap().to_owned(),
            process,
            directory: directory.to_owned(),
        }
    }

    /// Asks it through the command.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Output {
        ask(&self.directory, &self.address, arguments)
    }
}

/// Asks a plane through the command.
pub(crate) fn ask(directory: &Path, address: &str, arguments: &[&str]) -> Output {
    muster(directory)
        .args(arguments)
        .env("MUSTER_SERVER", format!("http://{address}"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The example agent, without a key, as any process of this machine could.
pub(crate) fn example_agent(directory: &Path, address: &str) -> Running {
    let mut command = muster(directory);
    command
        .arg("example-agent")
        .env("AGENTFIELD_SERVER", format!("http://{address}"));
    Running::start(command)
}
