//! Waits for an execution and draws its run while it waits. Woken by the event stream; the
//! steps are read again only when something happened.

use std::collections::HashMap;
use std::time::Duration;

use muster_wire::{Status, Timestamp};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::list::{Listed, pages};
use super::{Asking, item};
use crate::client::{Answer, EventStream, encode, query};
use crate::failure::{Failure, Outcome};
use crate::out::tree::{self, Step};
use crate::out::{self, Colour, id};

/// At most ten redraws a second.
const REDRAW: Duration = Duration::from_millis(100);
/// Ages tick though nothing happens; a lost wake-up is noticed by then as well.
const TICK: Duration = Duration::from_secs(1);
/// How long a plane may be away until the wait is given up.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// A live tree is drawn of so many steps.
pub(super) const TREE_STEPS_MAX: u32 = 2_000;

/// What is waited for.
pub(super) struct Waiting<'a> {
    pub(super) asking: &'a Asking<'a>,
    pub(super) execution: &'a str,
    pub(super) run: &'a str,
    /// Nothing is drawn.
    pub(super) quiet: bool,
}

/// How the wait ended.
pub(super) enum Waited {
    /// The execution ended: its fields as they came.
    Ended(Fields),
    /// The bound was reached.
    TimeUp,
    /// Ctrl-C.
    Left,
}

/// The fields of an answer, each as it was written: numbers stay what they were.
pub(super) struct Fields(HashMap<String, Box<RawValue>>);

impl Fields {
    pub(super) fn of(answer: &Answer) -> Outcome<Self> {
        Ok(Self(answer.read()?))
    }

    /// Those of a text that a test wrote.
    #[cfg(test)]
    pub(super) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    /// All of them, as they were written.
    pub(super) fn raw(&self) -> Vec<(String, Box<RawValue>)> {
        let all = self.0.iter();
        let mut all: Vec<_> = all
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// What the plane says of it, without what agents and callers wrote.
    pub(super) fn of_ours(&self) -> Value {
        let ours = self.0.iter().filter_map(|(name, value)| {
            let is_ours = !super::envelope::PAYLOADS.contains(&name.as_str());
            Some((
                name.clone(),
                serde_json::from_str(value.get())
                    .ok()
                    .filter(|_: &Value| is_ours)?,
            ))
        });
        Value::Object(ours.collect())
    }

    /// A field's JSON text.
    pub(super) fn json(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(|raw| raw.get())
            .filter(|text| *text != "null")
    }

    /// A text field.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match serde_json::from_str(self.json(name)?) {
            Ok(Value::String(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// A number field.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        serde_json::from_str(self.json(name)?).ok()
    }

    /// Its exact state.
    pub(super) fn state(&self) -> String {
        self.text("state")
            .or_else(|| self.text("status"))
            .unwrap_or_default()
    }
}

impl Waiting<'_> {
    /// Waits until it has ended, until `bound`, or until Ctrl-C, whatever is asked at that moment.
    pub(super) async fn wait(&self, bound: Option<Duration>) -> Outcome<Waited> {
        let until = bound.map(|bound| Instant::now() + bound);
        tokio::select! {
            ended = self.look_again(until) => ended,
            _ = tokio::signal::ctrl_c() => Ok(Waited::Left),
        }
    }

    async fn look_again(&self, until: Option<Instant>) -> Outcome<Waited> {
        let mut screen = Screen::default();
        let mut away: Option<Instant> = None;
        let mut events: Option<EventStream> = None;
        let ended = loop {
            if events.is_none() {
                // Before the state is read, so that nothing happens in between unseen. A plane
                // that is starting again is waited for by the tick.
                events = self.subscribe().await.ok();
            }
            let answer = self
                .asking
                .client
                .get(&format!("/api/v1/executions/{}", encode(self.execution)))
                .await;
            match answer {
                Ok(answer) => {
                    away = None;
                    let fields = Fields::of(&answer)?;
                    let status = Status::from_word(&fields.state());
                    let has_ended = status.is_some_and(Status::is_terminal);
                    self.draw(&mut screen).await;
                    if has_ended {
                        break Waited::Ended(fields);
                    }
                }
                // It is stored: the plane comes back, or this gives up and says the id.
                Err(failure) if is_away(&failure) => {
                    events = None;
                    let since = *away.get_or_insert_with(Instant::now);
                    if since.elapsed() > AWAY_MAX {
                        return Err(self.gave_up(failure));
                    }
                }
                Err(failure) => return Err(failure),
            }
            tokio::select! {
                () = happened(&mut events) => tokio::time::sleep(REDRAW).await,
                () = tokio::time::sleep(TICK) => {}
                () = up(until) => break Waited::TimeUp,
            }
        };
        Ok(ended)
    }

    fn gave_up(&self, mut failure: Failure) -> Failure {
        failure.body.execution_id = Some(self.execution.to_owned());
        failure.hint(format!(
            "it is stored and goes on when the plane is back: muster executions show {}",
            self.execution
        ))
    }

    async fn subscribe(&self) -> Outcome<EventStream> {
        let filter = query(&[("run", Some(self.run.to_owned()))]);
        self.asking
            .client
            .events(&format!("/api/v1/events{filter}"))
            .await
    }

    async fn draw(&self, screen: &mut Screen) {
        let style = &self.asking.look.errors;
        if self.quiet || self.asking.json || !style.redraws {
            return;
        }
        let Ok((steps, _)) = steps(self.asking, self.run, TREE_STEPS_MAX).await else {
            return;
        };
        let short = id::short(self.run, style.ellipsis());
        let is_open = steps.first().is_none_or(|root| {
            Status::from_word(&root.state).is_none_or(|status| !status.is_terminal())
        });
        // With the line below it at most all rows but two.
        let room = out::rows().saturating_sub(2 + usize::from(is_open)).max(2);
        let mut text = tree::draw(style, &steps, &short, room);
        if is_open {
            let asks = steps
                .iter()
                .find(|step| step.reason.starts_with("waiting_for_approval"));
            let decide = asks.map_or_else(String::new, |step| {
                let short = id::short(&step.id, style.ellipsis());
                format!(" · muster approve {short}")
            });
            let hint = format!("  Ctrl-C leaves it running{decide} · muster why {short}");
            text += &style.paint(Colour::Dim, &style.words(&hint));
            text.push('\n');
        }
        screen.paint(&text);
    }
}

/// Lines that are drawn over.
#[derive(Default)]
struct Screen {
    lines: usize,
}

impl Screen {
    fn paint(&mut self, text: &str) {
        let mut painted = String::new();
        if self.lines > 0 {
            painted += &format!("\u{1b}[{}A\r\u{1b}[J", self.lines);
        }
        painted += text;
        self.lines = text.lines().count();
        out::talk_raw(&painted);
    }
}

async fn happened(events: &mut Option<EventStream>) {
    match events {
        Some(stream) => {
            if stream.next().await.is_err() {
                *events = None;
            }
        }
        None => std::future::pending().await,
    }
}

async fn up(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn is_away(failure: &Failure) -> bool {
    failure.body.error_category.http_status() == 503
}

/// The steps of a run, root first, and the answer they came in.
pub(super) async fn steps(
    asking: &Asking<'_>,
    run: &str,
    at_most: u32,
) -> Outcome<(Vec<Step>, Listed)> {
    let path = format!("/api/v1/runs/{}/steps", encode(run));
    let listed = pages(asking, &path, &[], Some(at_most)).await?;
    let steps = listed
        .items
        .iter()
        .map(|item| step(item, listed.as_of))
        .collect();
    Ok((steps, listed))
}

/// A step from what the plane says of it.
pub(super) fn step(of: &Value, now: Timestamp) -> Step {
    Step {
        id: item::raw(of, &["id", "execution_id"]).unwrap_or_default(),
        parent: item::raw(of, &["parent_id", "parent", "parent_execution_id"]),
        target: item::target(of),
        state: item::state(of),
        reason: item::text(of, &["status_reason", "reason"]).unwrap_or_default(),
        why: step_why(of, now),
        took_ms: item::took(of, now),
        observed: item::text(of, &["kind"]).as_deref() == Some("observed"),
    }
}

fn step_why(of: &Value, now: Timestamp) -> String {
    match item::state(of).as_str() {
        "succeeded" => String::new(),
        "failed" | "timeout" | "cancelled" => {
            item::text(of, &["error_category", "status_reason", "reason"]).unwrap_or_default()
        }
        _ => item::why(of, now),
    }
}
