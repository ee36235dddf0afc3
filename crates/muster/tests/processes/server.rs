//! `muster server`.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    BINARY, Plane, Running, ask, example_agent, muster, run, stderr, stdout, until,
};

#[test]
fn print_config_names_every_value_and_where_it_came_from() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("muster.toml"),
        "[executions]\nsync_wait = \"10s\"\n",
    )
    .unwrap();
    let output = muster(dir.path())
        .args([
            "server",
            "--print-config",
            "--json",
            "--listen",
            "127.0.0.1:9",
        ])
        .env("MUSTER_AUTH__API_KEY", "canary")
        .env("AGENTFIELD_MAX_CONCURRENT_PER_AGENT", "3")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let item = |key: &str| {
        let items = printed["items"].as_array().unwrap();
        items
            .iter()
            .find(|item| item["key"] == key)
            .unwrap()
            .clone()
    };
    assert_eq!(item("executions.sync_wait")["value"], "10s");
    assert_eq!(item("executions.sync_wait")["where"], "muster.toml:2");
    assert_eq!(item("server.listen")["where"], "--listen");
    assert_eq!(item("admission.at_capacity")["value"], "reject");
    assert_eq!(item("admission.at_capacity")["from"], "alias");
    assert_eq!(item("agents.call_timeout")["from"], "default");
    assert_eq!(item("auth.api_key")["from"], "env");
    assert!(!stdout(&output).contains("canary"));
    assert!(
        !dir.path().join(".muster").exists(),
        "printing makes no store"
    );
}

#[test]
fn a_port_in_use_is_said_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(
        dir.path(),
        &["server", "--data", "data", "--listen", &address],
    );
    assert_eq!(output.status.code(), Some(65), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains(&format!("cannot listen on {address}")),
        "{said}"
    );
    assert!(
        said.contains("hint: something listens there already"),
        "{said}"
    );

    let port = taken.local_addr().unwrap().port().to_string();
    let output = run(dir.path(), &["dev", "--port", &port]);
    assert_eq!(output.status.code(), Some(65));
    assert!(
        stderr(&output).contains("muster dev --port"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn postgres_is_honestly_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(
        dir.path(),
        &["server", "--database", "postgres://u:canary@db/x"],
    );
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("PostgreSQL is not in this build yet"));
    assert!(!stderr(&output).contains("canary"));
}

#[test]
fn a_directory_that_cannot_be_written_is_said() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let output = run(
        dir.path(),
        &["server", "--data", "file/data", "--listen", "127.0.0.1:0"],
    );
    assert_eq!(output.status.code(), Some(77), "{}", stderr(&output));
    assert!(stderr(&output).contains("hint: name another with --data DIR"));
}

#[test]
fn a_second_process_on_the_same_data_is_refused_and_the_first_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path(), "127.0.0.1:0");
    let second = run(
        dir.path(),
        &["server", "--data", ".muster", "--listen", "127.0.0.1:0"],
    );
    assert_eq!(second.status.code(), Some(65), "{}", stderr(&second));
    assert!(stderr(&second).contains("in use by another muster process"));
    assert!(plane.ask(&["doctor"]).status.success());
}

#[test]
fn sigterm_stops_it_in_stages_and_it_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut plane = Plane::start(dir.path(), "127.0.0.1:0");
    plane.process.signal(Signal::TERM);
    assert!(plane.process.end().success(), "{}", plane.process.said());
    let said = plane.process.said();
    assert!(
        said.contains("\"stopping; a second signal ends at once\""),
        "{said}"
    );
    assert!(said.contains("\"stopped\""), "{said}");
    let asked = plane.ask(&["agents"]);
    assert_eq!(asked.status.code(), Some(75));
    assert!(stderr(&asked).contains("no plane answers at"));
}

#[test]
fn sighup_stops_it_in_stages_unless_it_was_ignored_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut plane = Plane::start(dir.path(), "127.0.0.1:0");
    plane.process.signal(Signal::HUP);
    assert!(plane.process.end().success(), "{}", plane.process.said());
    assert!(plane.process.said().contains("\"stopped\""));

    let mut command = std::process::Command::new("nohup");
    command
        .args([
            BINARY,
            "server",
            "--data",
            "data",
            "--listen",
            "127.0.0.1:0",
        ])
        .current_dir(dir.path())
        .env("HOME", dir.path());
    let mut ignoring = Running::start(command);
    ignoring.line("\"ready\"");
    ignoring.signal(Signal::HUP);
    ignoring.signal(Signal::TERM);
    assert!(ignoring.end().success(), "{}", ignoring.said());
    let said = ignoring.said();
    assert!(
        said.contains("SIGTERM") && !said.contains("SIGHUP"),
        "{said}"
    );
}

#[test]
fn exit_codes_are_those_of_the_categories() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path(), "127.0.0.1:0");
    for (arguments, code) in [
        (&["call", "no.one"][..], 66),
        (&["call", "noone"], 2),
        (&["call", "no.one", "--input", "{"], 2),
        (&["executions", "show", "exec_nothing"], 66),
        (&["executions", "--state", "flying"], 2),
        (&["unhold"], 2),
        (&["agents"], 0),
    ] {
        let output = plane.ask(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            stderr(&output)
        );
        if code != 0 {
            assert!(stderr(&output).contains("error["), "{}", stderr(&output));
            assert!(output.stdout.is_empty());
        }
    }
    for (arguments, says) in [
        (&["cancel", ""][..], "the id is empty"),
        (&["cancel", "…"], "the id is empty"),
        (&["cancel", "exec_01"], "too short"),
        (&["cancel", "", "--tree"], "the id is empty"),
        (
            &["cancel", "run_01KB6E7M9Q"],
            "muster cancel run_01KB6E7M9Q --tree",
        ),
        (&["why", ""], "the id is empty"),
        (&["executions", "show", ""], "the id is empty"),
        (&["runs", "show", ""], "the id is empty"),
        (&["agents", "show", ""], "the id is empty"),
        (&["keys", "revoke", ""], "the id is empty"),
        (&["quarantine", "show", ""], "the id is empty"),
        (&["tail", "--from", "1200"], "where a cursor comes from"),
        (
            &["completions", "bash", "--server", "x"],
            "names a plane to ask",
        ),
    ] {
        let output = plane.ask(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains(says),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let output = plane.ask(&["call", "no.one", "--json"]);
    let body: Value = serde_json::from_str(&stderr(&output)).unwrap();
    assert_eq!(body["error_category"], "target_not_found");
}

#[test]
fn doctor_exits_by_what_failed() {
    let dir = tempfile::tempdir().unwrap();
    let mut plane = Plane::start(dir.path(), "127.0.0.1:0");
    let with_key = |key: &str| {
        muster(dir.path())
            .args(["doctor", "--server", &plane.address])
            .env("MUSTER_API_KEY", key)
            .output()
            .unwrap()
    };
    let mistyped = with_key("mk_mistyped");
    assert_eq!(mistyped.status.code(), Some(77), "{}", stdout(&mistyped));
    let broken = with_key("mk_canary\nmk_other");
    assert_eq!(broken.status.code(), Some(2));
    assert!(stderr(&broken).contains("MUSTER_API_KEY"));
    assert!(!stderr(&broken).contains("canary"));

    plane.process.signal(Signal::TERM);
    plane.process.end();
    assert_eq!(plane.ask(&["doctor"]).status.code(), Some(75));
}

#[test]
fn an_unhold_says_what_stays_held() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path(), "127.0.0.1:0");
    let agent = example_agent(dir.path(), &plane.address);
    until("the agent is held", || {
        plane
            .ask(&["hold", "hello", "--reason", "a test"])
            .status
            .success()
            .then_some(())
    });
    let lifted = plane.ask(&["unhold", "--yes"]);
    assert!(lifted.status.success(), "{}", stderr(&lifted));
    assert_eq!(stdout(&lifted), "there was no hold on all agents\n");
    assert!(
        stderr(&lifted).contains("hello is still held; lift it: muster unhold hello"),
        "{}",
        stderr(&lifted)
    );
    let lifted = plane.ask(&["unhold", "hello", "--yes"]);
    assert_eq!(stdout(&lifted), "lifted; nothing waited behind it\n");
    assert_eq!(stderr(&lifted), "");
    drop(agent);
}

#[test]
fn what_was_acknowledged_before_kill_9_ends_after_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut plane = Plane::start(dir.path(), "127.0.0.1:0");
    let address = plane.address.clone();
    let agent = example_agent(dir.path(), &address);
    until("the agent has registered", || {
        plane
            .ask(&["call", "hello.greet", "--input", r#"{"name":"x"}"#, "-q"])
            .status
            .success()
            .then_some(())
    });
    let ids: Vec<String> = (0..5)
        .map(|_| {
            let output = plane.ask(&[
                "call",
                "hello.countdown",
                "--async",
                "-q",
                "--input",
                r#"{"from":4}"#,
            ]);
            assert!(output.status.success(), "{}", stderr(&output));
            stdout(&output).trim().to_owned()
        })
        .collect();
    plane.process.signal(Signal::KILL);
    plane.process.end();

    let plane = Plane::start(dir.path(), &address);
    for id in ids {
        until(&format!("{id} has ended"), || {
            let output = ask(
                dir.path(),
                &plane.address,
                &["executions", "show", &id, "--json"],
            );
            assert!(output.status.success(), "{}", stderr(&output));
            let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
            match shown["state"].as_str().unwrap() {
                "succeeded" => {
                    assert_eq!(shown["result"]["counted"], 4);
                    Some(())
                }
                state => {
                    assert_eq!(state, "running", "{shown}");
                    None
                }
            }
        });
    }
    drop(agent);
}
