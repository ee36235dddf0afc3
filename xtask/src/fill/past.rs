//! Executions that have ended, with their attempts, payloads and events. Their figures follow from
//! their numbers, so that two fills are alike but for ids.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use muster_engine::Write;
use muster_engine::row::{
    AttemptOutcome, AttemptRow, EventKind, EventRow, ExecutionRow, Payload, PayloadKind, QueueKey,
};
use muster_wire::{
    AgentId, Category, ExecutionId, ExecutionKind, FunctionKind, FunctionName, InstanceId, Lane,
    Origin, RunId, SecretHash, Status, Timestamp, mint,
};

use super::Filler;

const INPUT: &str = r#"{"city":"Lyon","days":3}"#;
const RESULT: &str = r#"{"ok":true}"#;
const AGENTS: u64 = 50;
const FUNCTIONS: [&str; 6] = ["lookup", "search", "plan", "render", "approve", "send"];

/// One execution of the past.
struct Past {
    id: ExecutionId,
    run: RunId,
    root: ExecutionId,
    parent: Option<ExecutionId>,
    depth: u32,
    agent: AgentId,
    function: FunctionName,
    status: Status,
    at: Timestamp,
    took: Duration,
    number: u64,
}

/// Writes so many executions that succeeded, each a run of its own, over the six hours before
/// now.
///
/// # Errors
/// When the store refuses.
pub(crate) fn plain_history(filler: &mut Filler, count: u64) -> anyhow::Result<()> {
    let start = Timestamp::wall_clock() - Duration::from_secs(6 * 3600);
    for number in 0..count {
        let id = ExecutionId::trusted(mint("exec"));
        let past = Past {
            run: RunId::trusted(mint("run")),
            root: id.clone(),
            id,
            parent: None,
            depth: 0,
            agent: AgentId::trusted(format!("past-{}", number % AGENTS)),
            function: FunctionName::trusted("fast"),
            status: Status::Succeeded,
            at: start + Duration::from_micros(number * 20_000),
            took: Duration::from_millis(5),
            number,
        };
        past.write(filler);
        filler.pause()?;
    }
    filler.commit()
}

/// Writes about so many executions in runs of one to eight, the last of which ended just now:
/// most succeeded, some failed, were cancelled or timed out.
pub(super) fn mixed_history(filler: &mut Filler, count: u64) -> anyhow::Result<()> {
    let now = Timestamp::wall_clock();
    let mut number = 0;
    let mut run = 0;
    while number < count {
        let steps = 1 + run % 8;
        let before = Duration::from_millis((count - number) * 200);
        tree(
            filler,
            RunId::trusted(mint("run")),
            steps,
            number,
            now - before,
            run,
        )?;
        number += steps;
        run += 1;
    }
    filler.commit()
}

/// Writes one run of many steps: each step calls up to eight others.
pub(super) fn run_of(filler: &mut Filler, steps: u64) -> anyhow::Result<()> {
    let at = Timestamp::wall_clock() - Duration::from_secs(600);
    tree(
        filler,
        RunId::trusted(format!("run-of-{steps}")),
        steps,
        steps * 1_000_000,
        at,
        0,
    )?;
    filler.commit()
}

fn tree(
    filler: &mut Filler,
    run: RunId,
    steps: u64,
    number: u64,
    at: Timestamp,
    seed: u64,
) -> anyhow::Result<()> {
    let mut ids: Vec<(ExecutionId, u32)> = Vec::new();
    for step in 0..steps {
        let id = ExecutionId::trusted(mint("exec"));
        let above = step.checked_sub(1).map(|before| before / 8);
        let above = above.and_then(|place| ids.get(usize::try_from(place).ok()?));
        let kind = (seed * 31 + step * 7) % 100;
        let root = ids
            .first()
            .map_or_else(|| id.clone(), |(root, _)| root.clone());
        let past = Past {
            run: run.clone(),
            root,
            parent: above.map(|(parent, _)| parent.clone()),
            depth: above.map_or(0, |(_, depth)| depth + 1),
            agent: AgentId::trusted(format!("past-{}", (seed + step) % AGENTS)),
            function: FunctionName::trusted(FUNCTIONS[(step % 6) as usize]),
            status: match kind {
                0..3 => Status::Failed,
                3 => Status::Cancelled,
                4 => Status::Timeout,
                _ => Status::Succeeded,
            },
            at: at + Duration::from_millis(step * 3),
            took: Duration::from_millis(match step {
                0 => steps * 3 + 50,
                _ => 2 + (step * 37) % 900,
            }),
            number: number + step,
            id,
        };
        ids.push((past.id.clone(), past.depth));
        past.write(filler);
        filler.pause()?;
    }
    Ok(())
}

impl Past {
    fn write(self, filler: &mut Filler) {
        let result = (self.status == Status::Succeeded).then_some(RESULT);
        filler.write(Write::InsertExecution(Arc::new(self.row(result))));
        filler.write(Write::InsertAttempt(Box::new(self.attempt())));
        let payloads = [
            (PayloadKind::Input, Some(INPUT)),
            (PayloadKind::Result, result),
        ];
        for (kind, text) in payloads {
            if let Some(text) = text {
                filler.write(Write::PutPayload {
                    execution: self.id.clone(),
                    kind,
                    bytes: payload(text),
                });
            }
        }
        let ended = match self.status {
            Status::Failed => EventKind::ExecutionFailed,
            Status::Cancelled => EventKind::ExecutionCancelled,
            Status::Timeout => EventKind::ExecutionTimedOut,
            _ => EventKind::ExecutionSucceeded,
        };
        for (kind, status, at) in [
            (EventKind::ExecutionQueued, Status::Queued, self.at),
            (EventKind::ExecutionStarted, Status::Running, self.at),
            (ended, self.status, self.at + self.took),
        ] {
            let seq = filler.next_seq();
            let event = self.event(seq, kind, status, at);
            filler.write(Write::InsertEvent(Arc::new(event)));
        }
    }

    fn category(&self) -> Option<Category> {
        match self.status {
            Status::Failed => Some(Category::AgentError),
            Status::Timeout => Some(Category::AgentTimeout),
            Status::Cancelled => Some(Category::Cancelled),
            _ => None,
        }
    }

    fn row(&self, result: Option<&str>) -> ExecutionRow {
        let failed = self.status == Status::Failed;
        ExecutionRow {
            id: self.id.clone(),
            run: self.run.clone(),
            root: self.root.clone(),
            parent: self.parent.clone(),
            depth: self.depth,
            kind: ExecutionKind::Dispatched,
            lane: Lane::Sync,
            agent: self.agent.clone(),
            function: self.function.clone(),
            function_kind: FunctionKind::Skill,
            status: self.status,
            status_reason: None,
            error_category: self.category(),
            error_text: failed.then(|| payload("KeyError: 'city'")),
            error_status: None,
            queue: QueueKey {
                class: 5,
                turn: 0,
                seq: self.number,
            },
            attempt: 1,
            holds: Vec::new(),
            over_cap: false,
            created_at: self.at,
            started_at: Some(self.at),
            ended_at: Some(self.at + self.took),
            active_us: i64::try_from(self.took.as_micros()).unwrap_or(i64::MAX),
            clock_from: None,
            deadline_us: 3 * 3600 * 1_000_000,
            absorb_until: None,
            input_size: INPUT.len() as u64,
            input_hash: [7; 16],
            result_size: result.map(|text| text.len() as u64),
            key_hash: None,
            principal: Arc::from("owner"),
            session: None,
            actor: None,
            traceparent: None,
            usage: None,
            origin: Origin::Server,
            late_outcome: None,
            wait: None,
            resume_to: None,
            on_parent_end: muster_wire::ParentEnd::Detach,
            links: None,
        }
    }

    fn attempt(&self) -> AttemptRow {
        AttemptRow {
            execution: self.id.clone(),
            n: 1,
            instance: InstanceId::trusted("i-past"),
            candidates: Vec::new(),
            secret_hash: SecretHash([0; 16]),
            sent_at: self.at,
            accepted_at: None,
            ended_at: Some(self.at + self.took),
            outcome: Some(AttemptOutcome::Answered),
            evidence: None,
        }
    }

    fn event(&self, seq: u64, kind: EventKind, status: Status, at: Timestamp) -> EventRow {
        EventRow {
            seq,
            at,
            kind,
            execution: Some(self.id.clone()),
            run: Some(self.run.clone()),
            agent: Some(self.agent.clone()),
            function: Some(self.function.clone()),
            instance: Some(InstanceId::trusted("i-past")),
            node: None,
            worker: None,
            attempt: Some(1),
            status: Some(status),
            reason: None,
            category: status.is_terminal().then(|| self.category()).flatten(),
            text: None,
        }
    }
}

fn payload(text: &'static str) -> Payload {
    Payload(Bytes::from_static(text.as_bytes()))
}
