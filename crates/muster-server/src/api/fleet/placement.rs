//! Placing a worker: what is asked is checked and sealed, the engine decides, and the answer
//! comes once, after the start was verified.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use muster_engine::fleet::effect::{FleetRefusal, WorkerView};
use muster_engine::fleet::event::SpawnAsk;
use muster_engine::fleet::row::Target;
use muster_engine::fleet::{FleetEvent, FleetReply};
use muster_wire::api::fleet::{PassedOver, PlacementAnswer, PlacementMade};
use muster_wire::fleet::{RestartMode, RestartPolicy, WorkerIo, WorkerSpec};
use muster_wire::{Category, WorkerId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::consequence::Dry;
use super::{placements, show, unexpected, wish_on_record};
use crate::api::body::{self, Query, RawBody};
use crate::api::call;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::app::App;
use crate::config::Span;
use crate::fleet::worker;

/// The largest placement.
const BODY_MAX: usize = 1024 * 1024;
/// Arguments, and variables, of one worker.
const ITEMS_MAX: usize = 1_024;
/// The longest argument, variable or path.
const TEXT_MAX: usize = 128 * 1024;
/// Labels of a worker, and of a target.
const LABELS_MAX: usize = 32;
/// The longest start window: the node must answer before the plane gives it up.
const WINDOW_MAX: Duration = Duration::from_secs(30);
/// The longest time between SIGTERM and SIGKILL.
const GRACE_MAX: Duration = Duration::from_secs(3600);
/// How long a placement waits that only says that it would.
const QUEUE_FOR: Duration = Duration::from_secs(3600);
/// How long one may wait at most.
const QUEUE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// How much of a command people read.
const COMMAND_SHOWN: usize = 512;

const SHAPE: &str = "a placement {command, args?, cwd?, env?, io?, restart?, labels?, node?, target_labels?, name?, queue?, start_window?, stop_grace?, rows?, cols?}";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(place))
}

/// A worker that somebody wants.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Placement {
    /// The program: a path, or a name that the node looks up.
    command: String,
    /// Its arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Where it runs, an absolute path.
    #[serde(default)]
    cwd: Option<String>,
    /// Variables. Stored sealed, shown nowhere.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// `pty` or `pipes`.
    #[serde(default)]
    io: Option<String>,
    /// `never`, `on-failure`, `always`, or `{mode, max}`.
    #[serde(default)]
    #[schema(value_type = Object)]
    restart: Option<Restart>,
    /// Labels of its own, by which workers are spread over nodes.
    #[serde(default)]
    labels: Vec<String>,
    /// On this node: its name or id.
    #[serde(default)]
    node: Option<String>,
    /// On nodes that have all of these labels.
    #[serde(default)]
    target_labels: Vec<String>,
    /// Its name; made from the command without it.
    #[serde(default)]
    name: Option<String>,
    /// Wait for a place when there is none now: `true` (1 h), or at most so long, like `10m`.
    #[serde(default)]
    #[schema(value_type = Object)]
    queue: Option<Queue>,
    /// How long it must live to count as started, like `1s`; at most 30s.
    #[serde(default)]
    start_window: Option<String>,
    /// How long it has between SIGTERM and SIGKILL, like `10s`.
    #[serde(default)]
    stop_grace: Option<String>,
    /// Rows of its terminal.
    #[serde(default)]
    rows: Option<u16>,
    /// Columns of its terminal.
    #[serde(default)]
    cols: Option<u16>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Restart {
    Word(String),
    Policy {
        mode: String,
        #[serde(default)]
        max: Option<u32>,
    },
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Queue {
    Wait(bool),
    AtMost(String),
}

/// Place a worker
///
/// One round trip: the answer says that it runs, or how it ended within its start window
/// (`started`), or why it was not placed. With `Idempotency-Key` the same placement is made once.
#[utoipa::path(post, path = "/api/v1/fleet/workers", tag = "fleet", request_body = Placement,
    params(("Idempotency-Key" = Option<String>, Header), Dry),
    responses(
        (status = 200, description = "With dry_run: what it would come to. Without: made before", body = PlacementAnswer),
        (status = 201, description = "Placed: it runs, or it exited within its start window", body = PlacementMade),
        (status = 202, description = "It waits for a place", body = PlacementMade),
        (status = 400, description = "Malformed"),
        (status = 409, description = "node_draining, no_eligible_node, unsupported_by_node, idempotency_conflict"),
        (status = 503, description = "node_unreachable or fleet_capacity, with Retry-After"),
        (status = 504, description = "still_running: sent, and not answered in time; it may run"),
    ))]
pub(crate) async fn place(
    State(app): State<App>,
    caller: Caller,
    Query(dry): Query<Dry>,
    headers: HeaderMap,
    RawBody(bytes): RawBody,
) -> Result<Response, Problem> {
    if bytes.len() > BODY_MAX {
        return Err(body::too_large(BODY_MAX));
    }
    let asked: Placement = body::json(&bytes, SHAPE)?;
    let key = call::header(&headers, "idempotency-key", "Idempotency-Key")?;
    let ask = asked.check(&app)?;
    if dry.dry_run {
        return Ok(
            Json(PlacementAnswer::Would(placements::plan(&app, &ask).await?)).into_response(),
        );
    }
    let ask = Checked {
        idempotency_key: call::idempotency_key(key, &caller.principal)?,
        ..ask
    };
    let id = WorkerId::trusted(muster_wire::mint("wrk"));
    let spec = worker::seal(&app, &id, &ask.spec).await;
    let spec = spec.map_err(|error| Problem::internal(&error))?;
    let name = ask.name.unwrap_or_else(|| name_of(&ask.spec.command, &id));
    let principal = caller.principal.clone();
    let (asked, command) = (id.clone(), shown(&ask.spec));
    // It is placed before it is known whether it starts; a repeated one was placed before.
    let about = move |reply: Option<&FleetReply>| {
        let placed = match reply {
            None => true,
            Some(
                FleetReply::Placed { worker, .. }
                | FleetReply::Queued { worker, .. }
                | FleetReply::StartFailed(worker),
            ) => worker.row.id == asked,
            Some(_) => false,
        };
        placed.then(|| (asked.to_string(), command.clone()))
    };
    let make = |waiter| {
        FleetEvent::SpawnAsked(Box::new(SpawnAsk {
            waiter,
            worker: id,
            name,
            target: ask.target,
            spec,
            command: shown(&ask.spec).into(),
            io: ask.spec.io,
            restart: ask.spec.restart,
            labels: ask.labels,
            principal,
            idempotency_key: ask.idempotency_key,
            body_hash: ask.hash,
            queue_for: ask.queue_for,
        }))
    };
    answer(wish_on_record(&app, &caller, "worker.placed", about, make).await?)
}

/// A placement whose form is right.
pub(super) struct Checked {
    pub(super) spec: WorkerSpec,
    pub(super) target: Target,
    name: Option<Arc<str>>,
    pub(super) labels: Vec<Arc<str>>,
    pub(super) queue_for: Option<Duration>,
    hash: [u8; 16],
    idempotency_key: Option<Arc<str>>,
}

impl Placement {
    fn check(&self, app: &App) -> Result<Checked, Problem> {
        let io = match self.io.as_deref() {
            None => WorkerIo::Pty,
            Some(word) => {
                WorkerIo::from_word(word).ok_or_else(|| Problem::validation("io: pty or pipes"))?
            }
        };
        text("command", &self.command)?;
        if self.command.is_empty() {
            return Err(Problem::validation("command: it must not be empty"));
        }
        if self.args.len() > ITEMS_MAX || self.env.len() > ITEMS_MAX {
            return Err(Problem::validation(format!(
                "args and env: at most {ITEMS_MAX} each"
            )));
        }
        for argument in &self.args {
            text("args", argument)?;
        }
        for (name, value) in &self.env {
            text("env", value)?;
            if name.is_empty() || name.contains(['=', '\0']) || name.len() > 256 {
                return Err(Problem::validation(
                    "env: a name has 1 to 256 bytes without = and NUL",
                ));
            }
        }
        if let Some(cwd) = &self.cwd {
            text("cwd", cwd)?;
            if !cwd.starts_with('/') {
                return Err(Problem::validation("cwd: an absolute path"));
            }
        }
        let window = span("start_window", self.start_window.as_deref(), WINDOW_MAX)?;
        let grace = span("stop_grace", self.stop_grace.as_deref(), GRACE_MAX)?;
        let window = window.unwrap_or(app.config.fleet.start_window.0.min(WINDOW_MAX));
        let (rows, cols) = (self.rows.unwrap_or(24), self.cols.unwrap_or(80));
        if !(1..=1_000).contains(&rows) || !(1..=1_000).contains(&cols) {
            return Err(Problem::validation("rows and cols: 1 to 1000"));
        }
        let named = |what: &str, name: &str| -> Result<Arc<str>, Problem> {
            muster_wire::id::check_id(name)
                .map_err(|error| Problem::validation(format!("{what}: {error}")))?;
            Ok(name.into())
        };
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let plain = serde_json::to_vec(self).map_err(|error| Problem::internal(&error))?;
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(&plain).as_bytes()[..16]);
        Ok(Checked {
            spec: WorkerSpec {
                command: self.command.clone(),
                args: self.args.clone(),
                cwd: self.cwd.clone(),
                env: self.env.clone(),
                io,
                size: (rows, cols),
                restart: restart(self.restart.as_ref())?,
                start_window_ms: Some(millis(window)),
                stop_grace_ms: grace.map(millis),
            },
            target: Target {
                node: self
                    .node
                    .as_deref()
                    .filter(|node| !node.is_empty())
                    .map(|node| named("node", node))
                    .transpose()?,
                labels: labels("target_labels", &self.target_labels)?,
            },
            name: self
                .name
                .as_deref()
                .map(|name| named("name", name))
                .transpose()?,
            labels: labels("labels", &self.labels)?,
            queue_for: queue_for(self.queue.as_ref())?,
            hash,
            idempotency_key: None,
        })
    }
}

/// No NUL, and not endless: a program could not be started with it.
fn text(what: &str, text: &str) -> Result<(), Problem> {
    if text.len() > TEXT_MAX || text.contains('\0') {
        return Err(Problem::validation(format!(
            "{what}: at most {TEXT_MAX} bytes each, without NUL"
        )));
    }
    Ok(())
}

fn span(what: &str, text: Option<&str>, most: Duration) -> Result<Option<Duration>, Problem> {
    let Some(text) = text else {
        return Ok(None);
    };
    let span =
        Span::parse(text).map_err(|error| Problem::validation(format!("{what}: {error}")))?;
    if span.0 > most {
        return Err(Problem::validation(format!("{what}: at most {most:?}")));
    }
    Ok(Some(span.0))
}

pub(super) fn labels(what: &str, labels: &[String]) -> Result<Vec<Arc<str>>, Problem> {
    let fits = |label: &String| {
        (1..=128).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if labels.len() > LABELS_MAX || !labels.iter().all(fits) {
        return Err(Problem::validation(format!(
            "{what}: at most {LABELS_MAX}, each 1 to 128 visible ASCII characters"
        )));
    }
    Ok(labels.iter().map(|label| Arc::from(&**label)).collect())
}

fn restart(asked: Option<&Restart>) -> Result<RestartPolicy, Problem> {
    let (word, max) = match asked {
        None => return Ok(RestartPolicy::default()),
        Some(Restart::Word(word)) => (word, None),
        Some(Restart::Policy { mode, max }) => (mode, *max),
    };
    let mode = RestartMode::from_word(word)
        .ok_or_else(|| Problem::validation("restart: never, on-failure or always"))?;
    Ok(RestartPolicy { mode, max })
}

fn queue_for(asked: Option<&Queue>) -> Result<Option<Duration>, Problem> {
    match asked {
        None | Some(Queue::Wait(false)) => Ok(None),
        Some(Queue::Wait(true)) => Ok(Some(QUEUE_FOR)),
        Some(Queue::AtMost(text)) => match span("queue", Some(text), QUEUE_MAX)? {
            Some(Duration::ZERO) => Err(Problem::validation(
                "queue: a wait of no time is none; leave it out, or give at least 1ms",
            )),
            at_most => Ok(at_most),
        },
    }
}

/// A name from the command: what people look for in a list.
fn name_of(command: &str, id: &WorkerId) -> Arc<str> {
    let base = command.rsplit('/').next().unwrap_or(command);
    let mut name: String = base
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
        .take(64)
        .collect();
    if name.trim_matches('.').is_empty() {
        name = "worker".into();
    }
    let id = id.as_str();
    let end = id[id.len().saturating_sub(6)..].to_ascii_lowercase();
    format!("{name}-{end}").into()
}

/// Program and arguments as people read them: no variables, and not without end.
fn shown(spec: &WorkerSpec) -> String {
    let mut out = String::new();
    for part in std::iter::once(&spec.command).chain(&spec.args) {
        if !out.is_empty() {
            out.push(' ');
        }
        if part.is_empty() || part.contains(char::is_whitespace) {
            out.push('\'');
            out.push_str(part);
            out.push('\'');
        } else {
            out.push_str(part);
        }
        if out.len() > COMMAND_SHOWN {
            let cut = (0..=COMMAND_SHOWN)
                .rev()
                .find(|at| out.is_char_boundary(*at));
            out.truncate(cut.unwrap_or(0));
            out.push('…');
            break;
        }
    }
    out.replace(char::is_control, " ")
}

fn answer(reply: FleetReply) -> Result<Response, Problem> {
    let (status, view, started, repeated) = match reply {
        FleetReply::Placed { worker, repeated } => {
            let status = if repeated {
                StatusCode::OK
            } else {
                StatusCode::CREATED
            };
            (status, worker, Some(true), repeated)
        }
        FleetReply::Queued { worker, repeated } => (StatusCode::ACCEPTED, worker, None, repeated),
        FleetReply::StartFailed(worker) => (StatusCode::CREATED, worker, Some(false), false),
        FleetReply::StartUnconfirmed(worker) => return Err(unconfirmed(&worker)),
        FleetReply::Refused(refusal) => return Err(refused(refusal)),
        _ => return Err(unexpected("a placement")),
    };
    let body = PlacementMade {
        worker: show::worker(&view),
        repeated,
        started,
    };
    let mut response = (status, Json(body)).into_response();
    let place = format!("/api/v1/fleet/workers/{}", view.row.id);
    if let Ok(place) = HeaderValue::try_from(place) {
        response.headers_mut().insert(http::header::LOCATION, place);
    }
    Ok(response)
}

/// Sent, and no answer: it may run. The same key asks again.
fn unconfirmed(view: &WorkerView) -> Problem {
    let node = view.node_name.as_deref().unwrap_or("its node");
    Problem::new(
        Category::StillRunning,
        format!(
            "{} was sent to {node}, and it may run: {}. Ask for {}, or repeat with the same Idempotency-Key",
            view.row.name, view.evidence, view.row.id
        ),
    )
    .retry_after(5)
    .details(json!({"worker": show::worker(view)}))
}

pub(super) fn refused(refusal: FleetRefusal) -> Problem {
    let over: Vec<PassedOver> = refusal.passed_over.iter().map(show::passed_over).collect();
    let mut details = serde_json::Map::new();
    if !over.is_empty() {
        details.insert("passed_over".into(), json!(over));
    }
    if let Some(hint) = refusal.hint {
        details.insert("hint".into(), hint.into());
    }
    let mut problem = Problem::new(refusal.category, refusal.message);
    problem.body.retry_after = refusal.retry_after;
    if !details.is_empty() {
        problem.body.details = Some(details.into());
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_variables_and_a_name_is_made_of_it() {
        let id = WorkerId::trusted("wrk_01ABCDEF");
        assert_eq!(&*name_of("/usr/bin/python3", &id), "python3-abcdef");
        assert_eq!(&*name_of("..", &id), "worker-abcdef");
        assert_eq!(&*name_of("é", &id), "worker-abcdef");
        let spec = WorkerSpec {
            command: "bash".into(),
            args: vec!["-c".into(), "echo hi\nrm x".into()],
            cwd: None,
            env: BTreeMap::from([("TOKEN".into(), "canary".into())]),
            io: WorkerIo::Pty,
            size: (24, 80),
            restart: RestartPolicy::default(),
            start_window_ms: None,
            stop_grace_ms: None,
        };
        assert_eq!(shown(&spec), "bash -c 'echo hi rm x'");
        let long = WorkerSpec {
            args: vec!["é".repeat(1_000)],
            ..spec
        };
        assert!(shown(&long).len() < COMMAND_SHOWN + 8);
    }

    #[test]
    fn durations_and_words_are_read_and_others_refused() {
        assert_eq!(
            queue_for(Some(&Queue::Wait(true))).unwrap(),
            Some(QUEUE_FOR)
        );
        assert_eq!(
            queue_for(Some(&Queue::AtMost("10m".into()))).unwrap(),
            Some(Duration::from_secs(600))
        );
        assert!(queue_for(Some(&Queue::AtMost("30d".into()))).is_err());
        assert!(queue_for(Some(&Queue::AtMost("0s".into()))).is_err());
        assert!(restart(Some(&Restart::Word("sometimes".into()))).is_err());
        let policy = restart(Some(&Restart::Policy {
            mode: "on-failure".into(),
            max: Some(3),
        }));
        assert_eq!(policy.unwrap().max, Some(3));
        assert!(labels("labels", &["a b".to_owned()]).is_err());
    }
}
