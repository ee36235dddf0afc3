//! Questions about the present state, and why an execution is where it is: the evidence in
//! order. Changes nothing.

use muster_wire::{AgentId, ExecutionId, Status, Timestamp, WaitCause, plain};

use crate::agent::{Agent, Gate};
use crate::effect::{AgentState, Reply, Why};
use crate::engine::Engine;
use crate::event::Question;
use crate::execution::{Execution, Phase};

/// How many calls that wait for one another a sentence names.
const CHAIN_MAX: usize = 8;

/// What something waits for, over all between.
struct Chain {
    text: String,
    /// When that expires.
    until: Option<Timestamp>,
}

fn name(execution: &Execution) -> String {
    format!("{}.{}", execution.row.agent, execution.row.function)
}

/// How much time is left, in words: exact below a minute, else without what is too small to
/// matter.
fn left(now: Timestamp, until: Timestamp) -> String {
    let seconds = until.since(now).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0 => "its time is up".to_owned(),
        1..60 => format!("{seconds} s left"),
        60..3_600 => format!("{minutes} m left"),
        3_600..86_400 => format!("{hours} h {} m left", minutes % 60),
        _ => format!("{days} d {} h left", hours % 24),
    }
}

fn why_paused(target: &str, execution: &Execution, why: &mut Why) {
    let (id, run) = (&execution.row.id, &execution.row.run);
    why.verdict = match execution.row.status_reason.as_deref() {
        Some(reason) => format!("{target} is {reason}"),
        None => format!("{target} is paused"),
    };
    why.rule_id = "paused";
    why.rule = match (&execution.phase, execution.row.resume_to) {
        (Phase::Shelved, _) => {
            "it was not sent yet and is in no queue; resumed, it is at its old place again".into()
        }
        (Phase::Absorbed { .. }, _) => {
            "it was not sent yet; resumed, it waits for its agent anew".into()
        }
        (_, Some(Status::Waiting)) => {
            "it waits besides, and will still wait when it is resumed".into()
        }
        _ => "its agent has it and may still end it; its clock stands, its slot is kept".into(),
    };
    if let Some(until) = execution.row.wait.as_ref().and_then(|wait| wait.until) {
        why.next
            .push((until, "what it waits for expires, paused or not".into()));
    }
    why.changes
        .push(("resume it".into(), format!("muster resume {id}")));
    why.changes.push((
        "resume its whole run".into(),
        format!("muster resume --tree {run}"),
    ));
}

impl Engine {
    pub(crate) fn ask(&self, now: Timestamp, question: Question) -> Reply {
        match question {
            Question::Agent(id) => Reply::Agent(
                self.agents
                    .get(&id)
                    .map(|agent| Box::new(self.agent_state(now, agent))),
            ),
            Question::Agents => Reply::Agents(
                self.agents
                    .values()
                    .map(|a| self.agent_state(now, a))
                    .collect(),
            ),
            Question::Why(id) => Reply::Why(self.why(now, &id).map(Box::new)),
            Question::Verdicts(ids) => Reply::Verdicts(
                ids.into_iter()
                    .filter_map(|id| Some((id.clone(), self.why(now, &id)?.verdict)))
                    .collect(),
            ),
            Question::Position(id, key) => Reply::Position(
                self.agents
                    .get(&id)
                    .map(|agent| agent.queue.position(&key, now)),
            ),
            Question::Circuits => Reply::Circuits(self.circuit_states()),
            Question::Fleet(question) => self.fleet_ask(now, &question),
            Question::HeldBack => Reply::HeldBack {
                reason: self.hold.clone(),
                by: self.hold_by.clone(),
                agents: self
                    .agents
                    .values()
                    .filter(|agent| agent.held)
                    .map(|agent| (agent.id.clone(), agent.held_by.clone()))
                    .collect(),
                queued: self
                    .agents
                    .values()
                    .filter(|agent| agent.held || (self.hold.is_some() && agent.queue.stored() > 0))
                    .map(|agent| (agent.id.clone(), agent.queue.stored()))
                    .collect(),
            },
        }
    }

    fn agent_state(&self, now: Timestamp, agent: &Agent) -> AgentState {
        let oldest = agent
            .queue
            .window()
            .filter_map(|(_, id)| self.executions.get(id))
            .map(|execution| execution.row.created_at)
            .min();
        let over_cap = agent
            .holders
            .iter()
            .filter_map(|id| self.executions.get(id));
        let over_cap = over_cap.filter(|execution| execution.row.over_cap).count();
        AgentState {
            id: agent.id.clone(),
            cap: self.cap(&agent.id),
            cap_set: agent.cap.is_some(),
            running: agent.running(),
            over_cap: u32::try_from(over_cap).unwrap_or(u32::MAX),
            queued: agent.queue.stored(),
            places: u32::try_from(agent.queue.places()).unwrap_or(u32::MAX),
            absorbed: u32::try_from(agent.absorbed.len()).unwrap_or(u32::MAX),
            oldest_queued_at: oldest,
            starts_per_minute: agent.queue.rate(now),
            starts_in_ms: self.starts_in(agent, agent.queue.starts_in_ms(agent.queue.len(), now)),
            held: agent.held || self.hold.is_some(),
            held_itself: agent.held,
            held_by: agent.held_by.clone(),
            hold: self.hold.clone(),
            hold_by: self.hold_by.clone(),
            can_start: agent.can_start(now, self.liveness(&agent.id)),
            absorbed_until: self.absorbed_until(agent),
            tags: agent.tags.clone(),
            instances: agent.instances.iter().map(|i| i.facts.clone()).collect(),
        }
    }

    /// An estimate made of the last starts; none while more run than may, or nothing may start:
    /// then the next start is no matter of the rate.
    fn starts_in(&self, agent: &Agent, estimated: Option<u64>) -> Option<u64> {
        let over = self.cap(&agent.id).is_some_and(|cap| agent.running() > cap);
        estimated.filter(|_| !over && !agent.held && self.hold.is_none())
    }

    /// When the first of those that wait for an agent to come back is given up.
    fn absorbed_until(&self, agent: &Agent) -> Option<Timestamp> {
        let waiting = agent.absorbed.iter();
        let until = waiting.filter_map(|(_, id)| match self.executions.get(id)?.phase {
            Phase::Absorbed { until } => Some(until),
            _ => None,
        });
        until.min()
    }

    fn why(&self, now: Timestamp, id: &ExecutionId) -> Option<Why> {
        let execution = self.executions.get(id)?;
        let row = execution.row.clone();
        let target = format!("{}.{}", row.agent, row.function);
        let cancel = ("cancel it".to_owned(), format!("muster cancel {id}"));
        let agent = self.agents.get(&row.agent);
        let mut why = Why {
            verdict: String::new(),
            rule_id: "moving",
            rule: String::new(),
            next: Vec::new(),
            changes: vec![cancel],
            ruled_out: Vec::new(),
            row,
        };
        match &execution.phase {
            _ if execution.row.status == Status::Paused => why_paused(&target, execution, &mut why),
            _ if execution.row.status == Status::Waiting => {
                self.why_waits(now, &target, execution, &mut why);
            }
            Phase::Shelved => {}
            Phase::Queued => self.why_queued(now, &target, execution, agent, &mut why),
            Phase::Absorbed { until } => {
                if self.hold.is_some() || agent.is_some_and(Agent::stopped) {
                    self.why_held(&target, execution, &mut why);
                } else {
                    why.verdict =
                        format!("{target} waits for {} to come back", execution.row.agent);
                    let grace = self
                        .restart_grace(&execution.row.agent)
                        .unwrap_or_default()
                        .as_secs();
                    why.rule_id = "absorbed";
                    why.rule = format!(
                        "a failed dial is absorbed, because no byte left and nothing can run twice (restart_grace {grace} s)"
                    );
                    why.next.push((*until, "failed agent_unreachable".into()));
                    why.changes.push((
                        "no waiting in future".into(),
                        "set agents.restart_grace = \"-1s\" in muster.toml".into(),
                    ));
                    self.dials(agent, &mut why);
                }
            }
            Phase::Sent(attempt) => {
                why.verdict = format!(
                    "{target} was sent to instance {} and has not answered yet",
                    attempt.instance
                );
                why.rule_id = "call_timeout";
                why.rule = format!(
                    "an exchange may take agents.call_timeout ({} s)",
                    self.limits.call_timeout.as_secs()
                );
                if let Some(at) = attempt.recover_until {
                    why.verdict = format!(
                        "{target} was being sent when the plane stopped; a sign of it is awaited"
                    );
                    why.rule_id = "recovery_grace";
                    why.rule = "without a sign within executions.recovery_grace it ends as outcome_unknown".into();
                    why.next.push((
                        at,
                        "failed outcome_unknown, or run again if it is idempotent".into(),
                    ));
                }
            }
            Phase::Accepted(attempt) => {
                why.verdict = format!(
                    "{target} runs in instance {}, which will call back",
                    attempt.instance
                );
                why.rule_id = "callback";
                why.rule = "a reasoner answers 202 and reports its end by a status callback".into();
            }
            Phase::Observed { ends_at, .. } => {
                why.verdict =
                    format!("{target} runs inside its caller's process; the plane did not send it");
                why.rule_id = "observed";
                why.rule = "an observed execution ends by its own event, with its instance, or 60 s after its caller".into();
                if let Some(at) = ends_at {
                    why.next
                        .push((*at, "ends, because its caller has ended".into()));
                }
            }
        }
        if let Some(at) = execution.deadline_at() {
            why.next
                .push((at, "timeout: its deadline of active time".into()));
        }
        if !execution.holds_on(&execution.row.agent) && execution.row.status == Status::Running {
            why.ruled_out
                .push(format!("a slot of {} (it holds none)", execution.row.agent));
        }
        why.next.sort();
        Some(why)
    }

    /// What a child is called and what it waits for itself, down to where the waiting ends.
    fn chain(&self, now: Timestamp, child: &str) -> Chain {
        let Some(child) = self.executions.get(child) else {
            // It has ended in this very batch, or was not read yet.
            let text = format!("a call of its own, {child}");
            return Chain { text, until: None };
        };
        let mut names = vec![name(child)];
        let mut last = child;
        // As deep as a tree of calls may be said in one sentence.
        while names.len() < CHAIN_MAX
            && let Some(wait) = last.waits_for(WaitCause::AwaitingChild)
            && let Some(next) = self.executions.get(&*wait.reference)
        {
            names.push(name(next));
            last = next;
        }
        let (what, until) = match self.approvals.pending(&last.row.id) {
            Some(approval) => {
                let until = approval.expires_at;
                let left = left(now, until);
                (format!("a person decides, {left}"), Some(until))
            }
            None => {
                let what = match last.row.status {
                    Status::Paused => "it is paused",
                    Status::Waiting => "it waits itself",
                    _ => "it is at work",
                };
                (what.to_owned(), None)
            }
        };
        Chain {
            text: format!("{}: {what}", names.join(", which waits for ")),
            until,
        }
    }

    fn why_waits(&self, now: Timestamp, target: &str, execution: &Execution, why: &mut Why) {
        let id = &execution.row.id;
        let agent = &execution.row.agent;
        if let Some(approval) = self.approvals.pending(id) {
            why.verdict = format!(
                "{target} waits for a person's decision on {:?}, {}",
                approval.request,
                left(now, approval.expires_at)
            );
            why.rule_id = "approval";
            why.rule = format!(
                "while it waits its clock stands and it holds no slot of {agent}; a decision lets it go on, and then its agent is told"
            );
            let then = if approval.callback_url.is_some() {
                "expired: it goes on, and is cancelled if its agent cannot be told"
            } else {
                "expired: it goes on, and its agent sees it when it asks"
            };
            why.next.push((approval.expires_at, then.into()));
            why.changes
                .push(("approve it".into(), format!("muster approve {id}")));
            why.changes
                .push(("reject it".into(), format!("muster reject {id}")));
            if let Some(url) = &approval.request_url {
                why.changes
                    .push(("see what is asked".into(), (**url).into()));
            }
        } else if let Some(wait) = execution.waits_for(WaitCause::AwaitingChild) {
            let chain = self.chain(now, &wait.reference);
            why.verdict = format!("{target} waits for {}", chain.text);
            if let Some(until) = chain.until {
                why.next
                    .push((until, "what it waits for in the end expires".into()));
            }
            why.rule_id = "awaiting_child";
            why.rule = format!(
                "its agent said so; it goes on when no call of it waits any more, and holds no slot of {agent} until then"
            );
            why.changes.push((
                "see why that one waits".into(),
                format!("muster why {}", wait.reference),
            ));
        }
    }

    fn why_held(&self, target: &str, execution: &Execution, why: &mut Why) {
        let agent = self.agents.get(&execution.row.agent);
        let only_tags = self.hold.is_none() && agent.is_some_and(|a| a.unapproved && !a.held);
        if only_tags && let Some(agent) = agent {
            let tags = agent.tags.unapproved().join(", ");
            why.verdict = format!(
                "{target} waits because tags of {} are not approved: {tags}",
                agent.id
            );
            why.rule_id = "tags";
            why.rule =
                "an agent that asks for a tag which needs an approval is not called before".into();
            let command = format!("muster tags approve {}", agent.id);
            return why.changes.push(("approve them".into(), command));
        }
        let (reason, by) = match &self.hold {
            Some(reason) => (Some(&**reason), self.hold_by.as_ref()),
            None => {
                let by = agent.and_then(|agent| agent.held_by.as_ref());
                (by.map(|by| &*by.reason), by)
            }
        };
        let what = match &self.hold {
            Some(_) => "dispatching is on hold".to_owned(),
            None => format!("{} is on hold", execution.row.agent),
        };
        why.verdict = format!("{target} waits because {what}");
        if let Some(by) = by {
            why.verdict.push_str(&format!(" by {}", by.by));
        }
        if let Some(reason) = reason {
            why.verdict.push_str(&format!(": {reason}"));
        }
        why.rule_id = "hold";
        why.rule = "while a hold is set nothing is dispatched".into();
        let command = match &self.hold {
            Some(_) => "muster unhold".to_owned(),
            None => format!("muster unhold {}", execution.row.agent),
        };
        why.changes.push(("lift the hold".into(), command));
    }

    fn why_queued(
        &self,
        now: Timestamp,
        target: &str,
        execution: &Execution,
        agent: Option<&Agent>,
        why: &mut Why,
    ) {
        let Some(agent) = agent else { return };
        if self.hold.is_some() || agent.stopped() {
            return self.why_held(target, execution, why);
        }
        let position = agent.queue.position(&execution.row.queue, now);
        let at_least = if position.exact { "" } else { "at least " };
        match self.cap(&agent.id) {
            Some(cap) if agent.running() >= cap => {
                why.verdict = format!(
                    "{target} waits for a slot of {}: {} of {cap}, {at_least}{} before it",
                    agent.id,
                    plain::they(agent.running().into(), "is held", "are held"),
                    plain::they(position.ahead, "is", "are")
                );
                why.rule_id = "agent_full";
                let source = match agent.cap {
                    Some(_) => "set by an operator",
                    None => "admission.max_concurrent_per_agent",
                };
                why.rule = format!(
                    "an agent runs at most {cap} at once ({source}); order is class {}, turn {}, acceptance {}",
                    execution.row.queue.class, execution.row.queue.turn, execution.row.queue.seq
                );
                why.changes.push((
                    "see who holds the slots".into(),
                    format!("muster executions --agent {} --state running", agent.id),
                ));
            }
            _ => {
                why.verdict = format!(
                    "{target} waits for an instance of {} that can be called",
                    agent.id
                );
                why.rule_id = "no_instance";
                why.rule = "what is queued stays queued until an instance is back".into();
                self.dials(Some(agent), why);
            }
        }
        if let Some(wait) = self.starts_in(agent, position.starts_in_ms) {
            let at = now + std::time::Duration::from_millis(wait);
            why.next
                .push((at, "starts, estimated from the last starts".into()));
        }
    }

    /// What is known of the instances that could take it.
    fn dials(&self, agent: Option<&Agent>, why: &mut Why) {
        let Some(agent) = agent else { return };
        for instance in &agent.instances {
            let address = &instance.facts.base_url;
            if let Some((_, error)) = &instance.facts.dial_failed {
                why.ruled_out
                    .push(format!("instance {} at {address}: {error}", instance.id()));
            } else if matches!(instance.gate, Gate::Open) && instance.is_present() {
                why.ruled_out.push(format!(
                    "instance {} at {address}: no failed dial",
                    instance.id()
                ));
            }
        }
    }

    /// Whether an agent is known.
    pub fn knows(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }
}
