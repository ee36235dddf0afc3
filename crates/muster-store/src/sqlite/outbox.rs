//! The messages for webhooks in the decisions file. Each method is one small transaction.

use std::sync::Arc;

use muster_wire::{ExecutionId, RunId, Status, Timestamp};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::known::{all, first};
use super::retire::count;
use super::rows::Columns;
use crate::StoreResult;
use crate::outbox::{
    Claim, Delivery, DeliveryCounts, DeliveryFilter, DeliveryState, Outbox, Settled,
};

macro_rules! columns {
    () => {
        "seq,execution,run,status,at,webhook,since,tries,next_at,claim,tried_at,delivered_at,\
         dead_at,last_error,last_status"
    };
}

impl Outbox for SqliteStore {
    fn delivery_targets(
        &self,
        after: &str,
        limit: usize,
    ) -> StoreResult<Vec<(Arc<str>, Timestamp)>> {
        // One step of the index for each target, however many messages it has.
        let sql = "SELECT target, next_at FROM webhook_outbox
                   WHERE next_at IS NOT NULL AND target > ?1 ORDER BY target, next_at LIMIT 1";
        let none = "SELECT target, next_at FROM webhook_outbox
                    WHERE next_at IS NOT NULL AND target >= ?1 ORDER BY target, next_at LIMIT 1";
        self.decision_readers.read(|conn| {
            let mut out: Vec<(Arc<str>, Timestamp)> = Vec::new();
            let mut last: Arc<str> = after.into();
            while out.len() < limit {
                let sql = if out.is_empty() && after.is_empty() {
                    none
                } else {
                    sql
                };
                let next: Option<(Arc<str>, Timestamp)> = first(conn, sql, [&*last], |row| {
                    let mut from = Columns::of(row);
                    Ok((Arc::from(from.text()?), from.time()?))
                })?;
                let Some(next) = next else { break };
                last = next.0.clone();
                out.push(next);
            }
            Ok(out)
        })
    }

    fn claim_deliveries(
        &self,
        target: &str,
        now: Timestamp,
        claim: &Claim,
        limit: usize,
    ) -> StoreResult<Vec<Delivery>> {
        let sql = concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_outbox INDEXED BY webhook_outbox_next
              WHERE next_at IS NOT NULL AND target = ?1 AND next_at <= ?2
              ORDER BY tries, next_at, seq LIMIT ?3"
        );
        self.decisions.lock().transact("claim messages", |conn| {
            let mut due = all(conn, sql, params![target, now.0, rows(limit)], delivery)?;
            for message in &mut due {
                count(
                    conn,
                    "UPDATE webhook_outbox SET claim = ?2, next_at = ?3 WHERE seq = ?1",
                    params![message.seq.cast_signed(), claim.token, claim.until.0],
                )?;
                message.claimed = true;
                message.next_at = Some(claim.until);
            }
            Ok(due)
        })
    }

    fn settle_deliveries(&self, token: &str, settled: &[(u64, Settled)]) -> StoreResult<()> {
        if settled.is_empty() {
            return Ok(());
        }
        self.decisions.lock().transact("settle messages", |conn| {
            settled
                .iter()
                .try_for_each(|(seq, end)| settle(conn, token, seq.cast_signed(), end))
        })
    }

    fn release_deliveries(&self, now: Timestamp) -> StoreResult<u64> {
        self.decisions.lock().transact("release messages", |conn| {
            count(
                conn,
                "UPDATE webhook_outbox SET claim = NULL, next_at = ?1
                 WHERE next_at IS NOT NULL AND claim IS NOT NULL",
                [now.0],
            )
        })
    }

    fn bury_deliveries(
        &self,
        target: &str,
        since_before: Timestamp,
        now: Timestamp,
        error: &str,
        limit: usize,
    ) -> StoreResult<u64> {
        self.decisions.lock().transact("give messages up", |conn| {
            count(
                conn,
                "UPDATE webhook_outbox SET next_at = NULL, dead_at = ?3,
                    last_error = coalesce(last_error, ?4)
                 WHERE seq IN (SELECT seq FROM webhook_outbox
                    WHERE next_at IS NOT NULL AND target = ?1 AND since < ?2 AND claim IS NULL
                    ORDER BY next_at LIMIT ?5)",
                params![target, since_before.0, now.0, error.as_bytes(), rows(limit)],
            )
        })
    }

    fn deliveries(&self, filter: &DeliveryFilter, limit: usize) -> StoreResult<Vec<Delivery>> {
        let state = match filter.state {
            None => "",
            Some(DeliveryState::Pending) => " AND next_at IS NOT NULL",
            Some(DeliveryState::Delivered) => " AND delivered_at IS NOT NULL",
            Some(DeliveryState::Dead) => " AND dead_at IS NOT NULL",
        };
        let execution = match filter.execution {
            None => " AND ?2 IS NULL",
            Some(_) => " AND execution = ?2",
        };
        let sql = format!(
            "SELECT {} FROM webhook_outbox WHERE seq < ?1{execution}{state}
             ORDER BY seq DESC LIMIT ?3",
            columns!()
        );
        let before = filter
            .before
            .map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        let execution = filter.execution.as_ref().map(ExecutionId::as_str);
        self.decision_readers.with(|conn| {
            all(
                conn,
                &sql,
                params![before, execution, rows(limit)],
                delivery,
            )
        })
    }

    fn delivery(&self, seq: u64) -> StoreResult<Option<Delivery>> {
        let sql = concat!("SELECT ", columns!(), " FROM webhook_outbox WHERE seq = ?1");
        self.decision_readers
            .with(|conn| first(conn, sql, [seq.cast_signed()], delivery))
    }

    fn redrive_deliveries(
        &self,
        only: Option<u64>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<u64> {
        self.decisions.lock().transact("redrive messages", |conn| {
            count(
                conn,
                "UPDATE webhook_outbox SET dead_at = NULL, next_at = ?1, since = ?1, tries = 0
                 WHERE seq IN (SELECT seq FROM webhook_outbox
                    WHERE dead_at IS NOT NULL AND (?2 IS NULL OR seq = ?2)
                    ORDER BY seq LIMIT ?3)",
                params![now.0, only.map(u64::cast_signed), rows(limit)],
            )
        })
    }

    fn delivery_counts(&self) -> StoreResult<DeliveryCounts> {
        let sql = "SELECT (SELECT count(*) FROM webhook_outbox WHERE next_at IS NOT NULL),
                          (SELECT count(*) FROM webhook_outbox WHERE dead_at IS NOT NULL),
                          (SELECT min(since) FROM webhook_outbox WHERE next_at IS NOT NULL)";
        let found = self.decision_readers.with(|conn| {
            first(conn, sql, [], |row| {
                let mut from = Columns::of(row);
                Ok(DeliveryCounts {
                    pending: from.number()?,
                    dead: from.number()?,
                    oldest: from.time_opt()?,
                })
            })
        })?;
        Ok(found.unwrap_or_default())
    }
}

fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn settle(conn: &Connection, token: &str, seq: i64, settled: &Settled) -> StoreResult<()> {
    match settled {
        Settled::Delivered { at, status } => count(
            conn,
            "UPDATE webhook_outbox SET tries = tries + 1, next_at = NULL, claim = NULL,
                tried_at = ?3, delivered_at = ?3, last_error = NULL, last_status = ?4
             WHERE seq = ?1 AND claim = ?2",
            params![seq, token, at.0, status],
        ),
        Settled::Failed {
            at,
            next_at,
            error,
            status,
        } => count(
            conn,
            "UPDATE webhook_outbox SET tries = tries + 1, next_at = ?4, claim = NULL,
                tried_at = ?3, last_error = ?5, last_status = ?6
             WHERE seq = ?1 AND claim = ?2",
            params![seq, token, at.0, next_at.0, error.as_bytes(), status],
        ),
        Settled::Dead { at, error, status } => count(
            conn,
            "UPDATE webhook_outbox SET tries = tries + 1, next_at = NULL, claim = NULL,
                tried_at = ?3, dead_at = ?3, last_error = ?4, last_status = ?5
             WHERE seq = ?1 AND claim = ?2",
            params![seq, token, at.0, error.as_bytes(), status],
        ),
        Settled::Postponed { next_at } => count(
            conn,
            "UPDATE webhook_outbox SET next_at = ?3, claim = NULL WHERE seq = ?1 AND claim = ?2",
            params![seq, token, next_at.0],
        ),
    }
    .map(|_| ())
}

fn delivery(row: &rusqlite::Row<'_>) -> StoreResult<Delivery> {
    let mut from = Columns::of(row);
    Ok(Delivery {
        seq: from.int()?.cast_unsigned(),
        execution: ExecutionId::trusted(from.text()?),
        run: RunId::trusted(from.text()?),
        status: from.code::<Status>()?,
        at: from.time()?,
        webhook: from.text()?.into(),
        since: from.time()?,
        tries: from.number()?,
        next_at: from.time_opt()?,
        claimed: from.text_opt()?.is_some(),
        tried_at: from.time_opt()?,
        delivered_at: from.time_opt()?,
        dead_at: from.time_opt()?,
        last_error: from
            .bytes_opt()?
            .map(|error| String::from_utf8_lossy(error).into_owned()),
        last_status: from.number_opt()?,
    })
}
