//! Payloads: small ones beside the decisions, large ones in chunks in a file of their own.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use muster_engine::row::{Payload, PayloadKind};
use muster_wire::{ExecutionId, Timestamp};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::codes::Code;
use super::connection::failed;
use super::known::{all, first};
use super::replay;
use super::rows::Columns;
use super::write::slot;
use crate::{StoreError, StoreResult};

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;
/// Chunks in one transaction: a payload of many MiB lets the agents' memory in between.
const CHUNKS_AT_ONCE: usize = 8;

impl SqliteStore {
    /// Stores a large payload in chunks. What was there under the same name is replaced.
    pub(super) fn write_large(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
        bytes: &Bytes,
    ) -> StoreResult<()> {
        let at = self.now();
        self.delete_large(vec![(execution.clone(), Some(kind))])?;
        let count = bytes.len().div_ceil(CHUNK).max(1);
        for from in (0..count).step_by(CHUNKS_AT_ONCE) {
            let (owner, bytes) = (execution.clone(), bytes.clone());
            let written = self.payloads.write(move |conn| {
                for chunk in from..count.min(from + CHUNKS_AT_ONCE) {
                    let part = &bytes[chunk * CHUNK..bytes.len().min((chunk + 1) * CHUNK)];
                    put_chunk(conn, &owner, kind, chunk, part, at)?;
                }
                Ok(())
            });
            if let Err(error) = written {
                // A part is of no use; if this fails too, the leftovers' collector finds it.
                let _ = self.delete_large(vec![(execution.clone(), Some(kind))]);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes large payloads, of one kind or of all.
    pub(super) fn delete_large(
        &self,
        owners: Vec<(ExecutionId, Option<PayloadKind>)>,
    ) -> StoreResult<usize> {
        self.payloads.write(move |conn| {
            let mut gone = 0;
            let mut statement = conn
                .prepare_cached(
                    "DELETE FROM payloads WHERE owner = ?1 AND (?2 IS NULL OR kind = ?2)",
                )
                .map_err(failed("remove a payload"))?;
            for (owner, kind) in &owners {
                gone += statement
                    .execute(params![owner.as_str(), kind.map(Code::code)])
                    .map_err(failed("remove a payload"))?;
            }
            Ok(gone)
        })
    }

    /// Whether the result of an execution is still there.
    pub(super) fn has_result(&self, id: &ExecutionId) -> StoreResult<bool> {
        if self
            .decision_readers
            .with(|conn| replay::has_small_result(conn, id))?
        {
            return Ok(true);
        }
        let found = self.payload_readers.with(|conn| {
            let sql = "SELECT 1 FROM payloads WHERE owner = ?1 AND kind = ?2 LIMIT 1";
            let kind = PayloadKind::Result.code();
            first(conn, sql, params![id.as_str(), kind], |_| Ok(()))
        })?;
        Ok(found.is_some())
    }

    /// One payload, wherever it is. The result of an execution that took over another's end is
    /// that one's.
    pub(super) fn payload_of(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
    ) -> StoreResult<Option<Payload>> {
        let own = self.read_payload(execution, kind)?;
        if own.is_some() || kind != PayloadKind::Result {
            return Ok(own);
        }
        let row = self
            .decision_readers
            .with(|conn| super::known::execution(conn, execution))?;
        match row.as_ref().and_then(|row| row.replayed_from()) {
            Some(source) => self.read_payload(&ExecutionId::trusted(source), kind),
            None => Ok(None),
        }
    }

    /// How many bytes a payload has.
    pub(super) fn size_of(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
    ) -> StoreResult<Option<usize>> {
        match self.large_size(execution, kind)? {
            Some(size) => Ok(Some(size)),
            // Small, or another one's.
            None => Ok(self.payload_of(execution, kind)?.map(|it| it.len())),
        }
    }

    /// Some of the bytes of a payload: of a large one the chunks that hold them.
    pub(super) fn part_of(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
        part: Range<usize>,
    ) -> StoreResult<Option<Payload>> {
        let Some(size) = self.large_size(execution, kind)? else {
            let whole = self.payload_of(execution, kind)?;
            return Ok(whole.map(|whole| crate::cut(&whole, part)));
        };
        let end = part.end.min(size);
        let start = part.start.min(end);
        let (first_chunk, last_chunk) = (start / CHUNK, end.div_ceil(CHUNK));
        let number = |chunk: usize| i64::try_from(chunk).unwrap_or(i64::MAX);
        let mut found = BytesMut::with_capacity(last_chunk.saturating_sub(first_chunk) * CHUNK);
        self.payload_readers.read(|conn| {
            all(
                conn,
                "SELECT bytes FROM payloads WHERE owner = ?1 AND kind = ?2
                 AND chunk >= ?3 AND chunk < ?4 ORDER BY chunk",
                params![
                    execution.as_str(),
                    kind.code(),
                    number(first_chunk),
                    number(last_chunk)
                ],
                |row| {
                    found.extend_from_slice(Columns::of(row).bytes()?);
                    Ok(())
                },
            )
        })?;
        let from = first_chunk * CHUNK;
        Ok(Some(crate::cut(
            &Payload(found.freeze()),
            start - from..end - from,
        )))
    }

    /// The size of a payload that is in chunks.
    fn large_size(&self, execution: &ExecutionId, kind: PayloadKind) -> StoreResult<Option<usize>> {
        let size = self.payload_readers.with(|conn| {
            first(
                conn,
                "SELECT sum(length(bytes)) FROM payloads WHERE owner = ?1 AND kind = ?2",
                params![execution.as_str(), kind.code()],
                |row| Columns::of(row).number_opt::<usize>(),
            )
        })?;
        Ok(size.flatten())
    }

    /// One payload of its own, wherever it is.
    fn read_payload(
        &self,
        execution: &ExecutionId,
        kind: PayloadKind,
    ) -> StoreResult<Option<Payload>> {
        let small = self.decision_readers.with(|conn| {
            let sql = "SELECT p.bytes FROM executions e JOIN payloads p
                         ON p.slot = (e.n << 2) | ?2 WHERE e.id = ?1";
            first(
                conn,
                sql,
                params![execution.as_str(), slot(0, kind)],
                |row| Columns::of(row).payload(),
            )
        })?;
        if small.is_some() {
            return Ok(small);
        }
        self.payload_readers.read(|conn| {
            let size = first(
                conn,
                "SELECT sum(length(bytes)) FROM payloads WHERE owner = ?1 AND kind = ?2",
                params![execution.as_str(), kind.code()],
                |row| Columns::of(row).number_opt::<usize>(),
            )?;
            let Some(size) = size.flatten() else {
                return Ok(None);
            };
            let mut whole = BytesMut::with_capacity(size);
            all(
                conn,
                "SELECT bytes FROM payloads WHERE owner = ?1 AND kind = ?2 ORDER BY chunk",
                params![execution.as_str(), kind.code()],
                |row| {
                    whole.extend_from_slice(Columns::of(row).bytes()?);
                    Ok(())
                },
            )?;
            Ok(Some(Payload(whole.freeze())))
        })
    }

    /// Removes large payloads that a crash left without an execution that names them.
    pub(super) fn collect(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        let candidates = self.payload_readers.with(|conn| {
            let sql = "SELECT owner, kind FROM payloads INDEXED BY payloads_unsettled
                       WHERE settled = 0 AND chunk = 0 AND at < ?1 ORDER BY at LIMIT ?2";
            let limit = i64::try_from(limit.saturating_mul(4)).unwrap_or(i64::MAX);
            all(conn, sql, params![before.0, limit], |row| {
                let mut from = Columns::of(row);
                let owner = ExecutionId::trusted(from.text()?);
                Ok((owner, from.code::<PayloadKind>()?))
            })
        })?;
        let (mut named, mut left) = (Vec::new(), Vec::new());
        for (owner, kind) in candidates {
            match self.naming(&owner, kind)? {
                Naming::Named => named.push((owner, kind)),
                Naming::Open => {}
                Naming::Nobody if left.len() < limit => left.push((owner, Some(kind))),
                Naming::Nobody => {}
            }
        }
        let count = left.len();
        if count > 0 {
            self.delete_large(left)?;
        }
        if !named.is_empty() {
            self.payloads.write(move |conn| {
                for (owner, kind) in &named {
                    conn.prepare_cached(
                        "UPDATE payloads SET settled = 1 WHERE owner = ?1 AND kind = ?2",
                    )
                    .and_then(|mut s| s.execute(params![owner.as_str(), kind.code()]))
                    .map_err(failed("settle a payload"))?;
                }
                Ok(())
            })?;
        }
        Ok(count)
    }

    fn naming(&self, owner: &ExecutionId, kind: PayloadKind) -> StoreResult<Naming> {
        let found = self.decision_readers.with(|conn| {
            let sql = "SELECT status, result_size FROM executions WHERE id = ?1";
            first(conn, sql, [owner.as_str()], |row| {
                let mut from = Columns::of(row);
                Ok((from.int()?, from.int_opt()?))
            })
        })?;
        Ok(match (kind, found) {
            (_, None) => Naming::Nobody,
            (PayloadKind::Input, Some(_)) => Naming::Named,
            (_, Some((status, _))) if status < 4 => Naming::Open,
            (PayloadKind::Result, Some((_, None))) => Naming::Nobody,
            (PayloadKind::Result | PayloadKind::ErrorDetails | PayloadKind::Late, Some(_)) => {
                Naming::Named
            }
        })
    }
}

/// Whether an execution names a payload.
enum Naming {
    /// It does, and that is final.
    Named,
    /// It is open and may name it yet.
    Open,
    /// None does.
    Nobody,
}

fn put_chunk(
    conn: &Connection,
    owner: &ExecutionId,
    kind: PayloadKind,
    chunk: usize,
    bytes: &[u8],
    at: Timestamp,
) -> StoreResult<()> {
    let chunk = i64::try_from(chunk)
        .map_err(|_| StoreError::Conflict("a payload has too many chunks".into()))?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO payloads (owner, kind, chunk, bytes, at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .and_then(|mut s| s.execute(params![owner.as_str(), kind.code(), chunk, bytes, at.0]))
    .map_err(failed("store a payload"))?;
    Ok(())
}
