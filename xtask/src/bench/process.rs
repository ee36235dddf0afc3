//! The processes of a benchmark: started as children, measured through `/proc`, killed when
//! dropped. Linux only.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;

use super::load::{Order, Outcome};

/// A child that dies with this value.
pub(crate) struct Process {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a part of this very binary and waits until it says that it is ready.
    pub(crate) fn own(words: &[String]) -> anyhow::Result<Self> {
        let mut process = Self::spawn(
            Command::new(std::env::current_exe()?)
                .arg("bench-child")
                .args(words)
                .stdout(Stdio::piped()),
        )?;
        let ready = process.read_line()?;
        anyhow::ensure!(ready == "ready", "{words:?} said {ready:?} at its start");
        Ok(process)
    }

    /// The same, and it takes lines.
    pub(crate) fn own_with_stdin(words: &[String]) -> anyhow::Result<Self> {
        let mut process = Self::spawn(
            Command::new(std::env::current_exe()?)
                .arg("bench-child")
                .args(words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        )?;
        let ready = process.read_line()?;
        anyhow::ensure!(ready == "ready", "{words:?} said {ready:?} at its start");
        Ok(process)
    }

    /// Says a line and waits for the answer.
    pub(crate) fn say(&mut self, line: &str) -> anyhow::Result<String> {
        let stdin = self.child.stdin.as_mut().context("no stdin")?;
        writeln!(stdin, "{line}")?;
        self.read_line()
    }

    /// Starts any command with pipes for what it was told to pipe.
    pub(crate) fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command
            .spawn()
            .with_context(|| format!("{:?} cannot be started", command.get_program()))?;
        let lines = child.stdout.take().map(BufReader::new);
        Ok(Self { child, lines })
    }

    fn read_line(&mut self) -> anyhow::Result<String> {
        let lines = self.lines.as_mut().context("no pipe to read from")?;
        let mut line = String::new();
        anyhow::ensure!(lines.read_line(&mut line)? > 0, "the child ended");
        Ok(line.trim_end().to_owned())
    }

    /// CPU seconds used so far, by all threads.
    pub(crate) fn cpu(&self) -> f64 {
        let Ok(text) = std::fs::read_to_string(self.proc("stat")) else {
            return f64::NAN;
        };
        // The command's name may hold anything; the fields start after its last bracket.
        let fields: Vec<&str> = text
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().collect())
            .unwrap_or_default();
        let ticks = |index: usize| fields.get(index).and_then(|f| f.parse::<f64>().ok());
        match (ticks(11), ticks(12)) {
            (Some(user), Some(system)) => {
                (user + system) / rustix::param::clock_ticks_per_second() as f64
            }
            _ => f64::NAN,
        }
    }

    /// Resident memory in MiB.
    pub(crate) fn memory(&self) -> f64 {
        let text = std::fs::read_to_string(self.proc("status")).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmRSS:"));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
            .map_or(f64::NAN, |kib| kib / 1024.0)
    }

    fn proc(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.child.id())
    }

    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The load generator.
pub(crate) struct Load {
    process: Process,
}

impl Load {
    /// Starts it.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let process = Process::spawn(
            Command::new(std::env::current_exe()?)
                .args(["bench-child", "load"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        )?;
        Ok(Self { process })
    }

    /// Has an order carried out.
    pub(crate) fn run(&mut self, order: &Order) -> anyhow::Result<Outcome> {
        let stdin = self.process.child.stdin.as_mut().context("no stdin")?;
        writeln!(stdin, "{}", serde_json::to_string(order)?)?;
        let line = self.process.read_line()?;
        Ok(serde_json::from_str(&line)?)
    }
}

/// The plane: the binary to measure, started with a folder and settings.
pub(crate) fn start_plane(
    binary: &Path,
    port: u16,
    data: &Path,
    settings: &[(&str, String)],
) -> anyhow::Result<Process> {
    let log = std::fs::File::create(data.with_extension("log"))?;
    let mut command = Command::new(binary);
    command
        .args(["server", "--listen", &format!("127.0.0.1:{port}"), "--data"])
        .arg(data)
        .env("MUSTER_STORE__DURABILITY", "power")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    for (name, value) in settings {
        command.env(name, value);
    }
    Process::spawn(&mut command)
}
