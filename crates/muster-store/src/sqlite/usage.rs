//! Usage in SQLite: a report becomes numbers in the commit that ends its execution; sums are one
//! walk over an index that has everything.

use muster_engine::row::Payload;
use muster_wire::{AgentId, FunctionName, RunId};
use rusqlite::{Connection, Row, params};
use rustc_hash::FxHashMap;

use super::connection::failed;
use crate::StoreResult;
use crate::usage::{DAY, Report, Sums, UsageAnswer, UsageBy, UsageKey, UsageQuestion};

/// Writes down the numbers of an execution's report.
pub(super) fn write(conn: &Connection, n: i64, report: &Payload) -> rusqlite::Result<()> {
    let read = Report::read(&report.0);
    conn.prepare_cached(
        "UPDATE executions SET usage_seen = ?2, usage_input = ?3, usage_output = ?4,
            usage_total = ?5, usage_cache_read = ?6, usage_cache_written = ?7, usage_models = ?8,
            usage_cost = ?9 WHERE n = ?1",
    )?
    .execute(params![
        n,
        read.seen(),
        read.input.map(u64::cast_signed),
        read.output.map(u64::cast_signed),
        read.total.map(u64::cast_signed),
        read.cache_read.map(u64::cast_signed),
        read.cache_written.map(u64::cast_signed),
        read.models.map(u64::cast_signed),
        read.cost.map(u64::cast_signed),
    ])?;
    Ok(())
}

/// Reads the reports that an older build only kept, once.
pub(super) fn catch_up(conn: &Connection) -> StoreResult<()> {
    const DONE: &str = "usage_read";
    let doing = || failed("read the usage that was kept");
    let done = conn
        .prepare("SELECT 1 FROM meta WHERE name = ?1")
        .and_then(|mut s| s.exists([DONE]))
        .map_err(doing())?;
    if done {
        return Ok(());
    }
    let change = conn.unchecked_transaction().map_err(doing())?;
    let kept = conn
        .prepare("SELECT n, usage FROM executions WHERE usage IS NOT NULL")
        .and_then(|mut s| {
            s.query_map([], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
            })?
            .collect::<rusqlite::Result<Vec<_>>>()
        })
        .map_err(doing())?;
    for (n, report) in kept {
        write(conn, n, &Payload(report.into())).map_err(doing())?;
    }
    conn.execute("INSERT INTO meta (name, value) VALUES (?1, '1')", [DONE])
        .map_err(doing())?;
    change.commit().map_err(doing())
}

const NUMBERS: &str = "usage_seen, usage_input, usage_output, usage_total, usage_cache_read,
    usage_cache_written, usage_models, usage_cost";

/// The numbers of a row, from a column on.
fn report(row: &Row<'_>, from: usize) -> rusqlite::Result<Option<Report>> {
    let Some(seen) = row.get::<_, Option<i64>>(from)? else {
        return Ok(None);
    };
    let number = |at: usize| {
        let value: Option<i64> = row.get(from + at)?;
        Ok::<_, rusqlite::Error>(value.map(i64::cast_unsigned))
    };
    let report = Report {
        input: number(1)?,
        output: number(2)?,
        total: number(3)?,
        cache_read: number(4)?,
        cache_written: number(5)?,
        models: number(6)?,
        cost: number(7)?,
        ..Report::default()
    };
    Ok(Some(report.seen_as(seen)))
}

/// Sums as asked. Walks what ended in that time.
pub(super) fn sums(conn: &Connection, question: &UsageQuestion) -> StoreResult<UsageAnswer> {
    // A group's key is text, so that most rows are counted without an allocation.
    let key = match question.by {
        UsageBy::Run => "run",
        UsageBy::Agent => "agent",
        UsageBy::Function => "agent || char(10) || function",
        UsageBy::Day => "NULL",
    };
    let sql = format!(
        "SELECT ended_at, {key}, {NUMBERS} FROM executions INDEXED BY executions_usage
         WHERE ended_at IS NOT NULL AND ended_at >= ?1 AND ended_at < ?2"
    );
    let mut groups: FxHashMap<String, Sums> = FxHashMap::default();
    let mut days: FxHashMap<i64, Sums> = FxHashMap::default();
    let mut total = Sums::default();
    let mut walk = || -> rusqlite::Result<()> {
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query(params![question.from.0, question.to.0])?;
        while let Some(row) = rows.next()? {
            let report = report(row, 2)?;
            total.count(report.as_ref());
            if question.by == UsageBy::Day {
                let day = row.get::<_, i64>(0)?.div_euclid(DAY);
                days.entry(day).or_default().count(report.as_ref());
                continue;
            }
            let key = row.get_ref(1)?.as_str()?;
            match groups.get_mut(key) {
                Some(sums) => sums.count(report.as_ref()),
                None => groups
                    .entry(key.to_owned())
                    .or_default()
                    .count(report.as_ref()),
            }
        }
        Ok(())
    };
    walk().map_err(failed("sum up usage"))?;
    let days = days
        .into_iter()
        .map(|(day, sums)| (UsageKey::Day(day), sums));
    let groups = groups.into_iter().map(|(key, sums)| {
        let key = match question.by {
            UsageBy::Run => UsageKey::Run(RunId::trusted(key)),
            UsageBy::Agent => UsageKey::Agent(AgentId::trusted(key)),
            UsageBy::Function | UsageBy::Day => {
                let (agent, function) = key.split_once('\n').unwrap_or((&key, ""));
                UsageKey::Function(AgentId::trusted(agent), FunctionName::trusted(function))
            }
        };
        (key, sums)
    });
    Ok(UsageAnswer::of(groups.chain(days), total, question))
}

/// Sums of one run, of what has ended of it.
pub(super) fn of_run(conn: &Connection, run: &RunId) -> StoreResult<Sums> {
    let sql = format!(
        "SELECT {NUMBERS} FROM executions INDEXED BY executions_run
         WHERE run = ?1 AND ended_at IS NOT NULL"
    );
    let mut sums = Sums::default();
    let mut walk = || -> rusqlite::Result<()> {
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query([run.as_str()])?;
        while let Some(row) = rows.next()? {
            sums.count(report(row, 0)?.as_ref());
        }
        Ok(())
    };
    walk().map_err(failed("sum up the usage of a run"))?;
    Ok(sums)
}
