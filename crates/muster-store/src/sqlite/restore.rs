//! What a start reads. Independent of history: it touches open executions and the counts of
//! the queues, never what has finished or merely waits. A row that cannot be read is set aside and left where it is.

use std::collections::HashSet;

use muster_engine::row::{
    AttemptRow, ExecutionRow, InstanceRow, OpenExecution, QueueCount, RunRow, Snapshot,
};
use muster_wire::{AgentId, Timestamp};
use rusqlite::{Connection, Row, params};

use super::connection::failed;
use super::known::{all, first, last_seq};
use super::rows::{self, Columns, execution_columns};
use crate::{QuarantineItem, Restored, StoreError, StoreResult};

/// Over so many unreadable rows in one start, something else is wrong.
const UNREADABLE_MAX: usize = 100;
/// An instance that is gone for longer is no longer read.
const GONE_US: i64 = 24 * 3600 * 1_000_000;

/// Reads everything, or says why not. Writes nothing.
pub(super) fn restore(conn: &Connection, now: Timestamp) -> StoreResult<Restored> {
    let mut aside = Aside::of(conn, now)?;
    let snapshot = Snapshot {
        fleet: super::fleet::snapshot(conn, now, &mut aside)?,
        last_seq: last_seq(conn)?,
        last_at: first(
            conn,
            "SELECT at FROM events ORDER BY seq DESC LIMIT 1",
            [],
            |row| Columns::of(row).time(),
        )?
        .unwrap_or_default(),
        agents: aside.rows(
            conn,
            "agent",
            &format!("SELECT id, {} FROM agents ORDER BY id", rows::AGENT_COLUMNS),
            [],
            |row| rows::agent(&mut Columns::from(row, 1)),
        )?,
        instances: instances(conn, now, &mut aside)?,
        open: open(conn, &mut aside)?,
        queues: queues(conn)?,
        runs: runs(conn, &mut aside)?,
        approvals: aside.rows(
            conn,
            "approval",
            &format!(
                "SELECT execution || ' ' || request, {} FROM approvals INDEXED BY approvals_open
                 WHERE decided_at IS NULL OR (told IS NULL AND decision IS NOT NULL)",
                rows::APPROVAL_COLUMNS
            ),
            [],
            |row| rows::approval(&mut Columns::from(row, 1)),
        )?,
        hold: first(
            conn,
            "SELECT value FROM meta WHERE name = 'hold'",
            [],
            |row| Columns::of(row).arc(),
        )?,
        held_by: super::holds::read(conn)?,
    };
    if aside.new.len() > UNREADABLE_MAX {
        return Err(StoreError::TooManyUnreadable(aside.new.len()));
    }
    Ok(Restored {
        snapshot,
        set_aside: aside.new,
    })
}

/// Rows that could not be read. Those of earlier starts are known and passed over.
pub(super) struct Aside {
    now: Timestamp,
    known: HashSet<String>,
    new: Vec<QuarantineItem>,
}

impl Aside {
    fn of(conn: &Connection, now: Timestamp) -> StoreResult<Self> {
        let known = all(
            conn,
            "SELECT id FROM quarantine WHERE kind = 'row'",
            [],
            |row| Ok(Columns::of(row).text()?.to_owned()),
        )?;
        Ok(Self {
            now,
            known: known.into_iter().collect(),
            new: Vec::new(),
        })
    }

    /// Reads rows whose first column identifies them.
    pub(super) fn rows<T>(
        &mut self,
        conn: &Connection,
        noun: &str,
        sql: &str,
        params: impl rusqlite::Params,
        mut read: impl FnMut(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Vec<T>> {
        let found = all(conn, sql, params, |row| match read(row) {
            Ok(value) => Ok(Some(value)),
            Err(StoreError::Unreadable(error)) => {
                self.put(noun, row, error);
                Ok(None)
            }
            Err(error) => Err(error),
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    fn put(&mut self, noun: &str, row: &Row<'_>, error: String) {
        let about = shown(row, 0);
        let id = format!("row:{noun}:{about}");
        if self.known.contains(&id) {
            return;
        }
        self.new.push(QuarantineItem {
            id,
            at: self.now,
            kind: "row".into(),
            about: format!("{noun} {about}"),
            error,
            what: described(row),
        });
    }
}

/// The columns of a row as text, short, and nothing of those that may hold what people sent.
fn described(row: &Row<'_>) -> String {
    let statement = row.as_ref();
    let hidden = [
        "error_text",
        "usage",
        "registration",
        "evidence",
        "functions",
        "secret_hash",
        "detail",
        "spec",
        "idempotency_key",
    ];
    (1..statement.column_count())
        .filter_map(|at| {
            let name = statement.column_name(at).ok()?;
            (!hidden.contains(&name)).then(|| format!("{name}={}", shown(row, at)))
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn shown(row: &Row<'_>, at: usize) -> String {
    use rusqlite::types::ValueRef;
    match row.get_ref(at) {
        Ok(ValueRef::Null) => "NULL".into(),
        Ok(ValueRef::Integer(value)) => value.to_string(),
        Ok(ValueRef::Real(value)) => value.to_string(),
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => {
            let text = String::from_utf8_lossy(bytes);
            text.chars().take(200).collect()
        }
        Err(error) => format!("({error})"),
    }
}

fn instances(
    conn: &Connection,
    now: Timestamp,
    aside: &mut Aside,
) -> StoreResult<Vec<InstanceRow>> {
    aside.rows(
        conn,
        "instance",
        &format!(
            "SELECT rowid, {} FROM instances
             WHERE gone_at IS NULL OR orphans_at IS NOT NULL OR gone_at > ?1
             ORDER BY agent, registered_at, id",
            rows::INSTANCE_COLUMNS
        ),
        params![now.0.saturating_sub(GONE_US)],
        |row| rows::instance(&mut Columns::from(row, 1)),
    )
}

fn open(conn: &Connection, aside: &mut Aside) -> StoreResult<Vec<OpenExecution>> {
    let sql = concat!(
        "SELECT n,",
        execution_columns!(),
        " FROM executions INDEXED BY executions_open
          WHERE status < 4 AND status IN (1, 2, 3) ORDER BY n"
    );
    let rows: Vec<(i64, ExecutionRow)> = aside.rows(conn, "execution", sql, [], |row| {
        let mut from = Columns::of(row);
        Ok((from.int()?, rows::execution(&mut from)?))
    })?;
    rows.into_iter()
        .map(|(n, row)| {
            Ok(OpenExecution {
                attempt: latest_attempt(conn, n, &row, aside)?,
                row,
            })
        })
        .collect()
}

fn latest_attempt(
    conn: &Connection,
    n: i64,
    execution: &ExecutionRow,
    aside: &mut Aside,
) -> StoreResult<Option<AttemptRow>> {
    let sql = concat!(
        "SELECT execution || '~' || n,",
        rows::attempt_columns!(),
        " FROM attempts WHERE execution = ?1 ORDER BY n DESC LIMIT 1"
    );
    let found = aside.rows(conn, "attempt", sql, [n], |row| {
        rows::attempt(&execution.id, &mut Columns::from(row, 1))
    })?;
    Ok(found.into_iter().next())
}

fn queues(conn: &Connection) -> StoreResult<Vec<QueueCount>> {
    all(
        conn,
        "SELECT agent, class, turn, count FROM queue_counts ORDER BY agent, class, turn",
        [],
        |row| {
            let mut from = Columns::of(row);
            Ok(QueueCount {
                agent: AgentId::trusted(from.text()?),
                class: from.number()?,
                turn: from.number()?,
                count: from.number()?,
            })
        },
    )
}

/// Marked runs with open members.
fn runs(conn: &Connection, aside: &mut Aside) -> StoreResult<Vec<RunRow>> {
    aside.rows(
        conn,
        "run",
        &format!(
            "SELECT id, {} FROM runs r WHERE EXISTS (
            SELECT 1 FROM executions INDEXED BY executions_open
            WHERE status < 4 AND status IN (0, 1, 2, 3) AND run = r.id)",
            rows::RUN_COLUMNS
        ),
        [],
        |row| rows::run(&mut Columns::from(row, 1)),
    )
}

/// Writes what was set aside.
pub(super) fn set_aside(conn: &Connection, item: &QuarantineItem) -> StoreResult<()> {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO quarantine (id, at, kind, about, error, what)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .and_then(|mut s| {
        s.execute(params![
            item.id,
            item.at.0,
            item.kind,
            item.about.as_bytes(),
            item.error.as_bytes(),
            item.what.as_bytes()
        ])
    })
    .map_err(failed("set something aside"))?;
    Ok(())
}
