//! Each write of the engine as one fixed statement. Knows nothing of transactions.

mod agent;
mod execution;

use muster_engine::Write;
use muster_engine::effect::ExecutionChange;
use muster_engine::event::AttemptKey;
use muster_engine::row::{
    ApprovalRow, AttemptRow, DeliveryRow, EventRow, KeyRow, Payload, PayloadKind, RunRow,
};
use muster_wire::{ExecutionId, InstanceId, NodeId, RunId, Status, WorkerId};
use rusqlite::{Connection, params};

use super::codes::Code;
use super::connection::failed;
use super::numbers::Numbers;
use super::rows::to_json;
use crate::{StoreError, StoreResult};
use agent::{put_agent, put_instance, set_agent_tags};
use execution::{insert_execution, restarted_as, update_execution};

/// Applies one write.
pub(super) fn apply(conn: &Connection, numbers: &mut Numbers, write: &Write) -> StoreResult<()> {
    match write {
        Write::InsertExecution(row) => insert_execution(conn, numbers, row),
        Write::UpdateExecution {
            id,
            change: ExecutionChange::RestartedAs { id: new },
        } => restarted_as(conn, id, new),
        Write::UpdateExecution { id, change } => {
            let n = numbers.number(conn, id)?;
            match change {
                ExecutionChange::Late { .. } | ExecutionChange::RestartedAs { .. } => {}
                ExecutionChange::Moved(moved) if moved.status == Status::Queued => {
                    numbers.enter_queue(conn, id)?;
                }
                ExecutionChange::Started { .. }
                | ExecutionChange::Absorbed { .. }
                | ExecutionChange::Ended(_)
                | ExecutionChange::Moved(_) => numbers.leave_queue(conn, id)?,
            }
            update_execution(conn, n, id, change)
        }
        Write::InsertAttempt(row) => {
            let n = numbers.number(conn, &row.execution)?;
            insert_attempt(conn, n, row)
        }
        Write::AcceptAttempt { attempt, at } => {
            let n = numbers.number(conn, &attempt.execution)?;
            let changed = conn
                .prepare_cached(
                    "UPDATE attempts SET accepted_at = ?3 WHERE execution = ?1 AND n = ?2",
                )
                .and_then(|mut s| s.execute(params![n, attempt.n, at.0]))
                .map_err(failed("accept an attempt"))?;
            one_attempt(changed, attempt)
        }
        Write::EndAttempt {
            attempt,
            at,
            outcome,
            evidence,
        } => {
            let n = numbers.number(conn, &attempt.execution)?;
            let changed = conn
                .prepare_cached(
                    "UPDATE attempts SET ended_at = ?3, outcome = ?4, evidence = ?5
                     WHERE execution = ?1 AND n = ?2",
                )
                .and_then(|mut s| {
                    s.execute(params![n, attempt.n, at.0, outcome.code(), blob(evidence)])
                })
                .map_err(failed("end an attempt"))?;
            one_attempt(changed, attempt)
        }
        Write::PutPayload {
            execution,
            kind,
            bytes,
        } => {
            let n = numbers.number(conn, execution)?;
            put_payload(conn, n, *kind, bytes)
        }
        Write::PutAgent(row) => put_agent(conn, row),
        Write::SetAgentHold { agent, held } => {
            let changed = conn
                .prepare_cached("UPDATE agents SET held = ?2 WHERE id = ?1")
                .and_then(|mut s| s.execute(params![agent.as_str(), held]))
                .map_err(failed("hold an agent"))?;
            if changed != 1 {
                return Err(StoreError::Conflict(format!("there is no agent {agent}")));
            }
            Ok(())
        }
        Write::DropAgent(agent) => {
            for sql in [
                "DELETE FROM instances WHERE agent = ?1",
                "DELETE FROM agents WHERE id = ?1",
                "DELETE FROM meta WHERE name = 'hold_by:' || ?1",
            ] {
                conn.prepare_cached(sql)
                    .and_then(|mut s| s.execute([agent.as_str()]))
                    .map_err(failed("retire an agent"))?;
            }
            Ok(())
        }
        Write::SetAgentCap { agent, cap } => {
            let changed = conn
                .prepare_cached("UPDATE agents SET cap = ?2 WHERE id = ?1")
                .and_then(|mut s| s.execute(params![agent.as_str(), cap]))
                .map_err(failed("set the cap of an agent"))?;
            if changed != 1 {
                return Err(StoreError::Conflict(format!("there is no agent {agent}")));
            }
            Ok(())
        }
        Write::PutInstance(row) => put_instance(conn, row),
        Write::PutRun(row) => put_run(conn, row),
        Write::ResumeRun(run) => resume_run(conn, run),
        Write::PutApproval(row) => put_approval(conn, row),
        Write::InsertDelivery(row) => insert_delivery(conn, row),
        Write::SetAgentTags { agent, tags } => set_agent_tags(conn, agent, tags),
        Write::InsertKey(row) => insert_key(conn, row),
        Write::InsertEvent(row) => insert_event(conn, row),
        Write::Fleet(write) => super::fleet::apply(conn, write),
        Write::SetHold(reason) => set_hold(conn, reason.as_deref()),
        Write::SetHeldBy { agent, by } => super::holds::put(conn, agent.as_ref(), by.as_ref()),
    }
}

fn insert_attempt(conn: &Connection, n: i64, row: &AttemptRow) -> StoreResult<()> {
    let candidates = if row.candidates.is_empty() {
        None
    } else {
        Some(to_json(&row.candidates)?)
    };
    conn.prepare_cached(concat!(
        "INSERT INTO attempts (execution,",
        super::rows::attempt_columns!(),
        ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)"
    ))
    .and_then(|mut s| {
        s.execute(params![
            n,
            row.n,
            row.instance.as_str(),
            candidates,
            &row.secret_hash.0[..],
            row.sent_at.0,
            row.accepted_at.map(|t| t.0),
            row.ended_at.map(|t| t.0),
            row.outcome.map(Code::code),
            blob(&row.evidence),
        ])
    })
    .map_err(failed("insert an attempt"))?;
    Ok(())
}

fn one_attempt(changed: usize, attempt: &AttemptKey) -> StoreResult<()> {
    if changed == 1 {
        return Ok(());
    }
    Err(StoreError::Conflict(format!(
        "execution {} has no attempt {}",
        attempt.execution, attempt.n
    )))
}

fn put_payload(conn: &Connection, n: i64, kind: PayloadKind, bytes: &Payload) -> StoreResult<()> {
    conn.prepare_cached("INSERT OR REPLACE INTO payloads (slot, bytes) VALUES (?1, ?2)")
        .and_then(|mut s| s.execute(params![slot(n, kind), &bytes.0[..]]))
        .map_err(failed("insert a payload"))?;
    Ok(())
}

/// Where a small payload is kept: the number of its execution and its kind in one.
pub(crate) fn slot(n: i64, kind: PayloadKind) -> i64 {
    n << 2 | kind.code()
}

fn put_run(conn: &Connection, row: &RunRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO runs (id, root, cancelled_at, cancelled_by, paused_at, paused_by, source)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (id) DO UPDATE SET root = ?2, cancelled_at = coalesce(?3, cancelled_at),
            cancelled_by = coalesce(?4, cancelled_by), paused_at = coalesce(?5, paused_at),
            paused_by = coalesce(?6, paused_by), source = coalesce(?7, source)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.id.as_str(),
            row.root.as_str(),
            row.cancelled_at.map(|t| t.0),
            row.cancelled_by.as_deref().map(str::as_bytes),
            row.paused_at.map(|t| t.0),
            row.paused_by.as_deref().map(str::as_bytes),
            row.source.as_ref().map(RunId::as_str),
        ])
    })
    .map_err(failed("write a run"))?;
    Ok(())
}

fn resume_run(conn: &Connection, run: &RunId) -> StoreResult<()> {
    conn.prepare_cached("UPDATE runs SET paused_at = NULL, paused_by = NULL WHERE id = ?1")
        .and_then(|mut s| s.execute([run.as_str()]))
        .map_err(failed("resume a run"))?;
    Ok(())
}

fn put_approval(conn: &Connection, row: &ApprovalRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO approvals (execution, request, run, agent, attempt, request_url,
            callback_url, requested_at, expires_at, decision, decided_at, decided_by, feedback,
            response, told)
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.execution.as_str(),
            &*row.request,
            row.run.as_str(),
            row.agent.as_str(),
            row.attempt,
            row.request_url.as_deref().map(str::as_bytes),
            row.callback_url.as_deref().map(str::as_bytes),
            row.requested_at.0,
            row.expires_at.0,
            row.decision.map(Code::code),
            row.decided_at.map(|t| t.0),
            row.decided_by.as_deref().map(str::as_bytes),
            blob(&row.feedback),
            blob(&row.response),
            row.told.as_deref().map(str::as_bytes),
        ])
    })
    .map_err(failed("write an approval"))?;
    Ok(())
}

fn insert_delivery(conn: &Connection, row: &DeliveryRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO webhook_outbox (seq, execution, run, status, at, webhook, target, since,
            next_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?5, ?5)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.seq.cast_signed(),
            row.execution.as_str(),
            row.run.as_str(),
            row.status.code(),
            row.at.0,
            row.webhook.as_bytes(),
            &*crate::outbox::target(&row.webhook),
        ])
    })
    .map_err(failed("insert a message for a webhook"))?;
    Ok(())
}

fn insert_key(conn: &Connection, row: &KeyRow) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT INTO idempotency (key, execution, body_hash, at) VALUES (?1, ?2, ?3, ?4)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.key.as_bytes(),
            row.execution.as_str(),
            &row.body_hash[..],
            row.at.0
        ])
    })
    .map_err(failed("insert an idempotency key"))?;
    Ok(())
}

fn insert_event(conn: &Connection, row: &EventRow) -> StoreResult<()> {
    conn.prepare_cached(concat!(
        "INSERT INTO events (",
        super::rows::event_columns!(),
        ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)"
    ))
    .and_then(|mut s| {
        s.execute(params![
            row.seq.cast_signed(),
            row.at.0,
            row.kind.code(),
            row.execution.as_ref().map(ExecutionId::as_str),
            row.run.as_ref().map(|id| id.as_str()),
            row.agent.as_ref().map(|id| id.as_str()),
            row.function.as_ref().map(|id| id.as_str()),
            row.instance.as_ref().map(InstanceId::as_str),
            row.node.as_ref().map(NodeId::as_str),
            row.worker.as_ref().map(WorkerId::as_str),
            row.attempt,
            row.status.map(Code::code),
            row.reason.as_deref().map(str::as_bytes),
            row.category.as_ref().map(|c| c.word()),
            row.text.as_deref().map(str::as_bytes),
        ])
    })
    .map_err(failed("insert an event"))?;
    Ok(())
}

fn set_hold(conn: &Connection, reason: Option<&str>) -> StoreResult<()> {
    match reason {
        Some(reason) => conn
            .prepare_cached("INSERT OR REPLACE INTO meta (name, value) VALUES ('hold', ?1)")
            .and_then(|mut s| s.execute([reason.as_bytes()])),
        None => conn
            .prepare_cached("DELETE FROM meta WHERE name = 'hold'")
            .and_then(|mut s| s.execute([])),
    }
    .map_err(failed("set the hold"))?;
    Ok(())
}

fn blob(payload: &Option<Payload>) -> Option<&[u8]> {
    payload.as_ref().map(|p| &p.0[..])
}
