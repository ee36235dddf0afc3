//! `muster node`: runs this machine's daemon, enrols it, and asks it how it is. The daemon
//! itself is the node crate's.

use std::io::Read as _;
use std::path::PathBuf;

use muster_node::enroll::{EnrollError, Enrolment, enroll, host_name};
use muster_node::status::{AskError, Question, StatusReport, ask, last_known};
use muster_node::{
    DaemonSettings, Identity, IdentityError, LinkState, OpenError, RunError, Settings,
};
use muster_wire::{Category, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{info, warn};

use super::envelope::print_one;
use super::{Asking, server, wait};
use crate::cli::{NodeCommand, NodeDrain, NodeEnroll, NodeRun, NodeState, NodeWanted};
use crate::client::{Client, encode};
use crate::failure::{Failure, Outcome};
use crate::out::{self, Colour, Look, Style, span};
use crate::settings::{NodeSection, Sources};

/// Runs one of them.
pub(super) fn run(
    command: &NodeCommand,
    server: Option<&str>,
    look: &Look,
    json: bool,
) -> Outcome<u8> {
    match command {
        NodeCommand::Run(args) => daemon(args),
        NodeCommand::Enroll(args) => wait(enrol(args, json)),
        NodeCommand::Status(args) => wait(status(&args.state, look, json)),
        NodeCommand::Reconnect(args) => wait(tell(&args.state, Question::Reconnect, json)),
        NodeCommand::Stop(args) => {
            let stop_workers = args.stop_workers;
            wait(tell(&args.state, Question::Stop { stop_workers }, json))
        }
        NodeCommand::Drain(args) => wait(drain(args, server, look, json)),
    }
}

/// The section of the file, and the state directory that follows from it and the flags.
fn settings(state: &NodeState) -> Outcome<(NodeSection, PathBuf)> {
    let section = Sources::of_this_process(state.config.clone()).load_node()?;
    let home = || crate::client::home().unwrap_or_else(|| PathBuf::from("."));
    let directory = state
        .state
        .clone()
        .or_else(|| section.state.clone())
        .unwrap_or_else(|| home().join(".muster").join("node"));
    Ok((section, directory))
}

/// What flags and file together want; flags win.
fn wanted(args: &NodeWanted, section: NodeSection) -> NodeSection {
    NodeSection {
        plane: args.plane.clone().or(section.plane),
        name: args.name.clone().or(section.name),
        labels: match args.labels.is_empty() {
            true => section.labels,
            false => args.labels.clone(),
        },
        max_workers: args.max_workers.or(section.max_workers),
        ca: args.ca.clone().or(section.ca),
        ..section
    }
}

fn daemon(args: &NodeRun) -> Outcome<u8> {
    let (section, state) = settings(&args.state)?;
    let wanted = wanted(&args.wanted, section);
    server::start_logging("info");
    server::raise_file_limit();
    let settings = DaemonSettings {
        state,
        plane: wanted.plane,
        name: wanted.name,
        labels: wanted.labels,
        token_file: args.token_file.clone().or(wanted.token_file),
        ca: wanted.ca,
        supervision: Settings {
            workers_max: wanted.max_workers.unwrap_or(0),
            ..Settings::default()
        },
        ..DaemonSettings::default()
    };
    let how = match args.stop_workers {
        true => muster_node::Stop::Release,
        false => muster_node::Stop::Leave,
    };
    server::runtime()?.block_on(async {
        let mut signals = server::Stop::listen()?;
        let (stop, stopped) = watch::channel(None);
        let running = muster_node::run(settings, stopped);
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => Some(ended),
            name = signals.next() => {
                info!(signal = name, "stopping; a second signal ends at once");
                stop.send_replace(Some(how));
                None
            }
        };
        let ended = match ended {
            Some(ended) => ended,
            None => tokio::select! {
                ended = &mut running => ended,
                name = signals.next() => {
                    warn!(signal = name, "ends at once; its workers go on");
                    stop.send_replace(Some(muster_node::Stop::AtOnce));
                    running.await
                }
            },
        };
        ended.map(|()| 0).map_err(from_run)
    })
}

async fn enrol(args: &NodeEnroll, json: bool) -> Outcome<u8> {
    let (section, state) = settings(&args.state)?;
    let wanted = wanted(&args.wanted, section);
    let Some(plane) = wanted.plane else {
        return Err(
            Failure::new(Category::Validation, "no plane is named to enrol at")
                .hint("--plane http://HOST:8080"),
        );
    };
    let mut token = args.token.clone();
    if token == "-" {
        token.clear();
        std::io::stdin().take(4096).read_to_string(&mut token)?;
    }
    let enrolment = Enrolment {
        token: token.trim().to_owned(),
        name: wanted.name,
        labels: wanted.labels,
        max_workers: wanted.max_workers.unwrap_or(0),
        host: host_name(),
    };
    let identity = enroll(&state, &plane, &enrolment, wanted.ca.as_deref(), args.force)
        .await
        .map_err(from_enroll)?;
    if json {
        let shown = json!({
            "node_id": identity.node_id, "name": identity.name, "plane": identity.plane,
            "state": state,
        });
        print_one("node_identity", &shown);
        return Ok(0);
    }
    out::data(&identity.node_id);
    out::talk(&format!(
        "{} is a node of {}; `muster node run` starts it",
        identity.name, identity.plane
    ));
    Ok(0)
}

/// Exit codes of `status`.
const NOT_READY: u8 = 75;
const NOT_RUNNING: u8 = 69;

async fn status(state: &NodeState, look: &Look, json: bool) -> Outcome<u8> {
    let (_, directory) = settings(state)?;
    let (report, running) = match ask(&directory, Question::Status).await {
        Ok(report) => (report, true),
        Err(error @ AskError::NotRunning(_)) => match last_known(&directory) {
            Some(report) => {
                out::talk(&error.to_string());
                (report, false)
            }
            None => return Err(from_ask(error)),
        },
        Err(error) => return Err(from_ask(error)),
    };
    if json {
        let mut shown = as_json(&report);
        shown["running"] = json!(running);
        print_one("node_status", &shown);
    } else {
        let now = Timestamp::wall_clock();
        out::data_raw(&text_of(&look.data, &report, running, now));
    }
    Ok(match (running, report.link.state) {
        (false, _) => NOT_RUNNING,
        (true, LinkState::Ready) => 0,
        (true, _) => NOT_READY,
    })
}

async fn tell(state: &NodeState, question: Question, json: bool) -> Outcome<u8> {
    let (_, directory) = settings(state)?;
    let report = ask(&directory, question).await.map_err(from_ask)?;
    if json {
        print_one("node_status", &as_json(&report));
        return Ok(0);
    }
    out::talk(match question {
        Question::Status => "it answers",
        Question::Reconnect => "it dials anew; `muster node status` says how that goes",
        Question::Stop { stop_workers: true } => "it releases its workers and stops",
        Question::Stop {
            stop_workers: false,
        } => "it stops; its workers go on",
    });
    Ok(0)
}

/// A wish of an operator belongs to the plane: it decides where work goes.
async fn drain(args: &NodeDrain, server: Option<&str>, look: &Look, json: bool) -> Outcome<u8> {
    let (_, directory) = settings(&args.state)?;
    let identity = Identity::read(&directory)
        .and_then(|found| found.ok_or(IdentityError::Missing(Identity::path_in(&directory))))
        .map_err(from_identity)?;
    let asking = Asking {
        client: Client::find(Some(server.unwrap_or(&identity.plane)))?,
        look,
        json,
    };
    let path = format!("/api/v1/fleet/nodes/{}/drain", encode(&identity.node_id));
    let body = match &args.reason {
        Some(reason) => json!({"reason": reason}),
        None => json!({}),
    };
    let drained = asking
        .client
        .post(&path, &body)
        .await
        .map_err(|failure| {
            failure.hint(
                "it takes an operator's key, in MUSTER_API_KEY; while the plane is away, `muster node stop --stop-workers` ends the work here",
            )
        })?
        .json()?;
    if json {
        print_one("node", &drained);
    } else {
        out::talk(&format!(
            "{} is drained: it gets no new work, and its workers are released",
            identity.name
        ));
    }
    Ok(0)
}

/// A node for programs: its moments as every other command has them.
fn as_json(report: &StatusReport) -> Value {
    fn spell(value: &mut Value) {
        for (key, value) in value.as_object_mut().into_iter().flatten() {
            match value {
                Value::Number(micros)
                    if key.ends_with("_at") || key == "since" || key == "as_of" =>
                {
                    if let Some(micros) = micros.as_i64() {
                        *value = json!(Timestamp(micros).rfc3339());
                    }
                }
                Value::Array(items) => items.iter_mut().for_each(spell),
                other => spell(other),
            }
        }
    }
    let mut shown = serde_json::to_value(report).unwrap_or_default();
    spell(&mut shown);
    shown
}

/// A node for people.
pub(super) fn text_of(
    style: &Style,
    report: &StatusReport,
    running: bool,
    now: Timestamp,
) -> String {
    let ago = |at: Timestamp| ago(now, at);
    let link = &report.link;
    let (word, colour) = match (running, link.state) {
        (false, _) => ("not running", Colour::Red),
        (true, LinkState::Ready) => ("ready", Colour::Green),
        (true, state) => (state.word(), Colour::Yellow),
    };
    let since = if running { link.since } else { report.as_of };
    let mut text = format!(
        "{}  {}  {}  {} {}\n",
        style.paint(colour, word),
        style.paint(Colour::Bold, &out::clean(&report.name)),
        out::clean(&report.node_id),
        if running { "for" } else { "last seen" },
        ago(since),
    );
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            let value = style.wrapped(13, &style.words(&out::clean(&value)));
            text += &format!("  {name:10} {value}\n");
        }
    };
    line("plane", report.plane.clone());
    let reason = match link.evidence.is_empty() {
        true => link.reason.clone(),
        false => format!("{} ({})", link.reason, link.evidence),
    };
    line("link", reason);
    if running {
        let next = match link.reconnect_in_ms {
            Some(ms) => format!("dials again in {}", span::duration(millis(ms))),
            None => link.next.clone(),
        };
        line("next", next);
    }
    line(
        "answered",
        match (
            running,
            link.last_acknowledged_ms_ago,
            link.last_acknowledged_at,
        ) {
            (true, Some(ms), _) => format!("{} ago", span::duration(millis(ms))),
            (false, _, Some(at)) => format!("{} ago", ago(at)),
            _ => "never since the daemon started".to_owned(),
        },
    );
    if running {
        line(
            "terminal",
            match report.terminal.open {
                true => format!("open, {} watching", report.terminal.viewers),
                false => format!("closed: {}", report.terminal.reason),
            },
        );
    }
    line(
        "workers",
        match report.max_workers {
            0 => report.workers.len().to_string(),
            max => format!("{} of {max}", report.workers.len()),
        },
    );
    line("outbox", format!("{} exits wait", report.exits_waiting));
    line("daemon", format!("pid {}, {}", report.pid, report.version));
    for worker in &report.workers {
        let pid = worker.pid.map(|pid| {
            let gone = !running && !std::path::Path::new(&format!("/proc/{pid}")).exists();
            format!("  pid {pid}{}", if gone { " (gone)" } else { "" })
        });
        let up = worker.started_at.map(|at| format!("  up {}", ago(at)));
        line(
            "worker",
            format!(
                "{}  {}  {}{}{}",
                worker.worker_id,
                worker.name,
                worker.state,
                pid.unwrap_or_default(),
                up.unwrap_or_default(),
            ),
        );
    }
    style.words(&text)
}

fn ago(now: Timestamp, at: Timestamp) -> String {
    let ms = now.since(at).as_millis();
    span::duration(i64::try_from(ms).unwrap_or(i64::MAX))
}

fn millis(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn from_ask(error: AskError) -> Failure {
    let hint = match error {
        AskError::NotRunning(_) => {
            "start it with `muster node run`, or name its state directory with --state"
        }
        AskError::Late { .. } => {
            "the process is stopped or starved: `ps -o stat,pid,args -C muster` shows T for stopped, `kill -CONT PID` wakes it"
        }
        AskError::NoAnswer { .. } => "is it another user's, or of another version?",
    };
    Failure::new(Category::NodeUnavailable, error.to_string()).hint(hint)
}

fn from_identity(error: IdentityError) -> Failure {
    let category = match error {
        IdentityError::Missing(_) => Category::NotFound,
        IdentityError::Mismatch { .. } => Category::Conflict,
        IdentityError::Unusable { .. } | IdentityError::Address(_) => Category::Validation,
    };
    Failure::new(category, error.to_string())
}

fn from_enroll(error: EnrollError) -> Failure {
    match error {
        EnrollError::Unreachable { .. } => {
            Failure::new(Category::ControlPlaneUnavailable, error.to_string())
                .hint("the token was not used; try again when the plane can be reached")
        }
        EnrollError::Refused(body) => Failure::from(*body).hint(
            "a token is good once and for 15 minutes; `muster nodes enroll` at the plane makes a new one",
        ),
        EnrollError::Unreadable { .. } => Failure::new(Category::BadResponse, error.to_string())
            .hint("is that address a muster plane, and of this version?"),
        EnrollError::Identity(error) => from_identity(error),
        EnrollError::Address(error) => Failure::new(Category::Validation, error.to_string()),
    }
}

fn from_run(error: RunError) -> Failure {
    match error {
        RunError::Open(error @ OpenError::InUse(_)) => {
            Failure::new(Category::Conflict, error.to_string())
        }
        RunError::Open(error) => Failure::new(Category::PermissionDenied, error.to_string())
            .hint("name another directory with --state DIR, or change its owner"),
        RunError::Identity(error) => from_identity(error),
        RunError::Enroll(error) => from_enroll(error),
        RunError::Address(error) => Failure::new(Category::Validation, error.to_string()),
        error @ RunError::Io { .. } => Failure::new(Category::Validation, error.to_string()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A daemon that lost its plane.
    pub(in crate::commands) fn report() -> StatusReport {
        let link: Value = json!({
            "state": "reconnecting", "since": 60_000_000, "reason": "the plane does not acknowledge",
            "evidence": "beat 7 has waited 15.2 s\u{1b}[2J", "next": "dials again in 4.0 s",
            "last_acknowledged_at": 44_000_000, "last_acknowledged_ms_ago": 76_000,
            "reconnect_in_ms": 3_000, "sessions": 1, "attempts": 0,
        });
        serde_json::from_value(json!({
            "node_id": "node_1", "name": "mini", "plane": "http://a:1", "labels": [],
            "max_workers": 8, "version": "0.1.0", "pid": 7, "epoch": "e",
            "started_at": 0, "as_of": 100_000_000, "stopping": false, "link": link,
            "terminal": {"open": false, "since": 0, "reason": "the link is gone", "viewers": 0},
            "workers": [{"worker_id": "wrk_1", "name": "coder", "state": "running", "pid": 4_000_000, "started_at": 0, "restarts": 0}],
            "exits_waiting": 2,
        }))
        .unwrap()
    }

    #[test]
    fn a_node_that_lost_its_plane_says_so_with_the_evidence() {
        let now = Timestamp(120_000_000);
        let text = text_of(&Style::plain(), &report(), true, now);
        for part in [
            "reconnecting  mini  node_1  for 1 m 00 s",
            "the plane does not acknowledge (beat 7 has waited 15.2 s",
            "dials again in 3.00 s",
            "1 m 16 s ago",
            "1 of 8",
            "2 exits wait",
            "wrk_1  coder  running  pid 4000000  up 2 m 00 s",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn moments_are_spelled_for_programs() {
        let shown = as_json(&report());
        assert_eq!(shown["as_of"], "1970-01-01T00:01:40.000Z");
        assert_eq!(shown["link"]["since"], "1970-01-01T00:01:00.000Z");
        assert_eq!(
            shown["workers"][0]["started_at"],
            "1970-01-01T00:00:00.000Z"
        );
        assert_eq!(shown["link"]["reconnect_in_ms"], 3_000);
    }

    #[test]
    fn a_daemon_that_does_not_run_is_not_shown_as_if_it_did() {
        let text = text_of(&Style::plain(), &report(), false, Timestamp(120_000_000));
        assert!(
            text.contains("not running  mini  node_1  last seen 20.0 s"),
            "{text}"
        );
        assert!(!text.contains("dials again"), "{text}");
        #[cfg(target_os = "linux")]
        assert!(text.contains("pid 4000000 (gone)"), "{text}");
    }
}
