//! Why one execution is where it is. Of an open one the engine knows; of one that ended its row,
//! its attempts and its events tell.

use muster_engine::effect::Why as Held;
use muster_engine::event::Question;
use muster_engine::row::{AttemptRow, ExecutionRow};
use muster_engine::{Event, Reply};
use muster_store::{Life, Stores};
use muster_wire::api::execution::{Attempt, ExecutionItem};
use muster_wire::api::why::{Why, WhyFact, WhyKind, WhyNext, WhyNot};
use muster_wire::{ExecutionId, ExecutionKind, Status, plain};

use super::facts;
use super::rules::{change, rule};
use super::sentence;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use crate::api::show::{self, Sizes};
use crate::api::steps::segments;
use crate::app::App;

/// Events that are shown as facts.
const FACTS_MAX: usize = 200;

/// Why one execution is where it is; `None` when there is none that the caller may see.
pub(super) async fn of(
    app: &App,
    caller: &Caller,
    execution: &ExecutionId,
) -> Result<Option<Why>, Problem> {
    let question = Question::Why(execution.clone());
    let held = match app
        .driver
        .ask(|waiter| Event::Asked { question, waiter })
        .await?
    {
        Reply::Why(Some(why)) if caller.sees(&why.row.principal) => Some(why),
        Reply::Why(_) | Reply::UnknownExecution => None,
        Reply::Refused(refusal) => return Err(refusal.into()),
        other => {
            return Err(Problem::internal(&format!(
                "a question was answered {other:?}"
            )));
        }
    };
    let wanted = execution.clone();
    let at_hand = held.as_ref().map(|held| held.row.clone());
    let (stored, seen) = app
        .blocking(move |stores| -> muster_store::StoreResult<_> {
            let (_, stored) = stores.decisions.execution(&wanted)?;
            let row = at_hand.as_deref().or(stored.as_ref());
            let seen = match row {
                Some(row) => Seen::read(stores, row)?,
                None => Seen::default(),
            };
            Ok((stored, seen))
        })
        .await?;
    if let Some(held) = held {
        let mut why = begin(app, &held.row, &seen)?;
        open(&mut why, *held);
        return Ok(Some(why));
    }
    let Some(row) = stored.filter(|row| caller.sees(&row.principal)) else {
        return Ok(None);
    };
    let mut why = begin(app, &row, &seen)?;
    past(&mut why, &row);
    Ok(Some(why))
}

/// What the store has beside the row.
#[derive(Default)]
struct Seen {
    life: Life,
    root: Option<ExecutionRow>,
    sizes: Sizes,
}

impl Seen {
    fn read(stores: &Stores, row: &ExecutionRow) -> muster_store::StoreResult<Self> {
        let store = &stores.decisions;
        let life = store.lives(std::slice::from_ref(&row.id))?.pop();
        let root = match row.root == row.id {
            true => None,
            false => store.execution(&row.root)?.1,
        };
        Ok(Self {
            life: life.unwrap_or_default(),
            root,
            sizes: Sizes::read(stores, row)?,
        })
    }
}

/// What is the same for an open one and one that ended.
fn begin(app: &App, row: &ExecutionRow, seen: &Seen) -> Result<Why, Problem> {
    let mut item: ExecutionItem = serde_json::from_slice(&show::line(Vec::new(), row))
        .map_err(|error| Problem::internal(&error))?;
    item.error_details_size = seen.sizes.details;
    item.late_size = seen.sizes.late;
    let (attempts, events) = (&seen.life.attempts, &seen.life.events);
    let shown = events.len().saturating_sub(FACTS_MAX);
    let mut told: Vec<WhyFact> = Vec::new();
    if shown > 0 {
        let text = format!("{shown} earlier events are left out");
        told.push(facts::now("plane", text));
    }
    let ended = match row.status {
        Status::Cancelled => Some(sentence::cancelled(row)),
        Status::Failed | Status::Timeout => sentence::said(row),
        _ => None,
    };
    let tell = |event| facts::of_one(event, ended.as_deref());
    told.extend(events[shown..].iter().map(tell));
    let root = match row.root == row.id {
        true => Some(row),
        false => seen.root.as_ref(),
    };
    let since = segments::since(row, &seen.life);
    if told.is_empty() {
        told.push(facts::at(row.created_at, "plane", "it was accepted"));
        told.push(facts::unknown(
            "plane",
            "what happened to it since",
            "its events were removed by retention.events",
        ));
    }
    let sent_to = attempts
        .last()
        .filter(|attempt| attempt.accepted_at.is_none() && attempt.ended_at.is_none());
    if let Some(attempt) = sent_to.filter(|_| row.status == Status::Running) {
        told.push(facts::unknown(
            "agent",
            format!("whether instance {} has taken it", attempt.instance),
            "no answer yet",
        ));
    }
    Ok(Why {
        id: row.id.to_string(),
        kind: WhyKind::Execution.into(),
        as_of: app.clock.now().into(),
        state: row.status.word().to_owned(),
        status: Some(row.status.for_sdk().to_owned()),
        status_reason: row.status_reason.as_deref().map(str::to_owned),
        since: since.map(Into::into),
        since_unknown: since
            .is_none()
            .then(|| "its events were removed by retention.events".to_owned()),
        name: format!("{}.{}", row.agent, row.function),
        run_id: Some(row.run.to_string()),
        run_name: root.map(|root| format!("{}.{}", root.agent, root.function)),
        verdict: String::new(),
        rule: rule("moving", ""),
        facts: told,
        next: Vec::new(),
        changes: Vec::new(),
        ruled_out: Vec::new(),
        execution: Some(Box::new(item)),
        attempts: Some(attempts.iter().map(attempt).collect()),
    })
}

/// What the engine knows of an open one.
fn open(why: &mut Why, held: Held) {
    why.verdict = held.verdict;
    why.rule = rule(held.rule_id, held.rule);
    why.next = held
        .next
        .into_iter()
        .map(|(at, text)| WhyNext {
            at: Some(at.into()),
            text,
        })
        .collect();
    why.changes = held
        .changes
        .into_iter()
        .map(|(text, command)| change(text, command))
        .collect();
    why.ruled_out = held
        .ruled_out
        .into_iter()
        .map(|text| WhyNot { text })
        .collect();
}

/// What the row tells of one that ended, or that the engine does not hold.
fn past(why: &mut Why, row: &ExecutionRow) {
    why.verdict = verdict(row);
    let (id, text) = if row.status == Status::Queued {
        (
            "queue",
            "it starts when a slot of its agent is free and its turn has come",
        )
    } else if row.status.is_terminal() {
        (
            "final",
            "the first end that is committed stands and never changes",
        )
    } else {
        ("moving", "it ends by its agent's word or a clock")
    };
    why.rule = rule(id, text);
    if !row.status.is_terminal() {
        why.changes = vec![change("cancel it", format!("muster cancel {}", row.id))];
    } else if row.status != Status::Succeeded && row.kind == ExecutionKind::Dispatched {
        why.changes = vec![change("run it again", format!("muster restart {}", row.id))];
    }
}

fn verdict(row: &ExecutionRow) -> String {
    let target = format!("{}.{}", row.agent, row.function);
    let took = show::duration_ms(row)
        .map_or_else(String::new, |ms| format!(" after {}", plain::duration(ms)));
    let category = row
        .error_category
        .as_ref()
        .map_or("no category", |c| c.word());
    match row.status {
        Status::Succeeded => format!("{target} ended well{took}"),
        Status::Failed => format!("{target} failed{took}: {category}"),
        Status::Cancelled => {
            let said = sentence::cancelled(row);
            let more = said.strip_prefix("cancelled").unwrap_or_default();
            let mark = if more.starts_with(' ') { "," } else { "" };
            format!("{target} was cancelled{took}{mark}{more}")
        }
        Status::Timeout => format!("{target} ran out of time{took}: {category}"),
        Status::Queued => format!("{target} waits in the queue of {}", row.agent),
        Status::Running | Status::Waiting | Status::Paused => {
            format!("{target} is {}", row.status)
        }
    }
}

fn attempt(row: &AttemptRow) -> Attempt {
    Attempt {
        n: row.n,
        instance_id: row.instance.clone(),
        sent_at: row.sent_at.into(),
        accepted_at: row.accepted_at.map(Into::into),
        ended_at: row.ended_at.map(Into::into),
        outcome: row.outcome.map(Into::into),
        evidence: None,
        evidence_hidden: None,
    }
}
