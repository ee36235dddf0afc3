//! A daemon as a process of its own, so that a test can kill it: takes starts as lines of JSON
//! and answers each with a line.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use muster_node::fleet::frame::{SpawnInput, SpawnOutput};
use muster_node::{StateDir, Supervisor};

/// What `processes daemon DIR` does.
pub(crate) fn main(words: Vec<OsString>) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let state = StateDir::open(Path::new(&words[0])).expect("the state directory");
        let opened = Supervisor::open(state, super::settings()).await;
        let (supervisor, _news) = opened.expect("a supervisor");
        println!("open");
        for line in std::io::stdin().lock().lines() {
            let input: SpawnInput = serde_json::from_str(&line.expect("a line")).expect("a start");
            let output = supervisor.start(input).await;
            println!("{}", serde_json::to_string(&output).expect("JSON"));
        }
    });
    ExitCode::SUCCESS
}

/// Such a daemon.
pub(crate) struct Daemon {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Daemon {
    pub(crate) fn start(state: &Path, variables: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().expect("its own path");
        Self::start_as(&program, state, variables)
    }

    /// One whose program is another file.
    pub(crate) fn start_as(program: &Path, state: &Path, variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .arg("daemon")
            .arg(state)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a daemon");
        let to = child.stdin.take().expect("its stdin");
        let from = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut daemon = Self { child, to, from };
        assert_eq!(daemon.line(), "open");
        daemon
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    /// Asks for a start and does not wait.
    pub(crate) fn ask(&mut self, input: &SpawnInput) {
        let line = serde_json::to_string(input).expect("JSON");
        writeln!(self.to, "{line}").expect("it reads");
        self.to.flush().expect("it reads");
    }

    pub(crate) fn spawn(&mut self, input: &SpawnInput) -> SpawnOutput {
        self.ask(input);
        serde_json::from_str(&self.line()).expect("an answer")
    }

    /// Kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("collected");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}
