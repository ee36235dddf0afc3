//! The delivery: looks which targets have something due and runs a round for each, some at
//! once. Sleeps until the next moment anything is due, and is woken by commits. What it knows of
//! a target (whether it fails) is its own and is forgotten with the process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::event::Question;
use muster_engine::{Event, Reply};
use muster_wire::Timestamp;
use tokio::task::JoinSet;

use super::backoff;
use super::round::{self, Round};
use super::send::Sender;
use crate::app::App;

const DUTY: &str = "webhooks";
/// It looks at least so often, so that one that is stuck is seen.
const EVERY: Duration = Duration::from_secs(60);
/// Targets whose messages are sent at once.
const ROUNDS_MAX: usize = 32;
/// Targets of one read.
const PAGE: usize = 500;
/// Messages that are given up in one transaction.
const BURIED_MAX: usize = 500;

/// A target as far as it is not simply fine.
#[derive(Debug, Default)]
struct Target {
    busy: bool,
    /// Rounds in a row that failed.
    failures: u32,
    failing_since: Option<Timestamp>,
    /// Nothing is sent before.
    rests_until: Option<Timestamp>,
}

struct Delivery {
    app: App,
    sender: Sender,
    targets: HashMap<Arc<str>, Target>,
    rounds: JoinSet<Round>,
}

/// Starts it.
pub(crate) fn start(app: &App) {
    app.duties.register(DUTY, EVERY, app.clock.now());
    let sender = Sender::new(&app.config.webhooks, app.webhooks.rules.clone());
    let delivery = Delivery {
        app: app.clone(),
        sender,
        targets: HashMap::new(),
        rounds: JoinSet::new(),
    };
    app.tasks.spawn(delivery.run());
}

impl Delivery {
    async fn run(mut self) {
        let app = self.app.clone();
        let now = app.clock.now();
        // What the process before us had claimed is due again.
        let released = app
            .blocking(move |stores| stores.decisions.release_deliveries(now))
            .await;
        if let Err(error) = released {
            tracing::warn!(error = %error, "claimed messages for webhooks wait for the end of their claims");
        }
        loop {
            let looked = self.look().await;
            let next = match &looked {
                Ok(next) => *next,
                Err(error) => {
                    tracing::warn!(duty = DUTY, error = %error, "a duty failed; it will be tried again");
                    EVERY / 12
                }
            };
            let said = looked.map(|_| format!("{} targets in work", self.rounds.len()));
            app.duties.ran(DUTY, app.clock.now(), said);
            tokio::select! {
                biased;
                () = app.stop.cancelled() => break,
                Some(ended) = self.rounds.join_next() => {
                    self.ended(ended).await;
                    // Others that ended meanwhile are looked at together.
                    while let Some(ended) = self.rounds.try_join_next() {
                        self.ended(ended).await;
                    }
                }
                () = app.webhooks.wake.notified() => {}
                () = tokio::time::sleep(next) => {}
            }
        }
        // Each round sees the stop and writes what it has.
        while self.rounds.join_next().await.is_some() {}
    }

    /// Starts a round for each target that has something due; how long until the next look.
    async fn look(&mut self) -> Result<Duration, String> {
        if held(&self.app).await {
            return Ok(EVERY);
        }
        let mut next = EVERY;
        let mut after: Arc<str> = "".into();
        loop {
            let from = after.clone();
            let page = self
                .app
                .blocking(move |stores| stores.decisions.delivery_targets(&from, PAGE))
                .await
                .map_err(|error| error.to_string())?;
            let last = page.len() < PAGE;
            let now = self.app.clock.now();
            for (name, due) in page {
                after = name.clone();
                let target = self.targets.entry(name.clone()).or_default();
                if target.busy {
                    continue;
                }
                let due = target.rests_until.map_or(due, |rest| due.max(rest));
                if due > now {
                    next = next.min(due.since(now));
                    continue;
                }
                if self.rounds.len() >= ROUNDS_MAX {
                    // The end of any round looks again.
                    continue;
                }
                target.busy = true;
                let (app, sender) = (self.app.clone(), self.sender.clone());
                self.rounds
                    .spawn(round::run(app, sender, name, target.failures));
            }
            if last {
                break;
            }
        }
        self.targets
            .retain(|_, target| target.busy || target.failures > 0);
        Ok(next)
    }

    async fn ended(&mut self, ended: Result<Round, tokio::task::JoinError>) {
        let round = match ended {
            Ok(round) => round,
            Err(error) => {
                // Which it was is not known any more: none is busy that runs no round.
                tracing::error!(error = %error, "a round of webhooks ended by a panic");
                self.targets
                    .values_mut()
                    .for_each(|target| target.busy = false);
                return;
            }
        };
        let app = self.app.clone();
        let now = app.clock.now();
        let target = self.targets.entry(round.target.clone()).or_default();
        target.busy = false;
        if let Some(error) = &round.store {
            tracing::warn!(receiver = %round.target, error = %error, "messages for webhooks wait for the store");
            target.rests_until = Some(now + EVERY / 12);
            return;
        }
        let Some(asks) = round.fails else {
            if round.answered {
                *target = Target::default();
            }
            return;
        };
        target.failures = target.failures.saturating_add(1);
        let since = *target.failing_since.get_or_insert(now);
        let wait = backoff::wait(&app.config.webhooks, target.failures);
        target.rests_until = Some(now + asks.unwrap_or(wait).max(wait));
        let give_up = app.config.webhooks.give_up.0;
        if now.since(since) >= give_up {
            self.bury(&round.target, now, give_up).await;
        }
    }

    /// Gives up what a target did not take for so long, message by message.
    async fn bury(&self, target: &Arc<str>, now: Timestamp, give_up: Duration) {
        loop {
            let name = target.clone();
            let buried = self
                .app
                .blocking(move |stores| {
                    let error = "its receiver took no message for too long";
                    stores
                        .decisions
                        .bury_deliveries(&name, now - give_up, now, error, BURIED_MAX)
                })
                .await;
            match buried {
                Ok(0) => return,
                Ok(count) => {
                    tracing::warn!(receiver = %target, count, "messages for webhooks are given up");
                    self.app.meters.buried(count);
                }
                Err(error) => {
                    tracing::warn!(error = %error, "messages for webhooks could not be given up");
                    return;
                }
            }
        }
    }
}

/// Whether nothing may leave: a store that was copied may have sent its messages already.
async fn held(app: &App) -> bool {
    let asked = app.driver.ask(|waiter| Event::Asked {
        question: Question::HeldBack,
        waiter,
    });
    match asked.await {
        Ok(Reply::HeldBack { reason, .. }) => reason.is_some(),
        // Nobody decides here any more: nothing leaves.
        Ok(_) | Err(_) => true,
    }
}
