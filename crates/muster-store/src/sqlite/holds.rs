//! Who holds all, or one agent: kept beside the hold, under names of its own, so that a store of
//! an older build lacks nothing.

use muster_engine::row::HeldBy;
use muster_wire::{AgentId, Timestamp};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::connection::failed;
use super::known::all;
use super::rows::Columns;
use crate::StoreResult;

/// Of all; that of an agent has its id behind a colon.
const NAME: &str = "hold_by";

#[derive(Serialize, Deserialize)]
struct Kept {
    by: String,
    at: i64,
    reason: String,
}

fn name(agent: Option<&AgentId>) -> String {
    agent.map_or_else(|| NAME.to_owned(), |agent| format!("{NAME}:{agent}"))
}

/// Keeps it, or forgets it.
pub(super) fn put(
    conn: &Connection,
    agent: Option<&AgentId>,
    by: Option<&HeldBy>,
) -> StoreResult<()> {
    let name = name(agent);
    match by {
        Some(by) => {
            let kept = Kept {
                by: by.by.to_string(),
                at: by.at.0,
                reason: by.reason.to_string(),
            };
            let text = serde_json::to_vec(&kept).unwrap_or_default();
            conn.prepare_cached("INSERT OR REPLACE INTO meta (name, value) VALUES (?1, ?2)")
                .and_then(|mut s| s.execute(params![name, text]))
        }
        None => conn
            .prepare_cached("DELETE FROM meta WHERE name = ?1")
            .and_then(|mut s| s.execute([name])),
    }
    .map_err(failed("keep who holds"))?;
    Ok(())
}

/// All that is kept. What cannot be read is as if it were not there: it decides nothing.
pub(super) fn read(conn: &Connection) -> StoreResult<Vec<(Option<AgentId>, HeldBy)>> {
    let sql = "SELECT name, value FROM meta WHERE name = ?1 OR (name > ?2 AND name < ?3)";
    let values = [NAME.to_owned(), format!("{NAME}:"), format!("{NAME};")];
    let found = all(conn, sql, values, |row| {
        let mut from = Columns::of(row);
        let name = from.text()?.to_owned();
        Ok((name, from.bytes_opt()?.map(<[u8]>::to_vec)))
    })?;
    let known = |(name, value): (String, Option<Vec<u8>>)| {
        let kept: Kept = serde_json::from_slice(&value?).ok()?;
        let agent = match name.strip_prefix(NAME)?.strip_prefix(':') {
            Some(id) => Some(AgentId::parse(id).ok()?),
            None => None,
        };
        let by = HeldBy {
            by: kept.by.into(),
            at: Timestamp(kept.at),
            reason: kept.reason.into(),
        };
        Some((agent, by))
    };
    Ok(found.into_iter().filter_map(known).collect())
}
