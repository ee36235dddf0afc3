//! The rows of an agent and of its instances.

use muster_engine::row::{AgentRow, AgentTags, InstanceRow};
use muster_wire::AgentId;
use rusqlite::{Connection, params};

use super::super::connection::failed;
use super::super::rows::to_json;
use crate::{StoreError, StoreResult};

pub(super) fn put_agent(conn: &Connection, row: &AgentRow) -> StoreResult<()> {
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

pub(super) fn put_instance(conn: &Connection, row: &InstanceRow) -> StoreResult<()> {
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

fn tags_json(tags: &AgentTags) -> StoreResult<Option<Vec<u8>>> {
    if *tags == AgentTags::default() {
        return Ok(None);
    }
    to_json(tags).map(Some)
}

pub(super) fn set_agent_tags(
    conn: &Connection,
    agent: &AgentId,
    tags: &AgentTags,
) -> StoreResult<()> {
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
