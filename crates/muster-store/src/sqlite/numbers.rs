//! The numbers of executions (`executions.n`) that were written lately, so that a write need not
//! look its row up, and the counts of the queues, kept in the same commit. Decides nothing.

use muster_engine::row::ExecutionRow;
use muster_wire::{AgentId, ExecutionId, Status};
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;

use super::connection::failed;
use crate::{StoreError, StoreResult};

/// How many are remembered; all are forgotten when it is full.
const NUMBERS_MAX: usize = 16_384;

/// A place in which executions wait: agent, class, turn.
type Place = (AgentId, u8, i64);

/// What the writer remembers, and what the commit at hand does to the queues.
pub(super) struct Numbers {
    next: i64,
    of: FxHashMap<ExecutionId, Lately>,
    queues: FxHashMap<Place, i64>,
}

/// What is remembered of an execution.
#[derive(Clone, Copy)]
struct Lately {
    n: i64,
    queued: bool,
}

impl Numbers {
    /// Nothing is remembered; the next execution comes after this one.
    pub(super) fn after(last: i64) -> Self {
        Self {
            next: last + 1,
            of: FxHashMap::default(),
            queues: FxHashMap::default(),
        }
    }

    /// A commit begins.
    pub(super) fn begin(&mut self) {
        self.queues.clear();
        if self.of.len() > NUMBERS_MAX {
            self.of.clear();
        }
    }

    /// A commit was rolled back, or may have been.
    pub(super) fn forget_all(&mut self) {
        self.of.clear();
    }

    /// An execution was removed.
    pub(super) fn forget(&mut self, id: &ExecutionId) {
        self.of.remove(id);
    }

    /// The number that the next execution gets.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// An execution was inserted with the next number.
    pub(super) fn inserted(&mut self, row: &ExecutionRow) {
        let queued = row.status == Status::Queued;
        let n = self.next;
        self.next += 1;
        self.of.insert(row.id.clone(), Lately { n, queued });
        if queued {
            let turn = row.queue.turn.cast_signed();
            let place = (row.agent.clone(), row.queue.class, turn);
            *self.queues.entry(place).or_default() += 1;
        }
    }

    /// The number of an execution, from memory or from its row.
    pub(super) fn number(&mut self, conn: &Connection, id: &ExecutionId) -> StoreResult<i64> {
        if let Some(lately) = self.of.get(id) {
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
        self.of.insert(id.clone(), lately);
        Ok(lately.n)
    }

    /// Every change of an open execution takes it out of its queue, if it was in one.
    pub(super) fn leave_queue(&mut self, conn: &Connection, id: &ExecutionId) -> StoreResult<()> {
        let Some(lately) = self.of.get_mut(id).filter(|lately| lately.queued) else {
            return Ok(());
        };
        lately.queued = false;
        let place = place(conn, lately.n)?;
        *self.queues.entry(place).or_default() -= 1;
        Ok(())
    }

    /// A resumed execution is in its queue again, at its old place.
    pub(super) fn enter_queue(&mut self, conn: &Connection, id: &ExecutionId) -> StoreResult<()> {
        let Some(lately) = self.of.get_mut(id).filter(|lately| !lately.queued) else {
            return Ok(());
        };
        lately.queued = true;
        let place = place(conn, lately.n)?;
        *self.queues.entry(place).or_default() += 1;
        Ok(())
    }

    /// Writes what a commit did to the queues.
    pub(super) fn count_queues(&self, conn: &Connection) -> StoreResult<()> {
        for ((agent, class, turn), change) in &self.queues {
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
}

fn place(conn: &Connection, n: i64) -> StoreResult<Place> {
    conn.prepare_cached("SELECT agent, class, turn FROM executions WHERE n = ?1")
        .and_then(|mut s| {
            s.query_row([n], |row| {
                let agent: String = row.get(0)?;
                Ok((AgentId::trusted(agent), row.get(1)?, row.get(2)?))
            })
        })
        .map_err(failed("look up a place in a queue"))
}
