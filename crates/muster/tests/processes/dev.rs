//! `muster dev`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{BINARY, Running, ask, is_alive, muster, stderr, stdout, until};

fn dev(directory: &std::path::Path, command: &[&str]) -> (Running, String) {
    let mut process = muster(directory);
    process.args(["dev", "--listen", "127.0.0.1:0"]);
    if !command.is_empty() {
        process.arg("--").args(command);
    }
    let running = Running::start(process);
    let line = running.line("ready in");
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let address = address
        .strip_suffix("/ui/")
        .expect("the dashboard's address");
    (running, address.to_owned())
}

#[test]
fn it_prints_an_executed_call_and_stops_on_sigint() {
    let dir = tempfile::tempdir().unwrap();
    let (mut running, address) = dev(dir.path(), &[]);
    let call = running.line("  call   hello.greet");
    assert!(call.contains("✓ succeeded in "), "{call}");
    running.line(r#"{"greeting":"Hello, world"}"#);
    let again = running.line("  again  curl");
    assert!(again.contains(&address), "{again}");
    let agent = running.line("  agent  hello");
    assert!(agent.contains("greet, countdown"), "{agent}");
    let pid = agent
        .split("pid ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    let pid: i32 = pid.parse().unwrap();
    assert!(is_alive(pid));

    let listed = ask(dir.path(), &address, &["executions", "--json"]);
    let listed: Value = serde_json::from_str(&stdout(&listed)).unwrap();
    assert_eq!(listed["items"][0]["state"], "succeeded");
    assert_eq!(listed["items"][0]["target"], "hello.greet");

    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(0), "{}", running.said());
    assert!(!is_alive(pid), "the agent outlived its plane");
}

#[test]
fn a_change_restarts_the_command_and_no_call_fails_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let version = dir.path().join("version.txt");
    std::fs::write(&version, "1").unwrap();
    let command = [
        BINARY,
        "example-agent",
        "--id",
        "edited",
        "--version-file",
        "version.txt",
    ];
    let (mut running, address) = dev(dir.path(), &command);
    running.line("  call   curl");

    let stop = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicU32::new(0));
    let caller = std::thread::spawn({
        let (stop, calls) = (stop.clone(), calls.clone());
        let (directory, address) = (dir.path().to_owned(), address.clone());
        move || {
            let mut failed = Vec::new();
            while !stop.load(Ordering::Acquire) {
                let output = ask(
                    &directory,
                    &address,
                    &["call", "edited.greet", "-q", "--input", r#"{"name":"x"}"#],
                );
                calls.fetch_add(1, Ordering::AcqRel);
                if !output.status.success() {
                    failed.push(stderr(&output));
                }
            }
            failed
        }
    });
    for edit in ["2", "3", "4"] {
        std::fs::write(&version, edit).unwrap();
        until(&format!("version {edit} is there"), || {
            let output = ask(
                dir.path(),
                &address,
                &["agents", "show", "edited", "--json"],
            );
            let shown: Value = serde_json::from_str(&stdout(&output)).ok()?;
            let instances = shown["instances"].as_array()?;
            instances
                .iter()
                .any(|instance| instance["version"] == edit && instance["state"] == "active")
                .then_some(())
        });
        // Calls must have gone through the new process before the next edit.
        let before = calls.load(Ordering::Acquire);
        until("calls go on", || {
            (calls.load(Ordering::Acquire) > before + 2).then_some(())
        });
    }
    stop.store(true, Ordering::Release);
    let failed = caller.join().unwrap();
    assert!(failed.is_empty(), "{failed:?}\n{}", running.said());
    assert!(running.said().contains("version.txt changed, restarting"));

    running.signal(Signal::TERM);
    assert_eq!(running.end().code(), Some(0), "{}", running.said());
}

#[test]
fn a_command_that_fails_is_started_again_and_a_broken_one_waits_for_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("agent.sh");
    std::fs::write(&script, "echo started once; exit 3\n").unwrap();
    let (mut running, _) = dev(dir.path(), &["sh", "agent.sh"]);
    running.line("agent | ended (exit 3); starting again in");
    until("it was started again", || {
        (running.said().matches("agent | started once").count() >= 2).then_some(())
    });

    std::fs::write(&script, "echo 'SyntaxError: invalid syntax' >&2; exit 1\n").unwrap();
    running.line("waiting for the next change");
    std::fs::write(&script, "echo mended; exec sleep 600\n").unwrap();
    running.line("agent | mended");

    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(0), "{}", running.said());
}

#[test]
fn a_command_that_is_not_there_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (mut running, _) = dev(dir.path(), &["no-such-command-here"]);
    assert_eq!(running.end().code(), Some(66));
    assert!(
        running.said().contains("cannot run no-such-command-here"),
        "{}",
        running.said()
    );
}

#[test]
fn the_whole_group_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("agent.sh"),
        "sleep 600 & echo grandchild $!; wait\n",
    )
    .unwrap();
    let (mut running, _) = dev(dir.path(), &["sh", "agent.sh"]);
    let line = running.line("grandchild ");
    let pid: i32 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(is_alive(pid));
    running.signal(Signal::INT);
    running.end();
    until("the grandchild has ended", || {
        (!is_alive(pid)).then_some(())
    });
}

#[test]
fn what_a_killed_one_left_running_is_ended_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("agent.sh"),
        "echo mine $$; exec sleep 600\n",
    )
    .unwrap();
    let (mut running, _) = dev(dir.path(), &["sh", "agent.sh"]);
    let line = running.line("mine ");
    let left: i32 = line.rsplit(' ').next().unwrap().parse().unwrap();
    running.signal(Signal::KILL);
    running.end();
    assert!(is_alive(left));

    let (mut running, _) = dev(dir.path(), &["sh", "agent.sh"]);
    running.line(&format!("ended pid {left}: "));
    assert!(!is_alive(left));
    let line = running.line("mine ");
    let pid: i32 = line.rsplit(' ').next().unwrap().parse().unwrap();

    running.signal(Signal::HUP);
    assert_eq!(running.end().code(), Some(0), "{}", running.said());
    assert!(!is_alive(pid), "a hang-up ends the child too");

    let (running, _) = dev(dir.path(), &["sh", "agent.sh"]);
    running.line("mine ");
    assert!(!running.said().contains("ended pid"), "{}", running.said());
}

#[test]
fn an_agent_may_be_given_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("name.txt");
    std::fs::write(&name, "one").unwrap();
    std::fs::write(
        dir.path().join("agent.sh"),
        format!("exec {BINARY} example-agent --id $(cat name.txt)\n"),
    )
    .unwrap();
    let (mut running, address) = dev(dir.path(), &["sh", "agent.sh"]);
    running.line("  call   curl");
    std::fs::write(&name, "two").unwrap();
    running.line("it was one and is two now");
    let call = ["call", "two.greet", "-q", "--input", r#"{"name":"x"}"#];
    let called = ask(dir.path(), &address, &call);
    assert!(
        called.status.success(),
        "{}{}",
        stderr(&called),
        running.said()
    );
    running.signal(Signal::INT);
    assert_eq!(running.end().code(), Some(0), "{}", running.said());
}

#[test]
fn a_start_after_which_nothing_registers_is_said() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.sh"), "exec sleep 600\n").unwrap();
    let (running, _) = dev(dir.path(), &["sh", "agent.sh"]);
    running.line("nothing has registered within 10 s of the start");
}

#[test]
fn a_process_that_cannot_start_is_why_calls_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("muster.toml"),
        "[agents]\nrestart_grace = \"1s\"\n",
    )
    .unwrap();
    let script = dir.path().join("agent.sh");
    let good = format!("exec {BINARY} example-agent --id edited\n");
    std::fs::write(&script, &good).unwrap();
    let (running, address) = dev(dir.path(), &["sh", "agent.sh"]);
    running.line("  call   curl");
    std::fs::write(&script, "echo 'SyntaxError: invalid syntax' >&2; exit 1\n").unwrap();
    running.line("waiting for the next change");
    let call = ["call", "edited.greet", "-q", "--input", r#"{"name":"x"}"#];
    until("the plane says why", || {
        let called = ask(dir.path(), &address, &call);
        stderr(&called)
            .contains("its process cannot start (exit 1)")
            .then_some(())
    });
    std::fs::write(&script, &good).unwrap();
    until("it is called again", || {
        ask(dir.path(), &address, &call)
            .status
            .success()
            .then_some(())
    });
}
