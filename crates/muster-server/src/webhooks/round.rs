//! One round of one target: claims some of its messages, sends a few at once, and writes what
//! became of them. A target that fails ends the round; what was not sent goes back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::effect::ExecutionView;
use muster_engine::row::PayloadKind;
use muster_store::outbox::{Claim, Delivery, Settled};
use muster_store::{StoreResult, Stores};
use muster_wire::Status;
use tokio::task::JoinSet;

use super::send::{Refused, Sender, Sent};
use super::{Webhook, backoff, message};
use crate::app::App;
use crate::meters::Told;

/// Messages to one target that are on their way at once.
pub(super) const IN_FLIGHT_MAX: usize = 4;
/// Messages of one round.
const CLAIMED_MAX: usize = 32;
/// Ends that are written together.
const SETTLED_TOGETHER: usize = 8;
/// How long claimed messages are ours: longer than their round can take.
const CLAIM: Duration = Duration::from_secs(600);
/// A message that was tried less often is not given up, however old it is.
const TRIES_MIN: u32 = 5;

/// What a round found.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) target: Arc<str>,
    /// Whether the target fails, and how long it asks to wait.
    pub(super) fails: Option<Option<Duration>>,
    /// Whether it took something or answered at all.
    pub(super) answered: bool,
    /// Messages that were sent.
    pub(super) sent: usize,
    /// What the store said, when it could not be asked.
    pub(super) store: Option<String>,
}

/// A message with its receiver, or why there is none.
struct Ready {
    delivery: Delivery,
    webhook: Result<Webhook, String>,
    view: Option<ExecutionView>,
}

/// Runs a round. `failures`: of the target, in a row; one that fails is asked with one message.
pub(super) async fn run(app: App, sender: Sender, target: Arc<str>, failures: u32) -> Round {
    let mut round = Round {
        target,
        fails: None,
        answered: false,
        sent: 0,
        store: None,
    };
    if let Err(error) = deliver(&app, &sender, failures, &mut round).await {
        round.store = Some(error);
    }
    round
}

async fn deliver(
    app: &App,
    sender: &Sender,
    failures: u32,
    round: &mut Round,
) -> Result<(), String> {
    let now = app.clock.now();
    let claim = Claim {
        token: muster_wire::mint("claim"),
        until: now + CLAIM,
    };
    let limit = if failures > 0 { 1 } else { CLAIMED_MAX };
    let mut waiting = claimed(app, &round.target, &claim, limit).await?;
    let mut flying: JoinSet<(Delivery, Sent)> = JoinSet::new();
    let mut settled: Vec<(u64, Settled)> = Vec::new();
    loop {
        while round.fails.is_none() && !app.stop.is_cancelled() && flying.len() < IN_FLIGHT_MAX {
            let Some(ready) = waiting.pop_front() else {
                break;
            };
            flying.spawn(one(app.clone(), sender.clone(), ready));
        }
        if flying.is_empty() {
            break;
        }
        let (delivery, sent) = tokio::select! {
            // What is on its way when the plane stops is sent again by the next one.
            () = app.stop.cancelled() => break,
            ended = flying.join_next() => match ended {
                Some(Ok(ended)) => ended,
                Some(Err(error)) => return Err(format!("a message could not be made: {error}")),
                None => break,
            },
        };
        round.sent += 1;
        settled.push((delivery.seq, end(app, &delivery, sent, round)));
        if settled.len() >= SETTLED_TOGETHER {
            settle(app, &claim, std::mem::take(&mut settled)).await?;
        }
    }
    let later = app.clock.now() + backoff::wait(&app.config.webhooks, failures + 1);
    settled.extend(waiting.into_iter().map(|ready| {
        let postponed = Settled::Postponed { next_at: later };
        (ready.delivery.seq, postponed)
    }));
    settle(app, &claim, settled).await
}

async fn one(app: App, sender: Sender, ready: Ready) -> (Delivery, Sent) {
    let sent = match &ready.webhook {
        Ok(webhook) => {
            let id = message::id(&app, ready.delivery.seq);
            let body = message::body(&id, &ready.delivery, ready.view.as_ref());
            let headers = message::headers(webhook, &id, app.clock.now(), &body);
            sender.send(webhook, headers, body).await
        }
        Err(why) => Sent::Refused(Refused {
            status: None,
            error: why.clone(),
            gone: false,
            of_target: false,
            retry_after: None,
        }),
    };
    (ready.delivery, sent)
}

/// What is written of a message, and what it says about its target.
fn end(app: &App, delivery: &Delivery, sent: Sent, round: &mut Round) -> Settled {
    let rules = &app.config.webhooks;
    let at = app.clock.now();
    let refused = match sent {
        Sent::Taken(status) => {
            round.answered = true;
            app.meters.told(Told::Delivered);
            return Settled::Delivered { at, status };
        }
        Sent::Refused(refused) => refused,
    };
    round.answered |= !refused.of_target;
    if refused.of_target {
        round.fails = Some(refused.retry_after);
    }
    let tries = delivery.tries + 1;
    let old = at.since(delivery.since) >= rules.give_up.0 && tries >= TRIES_MIN;
    if refused.gone || old {
        app.meters.told(Told::Dead);
        tracing::warn!(
            execution.id = %delivery.execution, receiver = %round.target, tries,
            error = %refused.error, "a message for a webhook is given up"
        );
        return Settled::Dead {
            at,
            error: refused.error,
            status: refused.status,
        };
    }
    app.meters.told(Told::Failed);
    let wait = backoff::wait(rules, tries);
    Settled::Failed {
        at,
        next_at: at + refused.retry_after.unwrap_or(wait).max(wait),
        error: refused.error,
        status: refused.status,
    }
}

async fn settle(app: &App, claim: &Claim, settled: Vec<(u64, Settled)>) -> Result<(), String> {
    if settled.is_empty() {
        return Ok(());
    }
    let token = claim.token.clone();
    app.blocking(move |stores| stores.decisions.settle_deliveries(&token, &settled))
        .await
        .map_err(|error| error.to_string())
}

async fn claimed(
    app: &App,
    target: &Arc<str>,
    claim: &Claim,
    limit: usize,
) -> Result<VecDeque<Ready>, String> {
    let ready = super::ready(app).await;
    let (now, target, claim) = (app.clock.now(), target.clone(), claim.clone());
    let work = move |stores: &Stores| -> StoreResult<VecDeque<Ready>> {
        let claimed = stores
            .decisions
            .claim_deliveries(&target, now, &claim, limit)?;
        claimed
            .into_iter()
            .map(|delivery| {
                let webhook = match &ready {
                    Ok(ready) => {
                        Webhook::open(ready.sealer(), &delivery.webhook, &delivery.execution)
                            .map_err(|error| error.to_string())
                    }
                    Err(error) => Err(error.to_string()),
                };
                Ok(Ready {
                    webhook,
                    view: view(stores, &delivery)?,
                    delivery,
                })
            })
            .collect()
    };
    app.blocking(work).await.map_err(|error| error.to_string())
}

/// The execution as the message tells of it; `None` when it is gone.
fn view(stores: &Stores, delivery: &Delivery) -> StoreResult<Option<ExecutionView>> {
    let (_, row) = stores.decisions.execution(&delivery.execution)?;
    let Some(row) = row else {
        return Ok(None);
    };
    let small = row
        .result_size
        .is_some_and(|size| size <= message::INLINE_MAX as u64);
    let read = |kind| stores.decisions.payload(&row.id, kind);
    let result = if small {
        read(PayloadKind::Result)?
    } else {
        None
    };
    let details = match row.status {
        Status::Failed => read(PayloadKind::ErrorDetails)?,
        _ => None,
    };
    Ok(Some(ExecutionView {
        row: Arc::new(row),
        result,
        details,
    }))
}
