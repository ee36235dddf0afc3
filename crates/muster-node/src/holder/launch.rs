//! The moment between a holder and its worker's program: this process becomes the program. It
//! takes a session of its own and the terminal, and is killed when its holder dies. Its own
//! process, because all that must happen after the fork.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::tree;

/// The exit code of a program that could not be run, as a shell has it.
pub(super) const NOT_RUN: u8 = 127;

/// The words of a launch, after `--launch`.
pub(crate) fn words(
    failure: &Path,
    has_terminal: bool,
    program: &Path,
    command: &str,
    args: &[String],
) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![
        failure.into(),
        std::process::id().to_string().into(),
        if has_terminal { "terminal" } else { "pipes" }.into(),
        program.into(),
        command.into(),
    ];
    words.extend(args.iter().map(OsString::from));
    words
}

/// Becomes the program. Returns only when that failed; why is then in the `failure` file.
pub(crate) fn launch(words: &[OsString]) -> ExitCode {
    let [failure, parent, io, program, command, args @ ..] = words else {
        return ExitCode::from(2);
    };
    if let Err(sentence) = prepare(parent, io) {
        return fail(failure, &sentence);
    }
    let error = Command::new(program).arg0(command).args(args).exec();
    let is_missing = error.raw_os_error() == Some(rustix::io::Errno::NOENT.raw_os_error());
    let hint = if is_missing {
        ": what its #! line or its loader names is not there"
    } else {
        ""
    };
    let program = Path::new(program).display();
    fail(failure, &format!("{program} cannot be run: {error}{hint}"))
}

fn prepare(parent: &OsStr, io: &OsStr) -> Result<(), String> {
    let sentence = |what: &str, error: std::io::Error| format!("{what}: {error}");
    rustix::process::setsid().map_err(|errno| sentence("no session of its own", errno.into()))?;
    tree::die_with_parent().map_err(|error| sentence("no tie to its holder", error))?;
    // A holder that died before the tie was made is not seen by it.
    let alive = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if alive.as_deref().map(OsStr::new) != Some(parent) {
        return Err("its holder is gone".into());
    }
    if io == "terminal" {
        rustix::process::ioctl_tiocsctty(std::io::stdin())
            .map_err(|errno| sentence("no terminal", errno.into()))?;
    }
    Ok(())
}

fn fail(failure: &OsStr, sentence: &str) -> ExitCode {
    // Without it the holder still sees the exit code.
    let _ = fs::write(failure, sentence);
    ExitCode::from(NOT_RUN)
}
