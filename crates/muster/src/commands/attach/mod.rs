//! `muster attach`: a worker's terminal in this one. Leaves the worker running when it is left,
//! says why it closed, and comes back by itself when the connection was lost.

mod keys;
mod screen;
mod viewing;

use std::time::{Duration, Instant};

use muster_wire::Category;
use serde_json::Value;
use tokio::sync::mpsc;

use super::resolve::{self, Noun};
use super::server::Stop;
use super::workers::{id_of, node_of};
use super::{Asking, item};
use crate::cli::Attach;
use crate::client::Socket;
use crate::failure::{Failure, Outcome};
use crate::out::{self, clean, span};
use keys::DetachKey;
use screen::Screen;
use viewing::{Left, Viewing};

const BACK_OFF_FIRST: Duration = Duration::from_millis(250);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// How long a lost connection is tried again.
const AWAY_MAX: Duration = Duration::from_secs(90);

/// Attaches, until it is left or closed.
pub(super) async fn run(asking: &Asking<'_>, args: &Attach) -> Outcome<u8> {
    if asking.json {
        return Err(
            Failure::new(Category::Validation, "a terminal has no JSON form")
                .hint("`muster logs WORKER --json` has its last output"),
        );
    }
    let detach = DetachKey::parse(&args.detach_key)?;
    let (_, worker) = resolve::get(asking, Noun::Worker, &args.worker).await?;
    let mut stop = Stop::listen()?;
    let name = item::text(&worker, &["name"]).unwrap_or_else(|| id_of(&worker));
    let hint = |failure| with_hint(failure, &id_of(&worker));
    let socket = connect(asking, &worker).await.map_err(hint)?;
    let screen = Screen::take()?;
    let typed = if screen.has_keys() {
        screen::typed()
    } else {
        // Nobody types: a channel that is closed.
        mpsc::channel(1).1
    };
    screen.say(&format!(
        "{name} on {}; leave it running with {detach}",
        node_of(&worker)
    ));
    // What was started with pipes can be watched and takes no keys.
    let is_terminal = item::text(&worker, &["io"]).is_none_or(|io| io == "pty");
    let mut viewing = Viewing::new(screen, typed, detach, args, name.clone(), is_terminal);
    let mut next = Some(socket);
    let left = loop {
        let left = match next.take() {
            Some(socket) => viewing.until_left(socket, &mut stop).await,
            None => match again(asking, &worker, &mut viewing, &mut stop).await {
                Ok(socket) => {
                    viewing.screen.say("connected again");
                    next = Some(socket);
                    continue;
                }
                Err(left) => left,
            },
        };
        match left {
            Ok(Left::Lost(why)) => viewing
                .screen
                .say(&format!("{}: trying again", clean(&why))),
            left => break left,
        }
    };
    let dropped = viewing.dropped;
    // The terminal is put back before anything is said.
    drop(viewing);
    if dropped > 0 {
        out::talk(&format!(
            "{} of its output were not shown: they came faster than they could be sent; `muster logs` has the end",
            span::bytes(dropped)
        ));
    }
    match left.map_err(hint)? {
        Left::Detached => {
            out::talk(&format!(
                "left {name}; it runs on: muster attach {name} · muster release {name}"
            ));
            Ok(0)
        }
        Left::Closed(why) => {
            out::talk(&format!("closed: {}", clean(&why)));
            Ok(0)
        }
        Left::Signal(signal) => {
            out::talk(&format!("{signal}: left {name}; it runs on"));
            Ok(Category::Cancelled.exit_code())
        }
        Left::Lost(why) => Err(Failure::new(Category::ControlPlaneUnavailable, why)),
    }
}

async fn connect(asking: &Asking<'_>, worker: &Value) -> Outcome<Socket> {
    let id = item::raw(worker, &["worker_id", "id"]).unwrap_or_default();
    asking
        .client
        .socket(&format!("{}/terminal", Noun::Worker.path(&id)))
        .await
}

/// Connects again, with patience; what ends that is why it was left.
async fn again(
    asking: &Asking<'_>,
    worker: &Value,
    viewing: &mut Viewing,
    stop: &mut Stop,
) -> Result<Socket, Outcome<Left>> {
    let began = Instant::now();
    let mut back_off = BACK_OFF_FIRST;
    loop {
        tokio::select! {
            () = tokio::time::sleep(back_off) => {}
            () = viewing.detached() => return Err(Ok(Left::Detached)),
            signal = stop.next() => return Err(Ok(Left::Signal(signal))),
        }
        let failure = match connect(asking, worker).await {
            Ok(socket) => return Ok(socket),
            Err(failure) => failure,
        };
        if failure.body.error_category.http_status() != 503 || began.elapsed() > AWAY_MAX {
            return Err(Err(failure));
        }
        back_off = (back_off * 2).min(BACK_OFF_MAX);
    }
}

fn with_hint(failure: Failure, worker: &str) -> Failure {
    if failure.hint.is_some() {
        return failure;
    }
    match failure.body.error_category {
        Category::Conflict => failure.hint(format!("what it printed last: muster logs {worker}")),
        Category::NodeUnreachable => {
            failure.hint(format!("see `muster nodes` and `muster why {worker}`"))
        }
        _ => failure,
    }
}
