//! What must hold when everybody has had time to come to an end.

use std::time::Duration;

use muster_engine::Event;
use muster_wire::{Decision, ExecutionId, Status};

use super::{AGENTS, Play};

impl Play {
    /// Faults stop: agents are there and answer. Everything must end.
    pub(super) fn heal(&mut self) {
        for agent in [None, Some("a"), Some("b"), Some("c")] {
            let waiter = self.world.waiter();
            self.world.step(Event::Held {
                agent: agent.map(muster_wire::AgentId::trusted),
                reason: None,
                by: "ada".into(),
                waiter,
            });
        }
        for (n, agent) in AGENTS.iter().enumerate() {
            self.world
                .register(agent, "healthy", &format!("http://healthy:{n}"));
        }
        self.world.checked = false;
        for _ in 0..400 {
            while let Some(tell) = self.world.told_approvals.pop() {
                let (id, request) = (tell.approval.execution, tell.approval.request);
                self.world.tell_told(&id, &request, true);
            }
            let open: Vec<ExecutionId> = self
                .world
                .rows
                .executions
                .values()
                .filter(|row| !row.status.is_terminal())
                .map(|row| row.id.clone())
                .collect();
            if open.is_empty() {
                return;
            }
            for agent in AGENTS {
                self.world.beat(agent, "healthy");
                while self.world.dialled(agent, true) {}
            }
            for id in &open {
                match self.world.status(id) {
                    Status::Paused => drop(self.world.pause(id, false)),
                    Status::Waiting => {
                        self.world.decide(Some(id), None, Decision::Approved);
                    }
                    _ => {}
                }
            }
            for id in open {
                if self.world.sent(&id) > 0 && !self.world.status(&id).is_terminal() {
                    self.world.answer(&id, Status::Succeeded);
                }
            }
            self.world.checked = true;
            self.world.pass(Duration::from_secs(1));
            self.world.checked = false;
        }
        let open: Vec<_> = self
            .world
            .rows
            .executions
            .values()
            .filter(|row| !row.status.is_terminal())
            .collect();
        panic!("still open: {open:#?}");
    }

    pub(super) fn check_the_end(&self) {
        let world = &self.world;
        // What was taken over was never sent, and names one that really ran and succeeded.
        for row in world.rows.executions.values() {
            let Some(source) = row.replayed_from() else {
                continue;
            };
            assert_eq!(world.sent(&row.id), 0, "{} was taken over and sent", row.id);
            let source = world.row(&ExecutionId::trusted(source));
            assert_eq!(source.status, Status::Succeeded);
            assert_eq!(source.replayed_from(), None);
            assert_eq!(source.input_hash, row.input_hash);
        }
        // No execution of a source is the twin of two calls of one parent.
        let mut twins = std::collections::HashSet::new();
        for row in world.rows.executions.values() {
            let links = row.links.as_deref();
            if let (Some(twin), Some(parent)) = (links.and_then(|l| l.replay_of.as_ref()), &row.parent)
                // A second attempt makes its calls from the first on.
                && world.rows.executions.get(parent).is_none_or(|row| row.attempt <= 1)
            {
                assert!(
                    twins.insert((twin, parent)),
                    "{twin} is the twin of two calls of {parent}"
                );
            }
        }
        for approval in world.rows.approvals.values() {
            let id = &approval.execution;
            assert!(approval.decided_at.is_some(), "{id} has a pending approval");
            let told = approval.told.is_some() || approval.decision.is_none();
            assert!(told, "{id}: nobody was told of a decision");
        }
        for row in world.rows.executions.values() {
            let ends = world
                .rows
                .events
                .iter()
                .filter(|e| e.execution.as_ref() == Some(&row.id))
                .filter(|e| {
                    use muster_engine::row::EventKind::*;
                    matches!(
                        e.kind,
                        ExecutionSucceeded
                            | ExecutionFailed
                            | ExecutionCancelled
                            | ExecutionTimedOut
                    )
                })
                .count();
            assert_eq!(ends, 1, "{} ended {ends} times", row.id);
            // Whatever ended it: who asked to be told has one message, and nobody else has.
            let told = world.rows.outbox.iter().filter(|m| m.execution == row.id);
            let asked = row.links.as_ref().is_some_and(|l| l.webhook.is_some());
            let statuses: Vec<Status> = told.map(|message| message.status).collect();
            assert_eq!(statuses, vec![row.status; usize::from(asked)], "{}", row.id);
        }
        for (waiter, sync) in &self.held {
            let replies = world.replies.get(waiter).map_or(0, Vec::len);
            assert_eq!(
                replies, 1,
                "{waiter:?} (sync: {sync}) was answered {replies} times"
            );
        }
        // At most once: what is not idempotent was sent again only after a dial that failed.
        for row in world
            .rows
            .executions
            .values()
            .filter(|row| row.function.as_str() != "i")
        {
            let attempts = world
                .rows
                .attempts
                .range((row.id.clone(), 0)..=(row.id.clone(), u32::MAX));
            let reached = attempts
                .filter(|(_, a)| a.outcome != Some(muster_engine::row::AttemptOutcome::DialFailed))
                .count();
            assert!(reached <= 1, "{} reached an agent {reached} times", row.id);
        }
    }
}
