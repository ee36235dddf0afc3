//! Writes of the engine, each as one fixed statement, in one fenced transaction.
//!
//! The committing thread is the writer: it holds the one writing connection under a lock, so
//! that a commit costs no hop between threads. Statements stay prepared with the connection.

use muster_engine::Write;
use muster_engine::effect::{Ending, ExecutionChange};
use muster_engine::event::AttemptKey;
use muster_engine::row::{
    AgentRow, AttemptRow, EventRow, ExecutionRow, InstanceRow, KeyRow, Payload, PayloadKind, RunRow,
};
use muster_wire::{AgentId, ExecutionId, InstanceId, Status};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use rustc_hash::FxHashMap;

use super::codes::Code;
use super::connection::failed;
use super::rows::{join_ids, to_json};
use crate::{Commit, CommitEnd, StoreError, StoreResult, check};

/// How many numbers of executions are remembered; all are forgotten when it is full.
const NUMBERS_MAX: usize = 16_384;

/// The writing connection of the decisions file, and what it knows by heart.
pub(crate) struct Decisions {
    pub(crate) conn: Connection,
    numbers: Numbers,
}

/// The numbers (`executions.n`) of executions that were written lately, and what the commit at
/// hand does to the queues.
struct Numbers {
    next: i64,
    of: FxHashMap<ExecutionId, Lately>,
    queues: FxHashMap<(AgentId, u8, i64), i64>,
}

/// What is remembered of an execution.
#[derive(Clone, Copy)]
struct Lately {
    n: i64,
    queued: bool,
}

impl Decisions {
    /// Wraps a connection whose file has the schema.
    pub(crate) fn new(conn: Connection) -> StoreResult<Self> {
        let last: Option<i64> = conn
            .query_row("SELECT max(n) FROM executions", [], |row| row.get(0))
            .map_err(failed("read the last number"))?;
        Ok(Self {
            conn,
            numbers: Numbers {
                next: last.unwrap_or(0) + 1,
                of: FxHashMap::default(),
                queues: FxHashMap::default(),
            },
        })
    }

    /// Runs `work` in a transaction of its own; an error leaves nothing behind.
    pub(crate) fn transact<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        begin(&self.conn).map_err(failed(doing))?;
        let open = Open(&self.conn);
        let out = work(&self.conn)?;
        end(&self.conn).map_err(failed(doing))?;
        drop(open);
        Ok(out)
    }

    /// Writes everything or nothing.
    pub(crate) fn commit(&mut self, commit: &Commit) -> CommitEnd {
        self.numbers.queues.clear();
        let ended = self.try_commit(commit);
        if !matches!(ended, CommitEnd::Committed) || self.numbers.of.len() > NUMBERS_MAX {
            // Some of them may name rows that were rolled back.
            self.numbers.of.clear();
        }
        ended
    }

    /// Removes executions with what hangs on them in this file.
    pub(crate) fn remove_executions(&mut self, rows: &[(i64, ExecutionId)]) -> StoreResult<u64> {
        let gone = self.transact("remove executions", |conn| {
            let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
                conn.prepare_cached(sql)
                    .and_then(|mut s| s.execute(values))
                    .map_err(failed("remove executions"))
            };
            let mut gone = 0;
            for (n, id) in rows {
                let (first, last) = (slot(*n, PayloadKind::Input), slot(*n, PayloadKind::Late));
                gone += run("DELETE FROM attempts WHERE execution = ?1", &[n])?;
                gone += run(
                    "DELETE FROM payloads WHERE slot BETWEEN ?1 AND ?2",
                    &[&first, &last],
                )?;
                // The newest event stays: it is where the sequence goes on.
                gone += run(
                    "DELETE FROM events WHERE execution = ?1
                     AND seq < (SELECT max(seq) FROM events)",
                    &[&id.as_str()],
                )?;
                gone += run("DELETE FROM executions WHERE n = ?1", &[n])?;
            }
            Ok(gone as u64)
        })?;
        for (_, id) in rows {
            self.numbers.of.remove(id);
        }
        Ok(gone)
    }

    /// Drops an item of the quarantine; with a row that could not be read goes the row.
    pub(crate) fn drop_quarantined(&mut self, id: &str) -> StoreResult<bool> {
        if let Some(n) = id
            .strip_prefix("row:execution:")
            .and_then(|n| n.parse().ok())
        {
            self.remove_executions(&[(n, ExecutionId::trusted(""))])?;
        }
        self.transact("drop something set aside", |conn| {
            let run = |sql: &str, key: &str| {
                conn.prepare_cached(sql)
                    .and_then(|mut s| s.execute([key]))
                    .map_err(failed("drop something set aside"))
            };
            if let Some(agent) = id.strip_prefix("row:agent:") {
                run("DELETE FROM agents WHERE id = ?1", agent)?;
            } else if let Some(rowid) = id.strip_prefix("row:instance:") {
                run(
                    "DELETE FROM instances WHERE rowid = CAST(?1 AS INTEGER)",
                    rowid,
                )?;
            } else if let Some(mark) = id.strip_prefix("row:run:") {
                run("DELETE FROM runs WHERE id = ?1", mark)?;
            } else if let Some(attempt) = id.strip_prefix("row:attempt:") {
                run(
                    "DELETE FROM attempts WHERE execution || '~' || n = ?1",
                    attempt,
                )?;
            }
            Ok(run("DELETE FROM quarantine WHERE id = ?1", id)? > 0)
        })
    }

    fn try_commit(&mut self, commit: &Commit) -> CommitEnd {
        if let Err(source) = begin(&self.conn) {
            return refused(failed("begin a commit")(source));
        }
        let open = Open(&self.conn);
        let done = fence(&self.conn, commit).and_then(|()| {
            commit
                .writes
                .iter()
                .try_for_each(|write| apply(&self.conn, &mut self.numbers, write))?;
            count_queues(&self.conn, &self.numbers.queues)
        });
        if let Err(cause) = done {
            return refused(cause);
        }
        let ended = match end(&self.conn) {
            Ok(()) => CommitEnd::Committed,
            // The frames may or may not have reached the disk before the error did.
            Err(source) if source.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) => {
                CommitEnd::Unknown(failed("commit")(source))
            }
            Err(source) => refused(failed("commit")(source)),
        };
        drop(open);
        ended
    }
}

fn refused(cause: StoreError) -> CommitEnd {
    CommitEnd::Refused {
        passing: cause.is_passing(),
        cause,
    }
}

fn begin(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    Ok(())
}

fn end(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// A transaction that is rolled back unless it was committed, also by a panic.
struct Open<'c>(&'c Connection);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.0.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}

fn fence(conn: &Connection, commit: &Commit) -> StoreResult<()> {
    let (epoch, last): (Option<i64>, Option<i64>) = conn
        .prepare_cached(
            "SELECT (SELECT epoch FROM leases WHERE id = ?1), (SELECT max(seq) FROM events)",
        )
        .and_then(|mut s| s.query_row([commit.lease.id.0], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(failed("check the lease"))?;
    if epoch != i64::try_from(commit.lease.epoch).ok() {
        return Err(StoreError::Fenced {
            held: commit.lease.epoch,
        });
    }
    check::commit(commit, last.unwrap_or(0).cast_unsigned())
}

fn apply(conn: &Connection, numbers: &mut Numbers, write: &Write) -> StoreResult<()> {
    match write {
        Write::InsertExecution(row) => insert_execution(conn, numbers, row),
        Write::UpdateExecution { id, change } => {
            let n = number(conn, numbers, id)?;
            if !matches!(change, ExecutionChange::Late { .. }) {
                leave_queue(conn, numbers, id)?;
            }
            update_execution(conn, n, id, change)
        }
        Write::InsertAttempt(row) => {
            let n = number(conn, numbers, &row.execution)?;
            insert_attempt(conn, n, row)
        }
        Write::AcceptAttempt { attempt, at } => {
            let n = number(conn, numbers, &attempt.execution)?;
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
            let n = number(conn, numbers, &attempt.execution)?;
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
            let n = number(conn, numbers, execution)?;
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
        Write::PutInstance(row) => put_instance(conn, row),
        Write::PutRun(row) => put_run(conn, row),
        Write::InsertKey(row) => insert_key(conn, row),
        Write::InsertEvent(row) => insert_event(conn, row),
        Write::SetHold(reason) => set_hold(conn, reason.as_deref()),
    }
}

/// The number of an execution, from memory or from its row.
fn number(conn: &Connection, numbers: &mut Numbers, id: &ExecutionId) -> StoreResult<i64> {
    if let Some(lately) = numbers.of.get(id) {
        return Ok(lately.n);
    }
    let lately = conn
        .prepare_cached("SELECT n, status = 0 FROM executions WHERE id = ?1")
        .and_then(|mut s| {
            s.query_row([id.as_str()], |row| {
                Ok(Lately {
                    n: row.get(0)?,
                    queued: row.get(1)?,
                })
            })
            .optional()
        })
        .map_err(failed("look up an execution"))?
        .ok_or_else(|| StoreError::Conflict(format!("there is no execution {id}")))?;
    numbers.of.insert(id.clone(), lately);
    Ok(lately.n)
}

/// Every change of an open execution takes it out of its queue, if it was in one.
fn leave_queue(conn: &Connection, numbers: &mut Numbers, id: &ExecutionId) -> StoreResult<()> {
    let Some(lately) = numbers.of.get_mut(id).filter(|lately| lately.queued) else {
        return Ok(());
    };
    lately.queued = false;
    let place = conn
        .prepare_cached("SELECT agent, class, turn FROM executions WHERE n = ?1")
        .and_then(|mut s| {
            s.query_row([lately.n], |row| {
                let agent: String = row.get(0)?;
                Ok((AgentId::trusted(agent), row.get(1)?, row.get(2)?))
            })
        })
        .map_err(failed("look up a place in a queue"))?;
    *numbers.queues.entry(place).or_default() -= 1;
    Ok(())
}

/// Writes what a commit did to the queues.
fn count_queues(conn: &Connection, queues: &FxHashMap<(AgentId, u8, i64), i64>) -> StoreResult<()> {
    for ((agent, class, turn), change) in queues {
        let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            conn.prepare_cached(sql)
                .and_then(|mut s| s.execute(values))
                .map_err(failed("count a queue"))
        };
        if *change != 0 {
            run(
                "INSERT INTO queue_counts (agent, class, turn, count) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (agent, class, turn) DO UPDATE SET count = count + ?4",
                &[&agent.as_str(), class, turn, change],
            )?;
        }
        if *change < 0 {
            run(
                "DELETE FROM queue_counts
                 WHERE agent = ?1 AND class = ?2 AND turn = ?3 AND count <= 0",
                &[&agent.as_str(), class, turn],
            )?;
        }
    }
    Ok(())
}

fn insert_execution(
    conn: &Connection,
    numbers: &mut Numbers,
    row: &ExecutionRow,
) -> StoreResult<()> {
    let n = numbers.next;
    let root = (row.root != row.id).then_some(row.root.as_str());
    let statement = concat!(
        "INSERT INTO executions (n,",
        super::rows::execution_columns!(),
        ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,\
         ?22,?23,?24,?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35,?36,?37,?38,?39,?40)"
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
            ])
        })
        .map_err(failed("insert an execution"))?;
    numbers.next += 1;
    let queued = row.status == Status::Queued;
    numbers.of.insert(row.id.clone(), Lately { n, queued });
    if queued {
        let turn = row.queue.turn.cast_signed();
        let place = (row.agent.clone(), row.queue.class, turn);
        *numbers.queues.entry(place).or_default() += 1;
    }
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
        } => conn
            .prepare_cached(
                "UPDATE executions SET status = 1, status_reason = ?2, absorb_until = ?3,
                    started_at = ?4, clock_from = ?5 WHERE n = ?1 AND status < 4",
            )
            .and_then(|mut s| {
                s.execute(params![
                    n,
                    crate::change::AWAITING_RESTART.as_bytes(),
                    until.0,
                    started_at.0,
                    clock_from.0
                ])
            }),
        ExecutionChange::Ended(ending) => end_execution(conn, n, ending),
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

fn end_execution(conn: &Connection, n: i64, ending: &Ending) -> rusqlite::Result<usize> {
    debug_assert!(Status::is_terminal(ending.status));
    conn.prepare_cached(
        "UPDATE executions SET status = ?2, status_reason = ?3, error_category = ?4,
            error_text = ?5, error_status = ?6, ended_at = ?7, active_us = ?8, result_size = ?9,
            usage = coalesce(?10, usage), clock_from = NULL, absorb_until = NULL
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
    conn.prepare_cached(
        "INSERT INTO agents (id,principal,created_at,registered_at,registration,held)
         VALUES (?1,?2,?3,?4,?5,?6)
         ON CONFLICT (id) DO UPDATE SET principal = ?2, created_at = ?3, registered_at = ?4,
            registration = ?5, held = ?6",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.id.as_str(),
            &*row.principal,
            row.created_at.0,
            row.registered_at.0,
            &row.registration.0[..],
            row.held,
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
        "INSERT OR REPLACE INTO runs (id, root, cancelled_at, cancelled_by)
         VALUES (?1, ?2, ?3, ?4)",
    )
    .and_then(|mut s| {
        s.execute(params![
            row.id.as_str(),
            row.root.as_str(),
            row.cancelled_at.map(|t| t.0),
            row.cancelled_by.as_deref().map(str::as_bytes),
        ])
    })
    .map_err(failed("write a run"))?;
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
        ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)"
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
