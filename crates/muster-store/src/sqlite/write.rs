//! Each write of the engine as one fixed statement. Knows nothing of transactions.

use muster_engine::Write;
use muster_engine::effect::{Ending, ExecutionChange, Move};
use muster_engine::event::AttemptKey;
use muster_engine::row::{
    AgentRow, AgentTags, ApprovalRow, AttemptRow, DeliveryRow, EventRow, ExecutionRow, InstanceRow,
    KeyRow, Payload, PayloadKind, RunRow,
};
use muster_wire::{AgentId, ExecutionId, InstanceId, NodeId, RunId, Status, WorkerId};
use rusqlite::{Connection, params};

use super::codes::Code;
use super::connection::failed;
use super::numbers::Numbers;
use super::rows::{join_ids, to_json};
use crate::{StoreError, StoreResult};

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

fn insert_execution(
    conn: &Connection,
    numbers: &mut Numbers,
    row: &ExecutionRow,
) -> StoreResult<()> {
    let n = numbers.next();
    let root = (row.root != row.id).then_some(row.root.as_str());
    let wait = row.wait.as_deref();
    let links = row.links.as_deref();
    let replay = match links.and_then(|links| links.replay.as_ref()) {
        Some(replay) => Some(to_json(replay)?),
        None => None,
    };
    let statement = concat!(
        "INSERT INTO executions (n,",
        super::rows::execution_columns!(),
        ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,\
         ?22,?23,?24,?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35,?36,?37,?38,?39,?40,?41,?42,?43,\
         ?44,?45,?46,?47,?48,?49,?50)"
    );
    conn.prepare_cached(statement)
        .and_then(|mut s| {
            s.execute(params![
                n,
                row.id.as_str(),
                row.run.as_str(),
                root,
                row.parent.as_ref().map(ExecutionId::as_str),
                row.depth,
                row.kind.code(),
                row.lane.code(),
                row.agent.as_str(),
                row.function.as_str(),
                row.function_kind.code(),
                row.status.code(),
                row.status_reason.as_deref().map(str::as_bytes),
                row.error_category.as_ref().map(|c| c.word()),
                blob(&row.error_text),
                row.error_status,
                row.queue.class,
                row.queue.turn.cast_signed(),
                row.queue.seq.cast_signed(),
                row.attempt,
                join_ids(row.holds.iter().map(|id| id.as_str())),
                row.over_cap,
                row.created_at.0,
                row.started_at.map(|t| t.0),
                row.ended_at.map(|t| t.0),
                row.active_us,
                row.clock_from.map(|t| t.0),
                row.deadline_us,
                row.absorb_until.map(|t| t.0),
                row.input_size.cast_signed(),
                &row.input_hash[..],
                row.result_size.map(u64::cast_signed),
                row.key_hash.as_deref(),
                &*row.principal,
                row.session.as_deref().map(str::as_bytes),
                row.actor.as_deref().map(str::as_bytes),
                row.traceparent.as_deref().map(str::as_bytes),
                blob(&row.usage),
                row.origin.code(),
                row.late_outcome.map(Code::code),
                wait.map(|wait| wait.cause.code()),
                wait.map(|wait| wait.reference.as_bytes()),
                wait.and_then(|wait| wait.until).map(|t| t.0),
                row.resume_to.map(Code::code),
                row.on_parent_end.code(),
                replay,
                links
                    .and_then(|links| links.replay_of.as_ref())
                    .map(ExecutionId::as_str),
                links
                    .and_then(|links| links.restart_of.as_ref())
                    .map(ExecutionId::as_str),
                links
                    .and_then(|links| links.restarted_as.as_ref())
                    .map(ExecutionId::as_str),
                links
                    .and_then(|links| links.webhook.as_deref())
                    .map(str::as_bytes),
            ])
        })
        .map_err(failed("insert an execution"))?;
    if let Some(report) = &row.usage {
        super::usage::write(conn, n, report).map_err(failed("insert an execution"))?;
    }
    numbers.inserted(row);
    Ok(())
}

fn update_execution(
    conn: &Connection,
    n: i64,
    id: &ExecutionId,
    change: &ExecutionChange,
) -> StoreResult<()> {
    let changed = match change {
        ExecutionChange::Started {
            attempt,
            started_at,
            clock_from,
            active_us,
            over_cap,
            holds,
        } => conn
            .prepare_cached(
                "UPDATE executions SET status = 1, status_reason = NULL, absorb_until = NULL,
                    wait_cause = NULL, wait_reference = NULL, wait_until = NULL, resume_to = NULL,
                    attempt = ?2, started_at = ?3, clock_from = ?4, active_us = ?5,
                    over_cap = ?6, holds = ?7 WHERE n = ?1 AND status < 4",
            )
            .and_then(|mut s| {
                s.execute(params![
                    n,
                    attempt,
                    started_at.0,
                    clock_from.0,
                    active_us,
                    over_cap,
                    join_ids(holds.iter().map(|id| id.as_str())),
                ])
            }),
        ExecutionChange::Absorbed {
            until,
            started_at,
            clock_from,
            over_cap,
        } => conn
            .prepare_cached(
                "UPDATE executions SET status = 1, status_reason = ?2, absorb_until = ?3,
                    started_at = ?4, clock_from = ?5, over_cap = ?6, wait_cause = NULL,
                    wait_reference = NULL, wait_until = NULL, resume_to = NULL
                 WHERE n = ?1 AND status < 4",
            )
            .and_then(|mut s| {
                s.execute(params![
                    n,
                    crate::change::AWAITING_RESTART.as_bytes(),
                    until.0,
                    started_at.0,
                    clock_from.0,
                    over_cap,
                ])
            }),
        ExecutionChange::Ended(ending) => end_execution(conn, n, ending),
        ExecutionChange::Moved(moved) => move_execution(conn, n, moved),
        ExecutionChange::RestartedAs { id: new } => return restarted_as(conn, id, new),
        ExecutionChange::Late { status } => conn
            .prepare_cached("UPDATE executions SET late_outcome = ?2 WHERE n = ?1")
            .and_then(|mut s| s.execute(params![n, status.code()])),
    }
    .map_err(failed("change an execution"))?;
    if changed != 1 {
        return Err(StoreError::Conflict(format!(
            "execution {id} has ended or is gone"
        )));
    }
    Ok(())
}

/// What was restarted may have been retired since: then there is nothing to mark.
fn restarted_as(conn: &Connection, id: &ExecutionId, new: &ExecutionId) -> StoreResult<()> {
    conn.prepare_cached("UPDATE executions SET restarted_as = ?2 WHERE id = ?1")
        .and_then(|mut s| s.execute(params![id.as_str(), new.as_str()]))
        .map_err(failed("mark a restart"))?;
    Ok(())
}

fn end_execution(conn: &Connection, n: i64, ending: &Ending) -> rusqlite::Result<usize> {
    debug_assert!(Status::is_terminal(ending.status));
    let changed = conn
        .prepare_cached(
            "UPDATE executions SET status = ?2, status_reason = ?3, error_category = ?4,
            error_text = ?5, error_status = ?6, ended_at = ?7, active_us = ?8, result_size = ?9,
            usage = coalesce(?10, usage), clock_from = NULL, absorb_until = NULL,
            wait_cause = NULL, wait_reference = NULL, wait_until = NULL, resume_to = NULL
         WHERE n = ?1 AND status < 4",
        )?
        .execute(params![
            n,
            ending.status.code(),
            ending.reason.as_deref().map(str::as_bytes),
            ending.category.as_ref().map(|c| c.word()),
            blob(&ending.error),
            ending.http_status,
            ending.at.0,
            ending.active_us,
            ending.result_size.map(u64::cast_signed),
            blob(&ending.usage),
        ])?;
    if let Some(report) = ending.usage.as_ref().filter(|_| changed == 1) {
        super::usage::write(conn, n, report)?;
    }
    Ok(changed)
}

fn move_execution(conn: &Connection, n: i64, moved: &Move) -> rusqlite::Result<usize> {
    let wait = moved.wait.as_deref();
    conn.prepare_cached(
        "UPDATE executions SET status = ?2, status_reason = ?3, wait_cause = ?4,
            wait_reference = ?5, wait_until = ?6, resume_to = ?7, absorb_until = ?8,
            clock_from = ?9, active_us = ?10, over_cap = ?11
         WHERE n = ?1 AND status < 4",
    )?
    .execute(params![
        n,
        moved.status.code(),
        moved.reason.as_deref().map(str::as_bytes),
        wait.map(|wait| wait.cause.code()),
        wait.map(|wait| wait.reference.as_bytes()),
        wait.and_then(|wait| wait.until).map(|t| t.0),
        moved.resume_to.map(Code::code),
        moved.absorb_until.map(|t| t.0),
        moved.clock_from.map(|t| t.0),
        moved.active_us,
        moved.over_cap,
    ])
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

fn put_agent(conn: &Connection, row: &AgentRow) -> StoreResult<()> {
    let tags = tags_json(&row.tags)?;
    conn.prepare_cached(
        "INSERT INTO agents (id,principal,created_at,registered_at,registration,held,tags,cap)
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8)
         ON CONFLICT (id) DO UPDATE SET principal = ?2, created_at = ?3, registered_at = ?4,
            registration = ?5, held = ?6, tags = ?7, cap = ?8",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.id.as_str(),
            &*row.principal,
            row.created_at.0,
            row.registered_at.0,
            &row.registration.0[..],
            row.held,
            tags,
            row.cap,
        ])
    })
    .map_err(failed("write an agent"))?;
    Ok(())
}

fn put_instance(conn: &Connection, row: &InstanceRow) -> StoreResult<()> {
    let functions = to_json(&*row.functions)?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO instances (agent,id,base_url,version,functions,registered_at,
            renewed_at,goodbye_at,gone_at,gone_evidence,orphans_at,worker)
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.agent.as_str(),
            row.id.as_str(),
            row.base_url.as_bytes(),
            row.version.as_bytes(),
            functions,
            row.registered_at.0,
            row.renewed_at.0,
            row.goodbye_at.map(|t| t.0),
            row.gone_at.map(|t| t.0),
            row.gone_evidence.as_deref().map(str::as_bytes),
            row.orphans_at.map(|t| t.0),
            row.worker.as_deref().map(str::as_bytes),
        ])
    })
    .map_err(failed("write an instance"))?;
    Ok(())
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

fn tags_json(tags: &AgentTags) -> StoreResult<Option<Vec<u8>>> {
    if *tags == AgentTags::default() {
        return Ok(None);
    }
    to_json(tags).map(Some)
}

fn set_agent_tags(conn: &Connection, agent: &AgentId, tags: &AgentTags) -> StoreResult<()> {
    let tags = tags_json(tags)?;
    let changed = conn
        .prepare_cached("UPDATE agents SET tags = ?2 WHERE id = ?1")
        .and_then(|mut s| s.execute(params![agent.as_str(), tags]))
        .map_err(failed("write an agent's tags"))?;
    if changed != 1 {
        return Err(StoreError::Conflict(format!("there is no agent {agent}")));
    }
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
