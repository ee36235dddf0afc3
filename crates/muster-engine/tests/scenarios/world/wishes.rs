//! What callers and people ask for: cancels, pauses, approvals, awaiters.

use std::time::Duration;

use muster_engine::Event;
use muster_engine::effect::Reply;
use muster_engine::event::*;
use muster_wire::*;

use super::World;

impl World {
    pub(crate) fn cancel(&mut self, id: &ExecutionId) -> Reply {
        let waiter = self.waiter();
        self.step(Event::CancelRequested(Box::new(Cancel {
            waiter,
            execution: id.clone(),
            by: "ci".into(),
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn cancel_tree(&mut self, run: &RunId) -> Reply {
        let waiter = self.waiter();
        self.step(Event::TreeCancelRequested(Box::new(TreeCancel {
            waiter,
            run: run.clone(),
            by: "ci".into(),
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn pause(&mut self, id: &ExecutionId, on: bool) -> Reply {
        let waiter = self.waiter();
        self.step(Event::PauseRequested(Box::new(Pause {
            waiter,
            execution: id.clone(),
            on,
            by: "ci".into(),
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn pause_tree(&mut self, run: &RunId, on: bool) -> Reply {
        let waiter = self.waiter();
        self.step(Event::TreePauseRequested(Box::new(TreePause {
            waiter,
            run: run.clone(),
            on,
            by: "ci".into(),
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn wish(&mut self, id: &ExecutionId, request: &str) -> ApprovalAsk {
        ApprovalAsk {
            waiter: self.waiter(),
            from: self.proof(id),
            agent: self.row(id).agent.clone(),
            key_agent: None,
            request: request.into(),
            request_url: None,
            callback_url: Some("http://h:1/webhooks/approval".into()),
            expires_in: Duration::from_secs(3600),
            known: None,
            earlier: None,
        }
    }

    pub(crate) fn ask_approval(&mut self, ask: ApprovalAsk) -> Reply {
        let waiter = ask.waiter;
        self.step(Event::ApprovalAsked(Box::new(ask)));
        self.reply(waiter)
    }

    /// An agent asks for a person's decision, and is to be told of it.
    pub(crate) fn ask_for(&mut self, id: &ExecutionId, request: &str) -> Reply {
        let ask = self.wish(id, request);
        self.ask_approval(ask)
    }

    pub(crate) fn decide(
        &mut self,
        execution: Option<&ExecutionId>,
        request: Option<&str>,
        decision: Decision,
    ) -> Reply {
        let waiter = self.waiter();
        self.step(Event::ApprovalDecided(Box::new(Verdict {
            waiter,
            execution: execution.cloned(),
            request: request.map(Into::into),
            decision,
            by: "ada".into(),
            feedback: None,
            response: None,
            known: None,
        })));
        self.reply(waiter)
    }

    pub(crate) fn tell_told(&mut self, id: &ExecutionId, request: &str, ok: bool) {
        self.step(Event::ApprovalTold {
            execution: id.clone(),
            request: request.into(),
            told: if ok {
                Ok("received".into())
            } else {
                Err("refused".into())
            },
        });
    }

    pub(crate) fn awaiter(&mut self, id: &ExecutionId, waiting: bool) -> Reply {
        let waiter = self.waiter();
        let from = self.proof(id);
        self.step(Event::AwaiterReported(Box::new(Awaiter {
            waiter,
            from,
            key_agent: None,
            waiting,
            reason: None,
            known: None,
        })));
        self.reply(waiter)
    }
}
