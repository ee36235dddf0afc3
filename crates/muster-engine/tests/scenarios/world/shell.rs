//! The shell of a world: carries out effects, and reads the store for the engine.

use std::time::Duration;

use muster_engine::effect::{Effects, Load};
use muster_engine::event::*;
use muster_engine::fleet::FleetEvent;
use muster_engine::row::*;
use muster_engine::{Event, Notice, Send, replay};
use muster_wire::*;

use super::World;

impl World {
    pub(super) fn carry_out(&mut self, effects: Effects) {
        for write in effects.writes {
            self.rows.apply(write);
        }
        if self.checked
            && let Err(broken) = self.engine.check()
        {
            panic!("invariant broken: {broken}");
        }
        for send in effects.sends {
            match &send {
                Send::Dispatch(dispatch) => self.dispatched.push((**dispatch).clone()),
                Send::TellCancel(tell) => self.told.push((**tell).clone()),
                Send::TellApproval(tell) => self.told_approvals.push((**tell).clone()),
                Send::CheckLlm { endpoint } => self.llm_checks.push(endpoint.clone()),
                Send::TakeBack(attempt) => self.wanted_back.push(attempt.clone()),
                Send::Fleet(_)
                | Send::Dial { .. }
                | Send::Probe { .. }
                | Send::Seek { .. }
                | Send::CloseIdle(_) => {}
            }
            self.sends.push(send);
        }
        for notice in effects.notices {
            if let Notice::Fleet(notice) = notice {
                self.fleet_notices.push(*notice);
            }
        }
        for (waiter, reply) in effects.replies {
            self.replies.entry(waiter).or_default().push(reply);
        }
        self.loads.extend(effects.loads);
        if self.answer_loads {
            self.answer_loads();
        }
    }

    /// Answers what was asked from the rows.
    pub(crate) fn answer_loads(&mut self) {
        while let Some(load) = self.loads.pop() {
            let as_of = self.rows.events.len() as u64;
            let event = match load {
                Load::Submission(mut s) => {
                    let mut known = Known {
                        as_of: Some(as_of),
                        key: s
                            .idempotency_key
                            .as_ref()
                            .and_then(|key| self.rows.keys.get(key))
                            .map(|key| {
                                (
                                    key.execution.clone(),
                                    key.body_hash,
                                    self.rows
                                        .executions
                                        .get(&key.execution)
                                        .cloned()
                                        .map(Box::new),
                                )
                            }),
                        run: self.rows.run(&s.run),
                        parent: s
                            .parent
                            .as_ref()
                            .and_then(|p| self.rows.executions.get(&p.execution))
                            .cloned()
                            .map(Box::new),
                        turn: self
                            .rows
                            .executions
                            .values()
                            .filter(|row| {
                                row.run == s.run
                                    && row.agent == s.agent
                                    && row.status == Status::Queued
                            })
                            .map(|row| row.queue.turn)
                            .max(),
                        ..Known::default()
                    };
                    let rows = self.rows.in_order();
                    let has_result = |id: &ExecutionId| {
                        let key = (id.clone(), PayloadKind::Result);
                        self.rows.payloads.contains_key(&key)
                    };
                    replay::look_up(rows.iter().copied(), &s, has_result, &mut known);
                    s.known = known;
                    Event::Submitted(s)
                }
                Load::Fleet(mut event) => {
                    if let FleetEvent::ReleaseAsked { worker, known, .. } = &mut *event {
                        let row = self.rows.workers.get(worker).cloned();
                        *known = Some(row.map(Box::new));
                    }
                    Event::Fleet(event)
                }
                Load::Callback(mut c) => {
                    let row = self
                        .rows
                        .executions
                        .get(&c.from.execution)
                        .cloned()
                        .map(Box::new);
                    c.known = Some((as_of, row));
                    Event::CalledBack(c)
                }
                Load::Cancel(mut c) => {
                    c.known = Some((
                        as_of,
                        self.rows
                            .executions
                            .get(&c.execution)
                            .cloned()
                            .map(Box::new),
                    ));
                    Event::CancelRequested(c)
                }
                Load::Pause(mut p) => {
                    let row = self.rows.executions.get(&p.execution).cloned();
                    p.known = Some((as_of, row.map(Box::new)));
                    Event::PauseRequested(p)
                }
                Load::TreePause(mut t) => {
                    t.known = Some(self.known_tree(&t.run));
                    Event::TreePauseRequested(t)
                }
                Load::ApprovalAsk(mut a) => {
                    let row = self.rows.executions.get(&a.from.execution).cloned();
                    a.known = Some((as_of, row.map(Box::new)));
                    let name = (a.from.execution.clone(), a.request.clone());
                    a.earlier = self.rows.approvals.get(&name).cloned().map(Box::new);
                    Event::ApprovalAsked(a)
                }
                Load::Awaiter(mut a) => {
                    let row = self.rows.executions.get(&a.from.execution).cloned();
                    a.known = Some((as_of, row.map(Box::new)));
                    Event::AwaiterReported(a)
                }
                Load::Verdict(mut v) => {
                    let found = self
                        .rows
                        .approvals
                        .values()
                        .filter(|row| v.execution.as_ref().is_none_or(|id| row.execution == *id))
                        .filter(|row| v.request.as_ref().is_none_or(|r| row.request == *r))
                        .cloned()
                        .collect();
                    v.known = Some((as_of, found));
                    Event::ApprovalDecided(v)
                }
                Load::Tree(mut t) => {
                    t.known = Some(self.known_tree(&t.run));
                    Event::TreeCancelRequested(t)
                }
                Load::Bereaved { limit } => {
                    let ended = |id: &ExecutionId| {
                        let parent = self.rows.executions.get(id);
                        parent.is_some_and(|parent| parent.status.is_terminal())
                    };
                    let all: Vec<_> = self
                        .rows
                        .executions
                        .values()
                        .filter(|row| row.status == Status::Queued)
                        .filter(|row| row.on_parent_end == ParentEnd::Cancel)
                        .filter(|row| row.parent.as_ref().is_some_and(ended))
                        .cloned()
                        .collect();
                    Event::BereavedLoaded {
                        more: all.len() > limit,
                        rows: all.into_iter().take(limit).collect(),
                        as_of,
                    }
                }
                Load::Window {
                    agent,
                    after,
                    limit,
                } => {
                    let mut rows: Vec<_> = self
                        .rows
                        .executions
                        .values()
                        .filter(|row| row.agent == agent && row.status == Status::Queued)
                        .filter(|row| after.is_none_or(|after| row.queue > after))
                        .cloned()
                        .collect();
                    rows.sort_by_key(|row| row.queue);
                    let exhausted = rows.len() <= limit;
                    rows.truncate(limit);
                    let rows = rows.into_iter().map(|row| QueuedRow { row }).collect();
                    Event::WindowLoaded {
                        agent,
                        rows,
                        exhausted,
                        as_of,
                    }
                }
            };
            self.step(event);
        }
    }

    /// A run and what of it is queued, as a wish about the whole of it needs them.
    fn known_tree(&self, run: &RunId) -> KnownTree {
        let queued = self
            .rows
            .executions
            .values()
            .filter(|row| row.run == *run && row.status == Status::Queued)
            .cloned()
            .collect();
        KnownTree {
            as_of: self.rows.events.len() as u64,
            run: self.rows.run(run),
            queued,
        }
    }

    /// Moves the clock, stopping at every deadline on the way; receipts of beats are handed in
    /// as the driver does.
    pub(crate) fn pass(&mut self, wait: Duration) {
        let until = self.now + wait;
        while let Some(at) = self.engine.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.tick();
        }
        self.now = until;
        self.tick();
    }

    pub(crate) fn tick(&mut self) {
        let mut due = Vec::new();
        self.engine.due_beats(self.now, &mut due);
        for key in due {
            if let Some(at) = self.beats.get(&key).copied() {
                self.step(Event::Heard {
                    key,
                    at,
                    interval: Some(Duration::from_secs(2)),
                });
            }
        }
        self.step(Event::Tick);
    }
}
