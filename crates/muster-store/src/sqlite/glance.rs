//! What an overview reads, from indices alone: a store of a hundred thousand executions is read
//! in milliseconds. Reads no payload and, but for the oldest of each queue, no row.

use muster_engine::row::EventRow;
use muster_wire::{AgentId, Category, ExecutionId, RunId, Status, Timestamp, WaitCause};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::codes::Code;
use super::known::{all, first, last_seq, readable};
use super::rows::{self, Columns, event_columns};
use crate::{AgentCount, FoundIds, Glance, Glanced, HeldCount, HeldKind, QueueCount, StoreResult};

/// The whole at a glance.
pub(super) fn glance(conn: &Connection, ask: &Glance) -> StoreResult<Glanced> {
    let before = ask.from - ask.span();
    let (started, ended) = (started(conn, ask)?, ended(conn, ask)?);
    Ok(Glanced {
        last_seq: last_seq(conn)?,
        running: running(conn)?,
        queued: queued(conn)?,
        held: held(conn)?,
        started,
        ended,
        failed: failed(conn, ask.from, Timestamp::NEVER)?,
        failed_before: failed(conn, before, ask.from)?,
    })
}

fn running(conn: &Connection) -> StoreResult<u64> {
    let sql = "SELECT count(*) FROM executions INDEXED BY executions_open
               WHERE status < 4 AND status = 1";
    Ok(first(conn, sql, [], |row| Columns::of(row).number())?.unwrap_or(0))
}

/// Of each queue how many, and the row that was accepted first: the least `seq`, which the index
/// has. SQLite gives the other columns of the row that has the minimum.
fn queued(conn: &Connection) -> StoreResult<Vec<QueueCount>> {
    let sql = "SELECT agent, count(*), class, turn, min(seq)
               FROM executions INDEXED BY executions_queue WHERE status = 0 GROUP BY agent";
    let queues = all(conn, sql, [], |row| {
        let mut from = Columns::of(row);
        let agent = AgentId::trusted(from.text()?);
        Ok((agent, from.number()?, from.int()?, from.int()?, from.int()?))
    })?;
    let oldest = "SELECT created_at FROM executions INDEXED BY executions_queue
                  WHERE status = 0 AND agent = ?1 AND class = ?2 AND turn = ?3 AND seq = ?4";
    let mut counts = Vec::with_capacity(queues.len());
    for (agent, count, class, turn, seq) in queues {
        let key = params![agent.as_str(), class, turn, seq];
        let at = first(conn, oldest, key, |row| Columns::of(row).time())?;
        counts.push(QueueCount {
            oldest_at: at.unwrap_or_default(),
            agent,
            count,
        });
    }
    Ok(counts)
}

fn held(conn: &Connection) -> StoreResult<Vec<HeldCount>> {
    let child = WaitCause::AwaitingChild.code();
    let sql = "SELECT status, wait_cause, count(*), min(created_at)
               FROM executions INDEXED BY executions_held WHERE status IN (2, 3)
               GROUP BY status, wait_cause";
    let rows = all(conn, sql, [], |row| {
        let mut from = Columns::of(row);
        let (status, cause): (Status, Option<i64>) = (from.code()?, from.int_opt()?);
        let kind = match status {
            Status::Paused => HeldKind::Paused,
            _ if cause == Some(child) => HeldKind::Child,
            _ => HeldKind::Approval,
        };
        Ok((kind, from.number()?, from.time()?))
    })?;
    let sql = "SELECT count(*), min(created_at) FROM executions INDEXED BY executions_absorbed
               WHERE status = 1 AND absorb_until IS NOT NULL";
    let absorbed = first(conn, sql, [], |row| {
        let mut from = Columns::of(row);
        Ok((from.number()?, from.time_opt()?))
    })?;
    let absorbed = match absorbed {
        Some((count, Some(at))) => vec![(HeldKind::Absorbed, count, at)],
        _ => Vec::new(),
    };
    let mut out: Vec<HeldCount> = Vec::new();
    for (kind, count, oldest_at) in rows.into_iter().chain(absorbed) {
        match out.iter_mut().find(|held| held.kind == kind) {
            Some(held) => {
                held.count += count;
                held.oldest_at = held.oldest_at.min(oldest_at);
            }
            None => out.push(HeldCount {
                kind,
                count,
                oldest_at,
            }),
        }
    }
    out.sort_by_key(|held| held.kind);
    Ok(out)
}

fn started(conn: &Connection, ask: &Glance) -> StoreResult<Vec<u64>> {
    let mut buckets = vec![0; ask.buckets];
    for (index, term) in [
        ("executions_roots", "root IS NULL"),
        ("executions_members", "root IS NOT NULL"),
    ] {
        count_into(conn, index, term, "created_at", ask, &mut buckets)?;
    }
    Ok(buckets)
}

fn ended(conn: &Connection, ask: &Glance) -> StoreResult<Vec<u64>> {
    let mut buckets = vec![0; ask.buckets];
    let term = "ended_at IS NOT NULL";
    count_into(
        conn,
        "executions_ended",
        term,
        "ended_at",
        ask,
        &mut buckets,
    )?;
    Ok(buckets)
}

fn count_into(
    conn: &Connection,
    index: &str,
    term: &str,
    column: &str,
    ask: &Glance,
    buckets: &mut [u64],
) -> StoreResult<()> {
    let sql = format!(
        "SELECT ({column} - ?1) / ?2, count(*) FROM executions INDEXED BY {index}
         WHERE {term} AND {column} >= ?1 AND {column} < ?3 GROUP BY 1"
    );
    let width = i64::try_from(ask.bucket.as_micros()).unwrap_or(i64::MAX);
    let until = ask.from + ask.span();
    let counts: Vec<(usize, u64)> = all(conn, &sql, [ask.from.0, width, until.0], |row| {
        let mut from = Columns::of(row);
        Ok((from.number()?, from.number()?))
    })?;
    for (bucket, count) in counts {
        if let Some(slot) = buckets.get_mut(bucket) {
            *slot += count;
        }
    }
    Ok(())
}

fn failed(
    conn: &Connection,
    from: Timestamp,
    until: Timestamp,
) -> StoreResult<Vec<(Category, u64)>> {
    let sql = "SELECT coalesce(error_category, 'internal_error'), count(*) AS n
               FROM executions INDEXED BY executions_ended
               WHERE ended_at IS NOT NULL AND ended_at >= ?1 AND ended_at < ?2
                 AND status IN (5, 7) GROUP BY 1 ORDER BY n DESC, 1";
    all(conn, sql, [from.0, until.0], |row| {
        let mut columns = Columns::of(row);
        Ok((Category::from(columns.text()?), columns.number()?))
    })
}

/// What ended of each agent, or of one.
pub(super) fn ended_by_agent(
    conn: &Connection,
    since: Timestamp,
    only: Option<&AgentId>,
) -> StoreResult<Vec<AgentCount>> {
    let (term, mut values) = match only {
        Some(id) => ("AND agent = ?2", vec![Value::Text(id.as_str().to_owned())]),
        None => ("", Vec::new()),
    };
    values.insert(0, Value::Integer(since.0));
    let sql = format!(
        "SELECT agent, count(*), sum(status IN (5, 7)) FROM executions INDEXED BY executions_ended
         WHERE ended_at IS NOT NULL AND ended_at >= ?1 {term} GROUP BY agent ORDER BY agent"
    );
    all(conn, &sql, params_from_iter(&values), |row| {
        let mut from = Columns::of(row);
        Ok(AgentCount {
            agent: AgentId::trusted(from.text()?),
            ended: from.number()?,
            failed: from.number()?,
        })
    })
}

/// Events about an agent's instances.
pub(super) fn events_of_instances(
    conn: &Connection,
    agent: &AgentId,
    until: Timestamp,
    limit: usize,
) -> StoreResult<Vec<EventRow>> {
    let sql = concat!(
        "SELECT ",
        event_columns!(),
        " FROM events INDEXED BY events_agent
          WHERE execution IS NULL AND instance IS NOT NULL AND agent = ?1 AND at < ?2
          ORDER BY seq DESC LIMIT ?3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    readable(conn, sql, params![agent.as_str(), until.0, limit], |row| {
        rows::event(&mut Columns::of(row))
    })
}

/// Ids that begin or end with a part.
pub(super) fn find_ids(conn: &Connection, part: &str, limit: usize) -> StoreResult<FoundIds> {
    Ok(FoundIds {
        runs: ids(conn, "run", "executions_run", part, limit, RunId::trusted)?,
        executions: ids(
            conn,
            "id",
            "executions_id",
            part,
            limit,
            ExecutionId::trusted,
        )?,
    })
}

/// From an index alone: a beginning is a range of it, an end is a walk that stops when it has
/// found enough. The latest minted first.
fn ids<T>(
    conn: &Connection,
    column: &str,
    index: &str,
    part: &str,
    limit: usize,
    read: impl Fn(std::sync::Arc<str>) -> T,
) -> StoreResult<Vec<T>> {
    let limit_of = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let text = |row: &rusqlite::Row<'_>| Columns::of(row).arc();
    let beginning = format!(
        "SELECT DISTINCT {column} FROM executions INDEXED BY {index}
         WHERE {column} >= ?1 AND {column} < ?2 ORDER BY {column} DESC LIMIT ?3"
    );
    // No id has a character behind this one.
    let behind = format!("{part}\u{7f}");
    let mut found = all(
        conn,
        &beginning,
        params![part, behind, limit_of(limit)],
        text,
    )?;
    let length = part.chars().count();
    let end = format!(
        "SELECT DISTINCT {column} FROM executions INDEXED BY {index}
         WHERE (substr({column}, -{length}) = ?1 OR substr({column}, -{length}) = ?2)
           AND length({column}) > {length} ORDER BY {column} DESC LIMIT ?3"
    );
    let upper = part.to_ascii_uppercase();
    let more = all(conn, &end, params![part, upper, limit_of(limit)], text)?;
    for id in more {
        if found.len() < limit && !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(found.into_iter().map(read).collect())
}
