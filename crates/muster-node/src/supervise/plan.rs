//! Turns what is asked for into what a holder is told, or says in a sentence why that cannot be
//! run here. Looks at the file system; starts nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use muster_wire::fleet::WorkerIo;
use muster_wire::fleet::frame::SpawnInput;

use crate::backoff::Waits;
use crate::holder::boot::Boot;
use crate::screen::SIDE_MAX;
use crate::settings::Settings;

/// The variables that a worker has from its node, where the node has them.
const INHERITED: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"];
/// Where programs are looked for when the node has no PATH.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";
/// The longest argument or variable that a kernel takes, with its NUL.
const STRING_MAX: usize = 128 * 1024;

/// The variable that says which worker a process belongs to.
pub(crate) const WORKER_TAG: &str = "MUSTER_WORKER_ID";
/// The variable that says of which node's memory that worker is.
pub(crate) const EPOCH_TAG: &str = "MUSTER_NODE_EPOCH";

/// How a worker's processes are recognised when their holder is gone.
pub(crate) fn tags(worker_id: &str, epoch: &str) -> Vec<String> {
    vec![
        format!("{WORKER_TAG}={worker_id}"),
        format!("{EPOCH_TAG}={epoch}"),
    ]
}

/// What the holder is told; a sentence when it cannot be run.
pub(crate) fn plan(input: SpawnInput, settings: &Settings, epoch: &str) -> Result<Boot, String> {
    let spec = &input.spec;
    check_text("the command", &spec.command)?;
    if spec.command.is_empty() {
        return Err("the command is empty: name a program".into());
    }
    for argument in &spec.args {
        check_text("an argument", argument)?;
    }
    let (rows, cols) = spec.size;
    if spec.io == WorkerIo::Pty
        && [rows, cols]
            .iter()
            .any(|side| !(1..=SIDE_MAX).contains(side))
    {
        return Err(format!(
            "a terminal of {rows} rows and {cols} columns is not possible: both are from 1 to \
             {SIDE_MAX}"
        ));
    }
    let env = environment(&input, epoch)?;
    let cwd = directory(spec.cwd.as_deref(), settings)?;
    let path = env.get("PATH").map_or(PATH_DEFAULT, String::as_str);
    let program = find_program(&spec.command, &cwd, path)?;
    let or_default = |ms: Option<u64>, default| ms.map_or(default, Duration::from_millis);
    Ok(Boot {
        program,
        cwd,
        env,
        io: spec.io,
        size: spec.size,
        restart: spec.restart,
        waits: Waits {
            first: settings.restart_wait,
            longest: settings.restart_wait_max,
            reset: settings.restart_reset,
        },
        start_window: or_default(spec.start_window_ms, settings.start_window),
        stop_grace: or_default(spec.stop_grace_ms, settings.stop_grace),
        prefix: settings.holder.clone(),
        worker_id: input.worker_id,
        start: muster_wire::mint("start"),
        name: input.name,
        command: input.spec.command,
        args: input.spec.args,
    })
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err(format!(
            "{what} has a NUL character in it, which no program can be given"
        ));
    }
    if text.len() >= STRING_MAX {
        return Err(format!(
            "{what} has {} bytes; at most {} fit: put it into a file",
            text.len(),
            STRING_MAX - 1
        ));
    }
    Ok(())
}

/// A clean set, then what the spec says, then what the plane gives; the tags last.
fn environment(input: &SpawnInput, epoch: &str) -> Result<BTreeMap<String, String>, String> {
    let mut env = BTreeMap::new();
    env.insert("PATH".to_owned(), PATH_DEFAULT.to_owned());
    for name in INHERITED {
        if let Ok(value) = std::env::var(name) {
            env.insert(name.to_owned(), value);
        }
    }
    if input.spec.io == WorkerIo::Pty {
        env.insert("TERM".to_owned(), "xterm-256color".to_owned());
    }
    for (name, value) in input.spec.env.iter().chain(&input.given_env) {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!(
                "a variable cannot have the name {name:?}: it is not empty and has no '=' and no NUL"
            ));
        }
        // The value may be a secret: the sentence has the name alone.
        check_text(&format!("the variable {name}"), value)?;
        env.insert(name.clone(), value.clone());
    }
    env.insert(WORKER_TAG.to_owned(), input.worker_id.clone());
    env.insert(EPOCH_TAG.to_owned(), epoch.to_owned());
    Ok(env)
}

fn directory(asked: Option<&str>, settings: &Settings) -> Result<PathBuf, String> {
    let Some(asked) = asked else {
        return Ok(settings.worker_dir.clone());
    };
    check_text("the working directory", asked)?;
    let path = Path::new(asked);
    if !path.is_absolute() {
        return Err(format!(
            "the working directory {asked} is relative: a node takes absolute ones"
        ));
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(path.to_owned()),
        Ok(_) => Err(format!("the working directory {asked} is a file")),
        Err(error) => Err(format!(
            "the working directory {asked} cannot be used on this node: {error}"
        )),
    }
}

fn find_program(command: &str, cwd: &Path, path: &str) -> Result<PathBuf, String> {
    if command.contains('/') {
        let program = cwd.join(command);
        return match fs::metadata(&program) {
            Ok(found) if found.is_dir() => Err(format!("{command} is a directory, no program")),
            Ok(found) if is_executable(&found) => Ok(program),
            Ok(_) => Err(format!(
                "{command} may not be executed: set its mode with chmod +x, or run it with its \
                 interpreter"
            )),
            Err(error) => Err(format!(
                "the program {} cannot be found on this node: {error}",
                program.display()
            )),
        };
    }
    let places = path.split(':').filter(|place| !place.is_empty());
    let found = places
        .map(|place| cwd.join(place).join(command))
        .find(|program| {
            fs::metadata(program).is_ok_and(|found| found.is_file() && is_executable(&found))
        });
    found.ok_or_else(|| {
        format!(
            "the program {command} is in no directory of the PATH ({path}): install it on this \
             node, or give its path"
        )
    })
}

fn is_executable(found: &fs::Metadata) -> bool {
    found.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use muster_wire::fleet::{RestartPolicy, WorkerSpec};

    use super::*;

    fn asked(command: &str) -> SpawnInput {
        SpawnInput {
            worker_id: "w1".into(),
            name: "n".into(),
            spec: WorkerSpec {
                command: command.into(),
                args: Vec::new(),
                cwd: None,
                env: BTreeMap::new(),
                io: WorkerIo::Pty,
                size: (24, 80),
                restart: RestartPolicy::default(),
                start_window_ms: None,
                stop_grace_ms: None,
            },
            given_env: BTreeMap::new(),
        }
    }

    fn refusal(change: impl FnOnce(&mut SpawnInput)) -> String {
        let mut input = asked("sh");
        change(&mut input);
        match plan(input, &Settings::default(), "e1") {
            Ok(_) => panic!("it was not refused"),
            Err(sentence) => sentence,
        }
    }

    #[test]
    fn what_cannot_run_is_refused_with_a_sentence_that_says_what_to_do() {
        for (sentence, part) in [
            (
                refusal(|i| i.spec.command = "no-such-program".into()),
                "install it",
            ),
            (
                refusal(|i| i.spec.command = "/nowhere/x".into()),
                "/nowhere/x",
            ),
            (
                refusal(|i| i.spec.command = "/etc/passwd".into()),
                "chmod +x",
            ),
            (refusal(|i| i.spec.command = "/tmp".into()), "directory"),
            (
                refusal(|i| i.spec.command = String::new()),
                "name a program",
            ),
            (refusal(|i| i.spec.command = "s\0h".into()), "NUL"),
            (refusal(|i| i.spec.args = vec!["a\0".into()]), "NUL"),
            (
                refusal(|i| i.spec.args = vec!["x".repeat(STRING_MAX)]),
                "into a file",
            ),
            (
                refusal(|i| i.spec.cwd = Some("/nowhere".into())),
                "/nowhere",
            ),
            (
                refusal(|i| i.spec.cwd = Some("/etc/passwd".into())),
                "is a file",
            ),
            (refusal(|i| i.spec.cwd = Some("tmp".into())), "absolute"),
            (refusal(|i| i.spec.size = (0, 80)), "0 rows"),
            (
                refusal(|i| drop(i.spec.env.insert("A=B".into(), "x".into()))),
                "A=B",
            ),
        ] {
            assert!(sentence.contains(part), "{sentence:?} lacks {part:?}");
        }
        let secret = refusal(|i| drop(i.given_env.insert("KEY".into(), "s3cret\0".into())));
        assert!(
            secret.contains("KEY") && !secret.contains("s3cret"),
            "{secret}"
        );
    }

    #[test]
    fn the_environment_is_a_clean_set_and_the_plane_has_the_last_word() {
        let mut input = asked("sh");
        input.spec.env.insert("A".into(), "spec".into());
        input.spec.env.insert(WORKER_TAG.into(), "another".into());
        input.given_env.insert("A".into(), "plane".into());
        let boot = plan(input, &Settings::default(), "e1").ok().unwrap();
        assert_eq!(boot.env["A"], "plane");
        assert_eq!(boot.env[WORKER_TAG], "w1");
        assert_eq!(boot.env["TERM"], "xterm-256color");
        assert!(boot.program.is_absolute());
        let known = ["A", "TERM", WORKER_TAG, EPOCH_TAG];
        for name in boot.env.keys().map(String::as_str) {
            assert!(known.contains(&name) || INHERITED.contains(&name), "{name}");
        }
    }
}
