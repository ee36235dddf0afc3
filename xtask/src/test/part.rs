//! A command with its arguments and environment, run from the workspace's root, its output
//! passed on line by line. Knows nothing of what the command checks.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use anyhow::Context;

use crate::{root, say};

/// One command.
pub(crate) struct Part {
    program: OsString,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    folder: PathBuf,
}

impl Part {
    /// A cargo command; the words are split at blanks.
    pub(crate) fn cargo(words: &str) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // A binary of ours without its dashboard is a failure, not a warning.
        let mut part = Self::program(Path::new(&cargo)).env("UI_REQUIRED", "1");
        part.arguments
            .extend(words.split_whitespace().map(str::to_owned));
        part
    }

    /// Any other command.
    pub(crate) fn program(program: &Path) -> Self {
        Self {
            program: program.as_os_str().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: root(),
        }
    }

    /// One more argument.
    pub(crate) fn arg(mut self, word: &str) -> Self {
        self.arguments.push(word.to_owned());
        self
    }

    /// More arguments.
    pub(crate) fn args<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(words.into_iter().map(str::to_owned));
        self
    }

    /// One variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs in a folder of the workspace instead of its root.
    pub(crate) fn inside(mut self, folder: &str) -> Self {
        self.folder = root().join(folder);
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(k, v)| (k, v)))
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    fn title(&self) -> String {
        let name = Path::new(&self.program)
            .file_name()
            .unwrap_or(&self.program);
        format!("{} {}", name.to_string_lossy(), self.arguments.join(" "))
    }

    /// Runs it, passes its output on and shows every line to `see`. `false` when it failed.
    pub(crate) fn stream(&self, see: &mut dyn FnMut(&str)) -> anyhow::Result<bool> {
        say::step(&self.title());
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", self.title()))?;
        let (tell, lines) = mpsc::sync_channel::<String>(1024);
        let readers = [
            child.stdout.take().map(|out| pass_on(out, tell.clone())),
            child.stderr.take().map(|out| pass_on(out, tell)),
        ];
        for line in lines {
            say::line(&line);
            see(&line);
        }
        for reader in readers.into_iter().flatten() {
            reader.join().ok();
        }
        Ok(child.wait()?.success())
    }

    /// Whether it can be run and ends well; its output is thrown away.
    pub(crate) fn quiet(&self) -> bool {
        self.command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// What it prints.
    pub(crate) fn output(&self) -> anyhow::Result<String> {
        say::step(&self.title());
        let output = self
            .command()
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("{} cannot be started", self.title()))?;
        anyhow::ensure!(output.status.success(), "{} failed", self.title());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn pass_on(
    from: impl Read + Send + 'static,
    tell: mpsc::SyncSender<String>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(from);
        let mut bytes = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut bytes) {
            let line = String::from_utf8_lossy(&bytes)
                .trim_end_matches(['\r', '\n'])
                .to_owned();
            bytes.clear();
            if tell.send(line).is_err() {
                break;
            }
        }
    })
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> Option<PathBuf> {
    let mut metadata = Part::cargo("metadata --format-version 1 --no-deps --locked").command();
    let output = metadata.stderr(Stdio::inherit()).output().ok()?;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(PathBuf::from(value.get("target_directory")?.as_str()?))
}
