//! Reading rows back: columns in a fixed order into the engine's rows. What cannot be
//! understood is [`StoreError::Unreadable`], so that one bad row harms one row.

use std::sync::Arc;

use bytes::Bytes;
use muster_engine::row::{
    AgentRow, ApprovalRow, AttemptRow, EventRow, ExecutionRow, InstanceRow, Links, Payload,
    QueueKey, RunRow, Wait,
};
use muster_wire::{
    AgentId, Category, ExecutionId, FunctionName, InstanceId, NodeId, RunId, SecretHash, Timestamp,
    WorkerId,
};
use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::codes::Code;
use crate::{StoreError, StoreResult};

/// The columns that [`execution`] reads. No payload is among them.
macro_rules! execution_columns {
    () => {
        "id,run,root,parent,depth,kind,lane,agent,function,function_kind,status,status_reason,\
         error_category,error_text,error_status,class,turn,seq,attempt,holds,over_cap,created_at,\
         started_at,ended_at,active_us,clock_from,deadline_us,absorb_until,input_size,input_hash,\
         result_size,key_hash,principal,session,actor,traceparent,usage,origin,late_outcome,\
         wait_cause,wait_reference,wait_until,resume_to,on_parent_end,replay,replay_of,restart_of,\
         restarted_as,webhook"
    };
}
/// The columns that [`attempt`] reads after the execution's id.
macro_rules! attempt_columns {
    () => {
        "n,instance,candidates,secret_hash,sent_at,accepted_at,ended_at,outcome,evidence"
    };
}
/// The columns that [`event`] reads.
macro_rules! event_columns {
    () => {
        "seq,at,kind,execution,run,agent,function,instance,node,worker,attempt,status,reason,\
         category,text"
    };
}
pub(crate) use {attempt_columns, event_columns, execution_columns};

/// Reads the columns of a row from left to right.
pub(crate) struct Columns<'r> {
    row: &'r Row<'r>,
    at: usize,
}

impl<'r> Columns<'r> {
    /// From the first column.
    pub(crate) fn of(row: &'r Row<'r>) -> Self {
        Self { row, at: 0 }
    }

    /// From a later column.
    pub(crate) fn from(row: &'r Row<'r>, at: usize) -> Self {
        Self { row, at }
    }

    fn next(&mut self) -> StoreResult<ValueRef<'r>> {
        let at = self.at;
        self.at += 1;
        self.row
            .get_ref(at)
            .map_err(|e| StoreError::Unreadable(format!("column {at}: {e}")))
    }

    fn wrong(&self, wanted: &str, found: ValueRef<'_>) -> StoreError {
        let column = self.at - 1;
        let name = self.row.as_ref().column_name(column).unwrap_or("?");
        StoreError::Unreadable(format!(
            "{name}: {wanted} wanted, {} found",
            found.data_type()
        ))
    }

    pub(crate) fn int(&mut self) -> StoreResult<i64> {
        match self.next()? {
            ValueRef::Integer(value) => Ok(value),
            other => Err(self.wrong("a number", other)),
        }
    }

    pub(crate) fn int_opt(&mut self) -> StoreResult<Option<i64>> {
        match self.next()? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(value) => Ok(Some(value)),
            other => Err(self.wrong("a number", other)),
        }
    }

    pub(crate) fn number<T: TryFrom<i64>>(&mut self) -> StoreResult<T> {
        let value = self.int()?;
        T::try_from(value).map_err(|_| self.wrong("a smaller number", ValueRef::Integer(value)))
    }

    pub(crate) fn number_opt<T: TryFrom<i64>>(&mut self) -> StoreResult<Option<T>> {
        match self.int_opt()? {
            None => Ok(None),
            Some(value) => T::try_from(value)
                .map(Some)
                .map_err(|_| self.wrong("a smaller number", ValueRef::Integer(value))),
        }
    }

    pub(crate) fn flag(&mut self) -> StoreResult<bool> {
        Ok(self.int()? != 0)
    }

    pub(crate) fn time(&mut self) -> StoreResult<Timestamp> {
        Ok(Timestamp(self.int()?))
    }

    pub(crate) fn time_opt(&mut self) -> StoreResult<Option<Timestamp>> {
        Ok(self.int_opt()?.map(Timestamp))
    }

    pub(crate) fn bytes(&mut self) -> StoreResult<&'r [u8]> {
        match self.next()? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(bytes),
            other => Err(self.wrong("bytes", other)),
        }
    }

    pub(crate) fn bytes_opt(&mut self) -> StoreResult<Option<&'r [u8]>> {
        match self.next()? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(Some(bytes)),
            other => Err(self.wrong("bytes", other)),
        }
    }

    pub(crate) fn text(&mut self) -> StoreResult<&'r str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.wrong("UTF-8", ValueRef::Blob(bytes)))
    }

    pub(crate) fn text_opt(&mut self) -> StoreResult<Option<&'r str>> {
        match self.bytes_opt()? {
            None => Ok(None),
            Some(bytes) => std::str::from_utf8(bytes)
                .map(Some)
                .map_err(|_| self.wrong("UTF-8", ValueRef::Blob(bytes))),
        }
    }

    pub(crate) fn arc(&mut self) -> StoreResult<Arc<str>> {
        Ok(Arc::from(self.text()?))
    }

    pub(crate) fn arc_opt(&mut self) -> StoreResult<Option<Arc<str>>> {
        Ok(self.text_opt()?.map(Arc::from))
    }

    pub(crate) fn payload(&mut self) -> StoreResult<Payload> {
        Ok(Payload(Bytes::copy_from_slice(self.bytes()?)))
    }

    pub(crate) fn payload_opt(&mut self) -> StoreResult<Option<Payload>> {
        let bytes = self.bytes_opt()?;
        Ok(bytes.map(|b| Payload(Bytes::copy_from_slice(b))))
    }

    pub(crate) fn hash<const N: usize>(&mut self) -> StoreResult<[u8; N]> {
        let bytes = self.bytes()?;
        bytes
            .try_into()
            .map_err(|_| self.wrong("a hash of another length", ValueRef::Blob(bytes)))
    }

    pub(crate) fn code<T: Code>(&mut self) -> StoreResult<T> {
        let code = self.int()?;
        T::from_code(code)
            .ok_or_else(|| StoreError::Unreadable(format!("unknown {} {code}", T::NOUN)))
    }

    pub(crate) fn code_opt<T: Code>(&mut self) -> StoreResult<Option<T>> {
        match self.int_opt()? {
            None => Ok(None),
            Some(code) => T::from_code(code)
                .map(Some)
                .ok_or_else(|| StoreError::Unreadable(format!("unknown {} {code}", T::NOUN))),
        }
    }
}

/// An execution from `execution_columns!`.
pub(crate) fn execution(from: &mut Columns<'_>) -> StoreResult<ExecutionRow> {
    let id = ExecutionId::trusted(from.text()?);
    let run = RunId::trusted(from.text()?);
    let root = from.text_opt()?;
    Ok(ExecutionRow {
        root: root.map_or_else(|| id.clone(), ExecutionId::trusted),
        id,
        run,
        parent: from.text_opt()?.map(ExecutionId::trusted),
        depth: from.number()?,
        kind: from.code()?,
        lane: from.code()?,
        agent: AgentId::trusted(from.text()?),
        function: FunctionName::trusted(from.text()?),
        function_kind: from.code()?,
        status: from.code()?,
        status_reason: from.arc_opt()?,
        error_category: from.text_opt()?.map(Category::from),
        error_text: from.payload_opt()?,
        error_status: from.number_opt()?,
        queue: QueueKey {
            class: from.number()?,
            turn: from.number()?,
            seq: from.number()?,
        },
        attempt: from.number()?,
        holds: split_ids(from.text_opt()?),
        over_cap: from.flag()?,
        created_at: from.time()?,
        started_at: from.time_opt()?,
        ended_at: from.time_opt()?,
        active_us: from.int()?,
        clock_from: from.time_opt()?,
        deadline_us: from.int()?,
        absorb_until: from.time_opt()?,
        input_size: from.number()?,
        input_hash: from.hash()?,
        result_size: from.number_opt()?,
        key_hash: from.arc_opt()?,
        principal: from.arc()?,
        session: from.arc_opt()?,
        actor: from.arc_opt()?,
        traceparent: from.arc_opt()?,
        usage: from.payload_opt()?,
        origin: from.code()?,
        late_outcome: from.code_opt()?,
        wait: wait(from)?,
        resume_to: from.code_opt()?,
        on_parent_end: from.code()?,
        links: links(from)?,
    })
}

fn wait(from: &mut Columns<'_>) -> StoreResult<Option<Box<Wait>>> {
    let cause = from.code_opt()?;
    let reference = from.arc_opt()?;
    let until = from.time_opt()?;
    Ok(cause.map(|cause| {
        Box::new(Wait {
            cause,
            reference: reference.unwrap_or_default(),
            until,
        })
    }))
}

fn links(from: &mut Columns<'_>) -> StoreResult<Option<Box<Links>>> {
    let links = Links {
        replay: json_opt(from.bytes_opt()?)?,
        replay_of: from.text_opt()?.map(ExecutionId::trusted),
        restart_of: from.text_opt()?.map(ExecutionId::trusted),
        restarted_as: from.text_opt()?.map(ExecutionId::trusted),
        webhook: from.arc_opt()?,
    };
    Ok((links != Links::default()).then(|| Box::new(links)))
}

/// The columns that [`approval`] reads.
pub(crate) const APPROVAL_COLUMNS: &str = "execution,request,run,agent,attempt,request_url,\
     callback_url,requested_at,expires_at,decision,decided_at,decided_by,feedback,response,told";

/// An approval from [`APPROVAL_COLUMNS`].
pub(crate) fn approval(from: &mut Columns<'_>) -> StoreResult<ApprovalRow> {
    Ok(ApprovalRow {
        execution: ExecutionId::trusted(from.text()?),
        request: from.arc()?,
        run: RunId::trusted(from.text()?),
        agent: AgentId::trusted(from.text()?),
        attempt: from.number()?,
        request_url: from.arc_opt()?,
        callback_url: from.arc_opt()?,
        requested_at: from.time()?,
        expires_at: from.time()?,
        decision: from.code_opt()?,
        decided_at: from.time_opt()?,
        decided_by: from.arc_opt()?,
        feedback: from.payload_opt()?,
        response: from.payload_opt()?,
        told: from.arc_opt()?,
    })
}

/// Ids in one column, each on its own line: no id has a line break. No ids are NULL.
pub(crate) fn join_ids<'a>(ids: impl Iterator<Item = &'a str>) -> Option<String> {
    ids.fold(None, |line, id| {
        Some(match line {
            None => id.to_owned(),
            Some(line) => line + "\n" + id,
        })
    })
}

fn split_ids(line: Option<&str>) -> Vec<AgentId> {
    line.map_or_else(Vec::new, |line| {
        line.split('\n').map(AgentId::trusted).collect()
    })
}

/// An attempt from `attempt_columns!`.
pub(crate) fn attempt(execution: &ExecutionId, from: &mut Columns<'_>) -> StoreResult<AttemptRow> {
    Ok(AttemptRow {
        execution: execution.clone(),
        n: from.number()?,
        instance: InstanceId::trusted(from.text()?),
        candidates: json_opt(from.bytes_opt()?)?.unwrap_or_default(),
        secret_hash: SecretHash(from.hash()?),
        sent_at: from.time()?,
        accepted_at: from.time_opt()?,
        ended_at: from.time_opt()?,
        outcome: from.code_opt()?,
        evidence: from.payload_opt()?,
    })
}

/// An event from `event_columns!`.
pub(crate) fn event(from: &mut Columns<'_>) -> StoreResult<EventRow> {
    Ok(EventRow {
        seq: from.number()?,
        at: from.time()?,
        kind: from.code()?,
        execution: from.text_opt()?.map(ExecutionId::trusted),
        run: from.text_opt()?.map(RunId::trusted),
        agent: from.text_opt()?.map(AgentId::trusted),
        function: from.text_opt()?.map(FunctionName::trusted),
        instance: from.text_opt()?.map(InstanceId::trusted),
        node: from.text_opt()?.map(NodeId::trusted),
        worker: from.text_opt()?.map(WorkerId::trusted),
        attempt: from.number_opt()?,
        status: from.code_opt()?,
        reason: from.arc_opt()?,
        category: from.text_opt()?.map(Category::from),
        text: from.arc_opt()?,
    })
}

/// The columns that [`agent`] reads.
pub(crate) const AGENT_COLUMNS: &str =
    "id,principal,created_at,registered_at,registration,held,tags,cap";

/// An agent from [`AGENT_COLUMNS`].
pub(crate) fn agent(from: &mut Columns<'_>) -> StoreResult<AgentRow> {
    Ok(AgentRow {
        id: AgentId::trusted(from.text()?),
        principal: from.arc()?,
        created_at: from.time()?,
        registered_at: from.time()?,
        registration: from.payload()?,
        held: from.flag()?,
        tags: json_opt(from.bytes_opt()?)?.unwrap_or_default(),
        cap: from.number_opt()?,
    })
}

/// The columns that [`instance`] reads.
pub(crate) const INSTANCE_COLUMNS: &str = "agent,id,base_url,version,functions,registered_at,\
     renewed_at,goodbye_at,gone_at,gone_evidence,orphans_at,worker";

/// An instance from [`INSTANCE_COLUMNS`].
pub(crate) fn instance(from: &mut Columns<'_>) -> StoreResult<InstanceRow> {
    Ok(InstanceRow {
        agent: AgentId::trusted(from.text()?),
        id: InstanceId::trusted(from.text()?),
        base_url: from.arc()?,
        version: from.arc()?,
        functions: Arc::new(json_opt(Some(from.bytes()?))?.unwrap_or_default()),
        registered_at: from.time()?,
        renewed_at: from.time()?,
        goodbye_at: from.time_opt()?,
        gone_at: from.time_opt()?,
        gone_evidence: from.arc_opt()?,
        orphans_at: from.time_opt()?,
        worker: from.arc_opt()?,
    })
}

/// The columns that [`run`] reads.
pub(crate) const RUN_COLUMNS: &str = "id,root,cancelled_at,cancelled_by,paused_at,paused_by,source";

/// A run's marks from [`RUN_COLUMNS`].
pub(crate) fn run(from: &mut Columns<'_>) -> StoreResult<RunRow> {
    Ok(RunRow {
        id: RunId::trusted(from.text()?),
        root: ExecutionId::trusted(from.text()?),
        cancelled_at: from.time_opt()?,
        cancelled_by: from.arc_opt()?,
        paused_at: from.time_opt()?,
        paused_by: from.arc_opt()?,
        source: from.text_opt()?.map(RunId::trusted),
    })
}

/// JSON that we wrote ourselves.
pub(crate) fn json_opt<T: serde::de::DeserializeOwned>(
    bytes: Option<&[u8]>,
) -> StoreResult<Option<T>> {
    bytes
        .map(|b| serde_json::from_slice(b).map_err(|e| StoreError::Unreadable(e.to_string())))
        .transpose()
}

/// JSON of something of ours; our own types always have one.
pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> StoreResult<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| StoreError::Conflict(e.to_string()))
}
