//! The one way of a call into the engine, whatever its lane: its input is checked, a large one
//! is stored first and taken back when the call is refused, and the engine is told. Admission
//! itself is the engine's.

use muster_engine::event::{Submission, Waiter};
use muster_engine::row::PayloadKind;
use muster_engine::{Event, Refusal, Reply};
use muster_wire::{Category, ExecutionId, Lane};

use super::call::{Call, known_endpoint};
use super::problem::Problem;
use crate::app::{App, LifePhase};
use crate::bodies::{Held, SMALL};
use crate::{inputs, payloads};

/// A commit that waited for so long on a full disk waits for room.
const COMMIT_WAITS: std::time::Duration = std::time::Duration::from_secs(2);

/// What a call's rows and events take on the disk, roughly.
const ROW_BYTES: usize = 4096;
/// How often an input is written: to the log of the store, and to its file.
const WRITTEN_TIMES: usize = 2;

/// Checks the input, stores a large one first, tells the engine, waits for its word: the end on
/// the sync lane, the receipt on all others. `held` is the body that the input is a part of.
///
/// # Errors
/// When the request is at fault and nothing was stored, or when the plane cannot answer.
pub(crate) async fn submit(app: &App, call: Call, held: Held) -> Result<Reply, Problem> {
    let mut submission = call.submission;
    submission.llm_endpoint = known_endpoint(app, submission.llm_endpoint.take());
    let entry = app.directory.agent(submission.agent.as_str());
    let function = entry
        .as_ref()
        .and_then(|agent| agent.function(&submission.function));
    if let Some(function) = &function {
        submission.input_fault =
            inputs::fault(app, &submission.agent, function, &submission.input.0).await;
    }
    if stands_full(app) {
        return Err(refused(app, &submission, Refusal::StoreFull));
    }
    if app
        .growth
        .spend(ROW_BYTES + WRITTEN_TIMES * submission.input.len())
        && app.growth.set_full(true)
    {
        tracing::warn!("the room on the disk that the last look saw is used up");
        app.driver.tell(Event::StoreRoom { full: true });
    }
    if submission.input.len() <= SMALL {
        // The input was copied out: the body and its room are given back before the wait.
        drop(held);
        return tell(app, submission).await;
    }
    would_refuse(app, &submission, function.is_some())?;
    // A large input's steps must all happen, or none: they do not hang on the connection.
    let work = app.clone();
    let task = app
        .tasks
        .spawn(async move { submit_large(&work, submission, held).await });
    task.await.map_err(|error| Problem::internal(&error))?
}

async fn tell(app: &App, mut submission: Submission) -> Result<Reply, Problem> {
    let execution = submission.execution.clone();
    let (lane, received) = (submission.lane, submission.received_at);
    if let (None, Some(parent)) = (&submission.traceparent, &submission.parent) {
        submission.traceparent = app.telemetry.under(app, &parent.execution);
    }
    let make = |waiter: Waiter| {
        submission.waiter = waiter;
        Event::Submitted(Box::new(submission))
    };
    let reply = if lane == Lane::Sync {
        app.driver.ask_with_place(&execution, make).await
    } else {
        app.driver.ask(make).await
    };
    app.telemetry.admitted(app, &execution, received);
    Ok(reply?)
}

/// The disk is so full that not even what was decided can be written: the engine decides
/// nothing until there is room, so nobody would be answered.
fn stands_full(app: &App) -> bool {
    let waits = || {
        let since = app.driver.vitals().committing_since;
        since.is_some_and(|since| app.clock.now().since(since) > COMMIT_WAITS)
    };
    app.growth.is_full() && waits()
}

async fn submit_large(app: &App, mut submission: Submission, held: Held) -> Result<Reply, Problem> {
    let input = std::mem::take(&mut submission.input);
    let id = submission.execution.clone();
    let size = input.len() as u64;
    payloads::store(&app.stores, &id, PayloadKind::Input, input.0).await?;
    drop(held);
    submission.input_stored = Some(size);
    let reply = tell(app, submission).await;
    if !took(&reply, &id) {
        payloads::drop_stored(&app.stores, &id, PayloadKind::Input).await;
    }
    reply
}

/// Whether an execution of this id exists after this reply.
fn took(reply: &Result<Reply, Problem>, id: &ExecutionId) -> bool {
    match reply {
        Ok(Reply::Accepted(receipt)) => receipt.execution == *id,
        Ok(Reply::Ended(view)) => view.row.id == *id,
        Ok(Reply::StillRunning { execution, .. }) => execution == id,
        Ok(Reply::Refused(_)) => false,
        // Nobody knows: what is left over is collected.
        Ok(_) | Err(_) => true,
    }
}

/// A cheap look at whether admission would refuse, so that nothing large is stored for that.
fn would_refuse(app: &App, submission: &Submission, function_known: bool) -> Result<(), Problem> {
    let refusal = if let Some(fault) = &submission.input_fault {
        Some(Refusal::Input {
            field: fault.field.clone(),
            message: fault.message.clone(),
        })
    } else if submission.replay.is_some() {
        // It may be answered from its source run, whatever its agent or the plane do.
        None
    } else if app.phase.get() >= LifePhase::Draining {
        Some(Refusal::Draining)
    } else {
        match app.directory.agent(submission.agent.as_str()) {
            None => Some(Refusal::NoAgent {
                agent: submission.agent.clone(),
            }),
            Some(agent) if !function_known => Some(Refusal::NoFunction {
                agent: submission.agent.clone(),
                function: submission.function.clone(),
                has: agent.functions().iter().map(|f| f.name.clone()).collect(),
            }),
            Some(agent) if !agent.unapproved().is_empty() => Some(Refusal::PendingApproval {
                agent: submission.agent.clone(),
                tags: agent.unapproved().to_vec(),
            }),
            Some(agent) => {
                agent
                    .down(app.clock.now(), &app.limits)
                    .map(|evidence| Refusal::AgentDown {
                        agent: submission.agent.clone(),
                        evidence,
                    })
            }
        }
    };
    match refusal {
        None => Ok(()),
        Some(refusal) => Err(refused(app, submission, refusal)),
    }
}

/// A refusal of the shell's own is counted as one of the engine's.
fn refused(app: &App, submission: &Submission, refusal: Refusal) -> Problem {
    let category: Category = refusal.category();
    app.meters.count(&muster_engine::effect::Count::Refused {
        lane: submission.lane,
        agent: submission.agent.clone(),
        category,
    });
    refusal.into()
}
