//! The questions of lists: executions, runs, agents, events. Each names the index it walks, so
//! that a page costs what it shows and not what there is. Counts come from indices that hold
//! what they are narrowed by. Reads no payload.

use std::borrow::Cow;

use muster_engine::row::{ApprovalRow, EventRow, ExecutionRow};
use muster_wire::{AgentId, ExecutionId, RunId, Status, WaitCause};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::codes::Code;
use super::connection::failed;
use super::known::{all, first, readable};
use super::rows::{self, Columns, event_columns, execution_columns};
use crate::question::{OPEN_FIRST, run_status};
use crate::{
    Also, ApprovalFilter, ExecutionFilter, Page, RunFilter, RunSummary, StoreResult, StoredAgent,
};

/// Up to so many open executions are sorted; with more, walking by time finds a page sooner.
const SORTED_MAX: i64 = 5_000;

/// A `WHERE` that grows, with its values.
#[derive(Default)]
pub(super) struct Where {
    terms: Vec<String>,
    values: Vec<Value>,
}

impl Where {
    /// Every term, or one that is always true.
    pub(super) fn terms(&self) -> String {
        if self.terms.is_empty() {
            return "1".to_owned();
        }
        self.terms.join(" AND ")
    }

    /// The values, in order.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Adds a term; each `?` in it takes one of the values.
    pub(super) fn and(&mut self, term: &str, values: impl IntoIterator<Item = Value>) {
        self.terms.push(term.to_owned());
        self.values.extend(values);
    }

    /// Adds a term about text.
    pub(super) fn text(&mut self, term: &str, value: &str) {
        self.and(term, [Value::Text(value.to_owned())]);
    }

    /// The column begins or ends with this.
    pub(super) fn part(&mut self, column: &str, part: &str) {
        let length = part.chars().count();
        self.and(
            &format!("(substr({column}, 1, {length}) = ? OR substr({column}, -{length}) = ?)"),
            std::iter::repeat_n(Value::Text(part.to_owned()), 2),
        );
    }

    /// What executions and runs may be narrowed to, but for when they ended.
    fn also(&mut self, also: &Also, id: &str) {
        let bytes = |text: &String| Value::Blob(text.as_bytes().to_vec());
        if let Some(reason) = &also.reason {
            let cause = WaitCause::from_word(reason).map_or(-1, |cause| cause.code());
            let length = reason.len() + 1;
            self.and(
                &format!(
                    "(status_reason = ? OR substr(status_reason, 1, {length}) = ? \
                     OR (wait_cause = ? AND status < 4))"
                ),
                [
                    bytes(reason),
                    bytes(&format!("{reason}:")),
                    Value::Integer(cause),
                ],
            );
        }
        if let Some(session) = &also.session {
            self.and("session = ?", [bytes(session)]);
        }
        if let Some(actor) = &also.actor {
            self.and("actor = ?", [bytes(actor)]);
        }
        if let Some(origin) = also.origin {
            self.and("origin = ?", [Value::Integer(origin.code())]);
        }
        if let Some(text) = &also.text {
            let length = text.chars().count();
            self.and(
                &format!(
                    "(substr({id}, 1, {length}) = ? OR substr({id}, -{length}) = ? \
                     OR instr(lower(agent || '.' || function), lower(?)) > 0)"
                ),
                std::iter::repeat_n(Value::Text(text.clone()), 3),
            );
        }
    }

    /// Only what ended in a range.
    pub(super) fn ended_between(&mut self, also: &Also) {
        if let Some(since) = also.ended_since {
            self.and("ended_at >= ?", [Value::Integer(since.0)]);
        }
        if let Some(until) = also.ended_until {
            self.and("ended_at < ?", [Value::Integer(until.0)]);
        }
    }

    /// Of what ended, only what ended in a range; `or` says what fits besides.
    pub(super) fn ended(&mut self, also: &Also, or: &str) {
        let ends = [(also.ended_since, ">="), (also.ended_until, "<")];
        for (at, sign) in ends {
            if let Some(at) = at {
                self.and(
                    &format!("(ended_at IS NULL OR ended_at {sign} ? OR {or})"),
                    [Value::Integer(at.0)],
                );
            }
        }
    }

    /// Behind the cursor of a page.
    pub(super) fn page(&mut self, page: &Page, oldest_first: bool) {
        if let Some((at, id)) = &page.after {
            let sign = if oldest_first { ">" } else { "<" };
            self.and(
                &format!("(created_at, id) {sign} (?, ?)"),
                [Value::Integer(at.0), Value::Text(id.clone())],
            );
        }
    }
}

/// Approvals as the filter says, newest first.
pub(super) fn approvals(
    conn: &Connection,
    filter: &ApprovalFilter,
    page: &Page,
) -> StoreResult<Vec<ApprovalRow>> {
    let mut narrow = Where::default();
    match filter.pending {
        Some(true) => narrow.and("decided_at IS NULL", []),
        Some(false) => narrow.and("decided_at IS NOT NULL", []),
        None => {}
    }
    if filter.closed {
        narrow.and("decided_at IS NOT NULL AND decision IS NULL", []);
    }
    if let Some(decision) = filter.decision {
        narrow.and("decision = ?", [Value::Integer(decision.code())]);
    }
    if let Some(agent) = &filter.agent {
        narrow.text("agent = ?", agent.as_str());
    }
    if let Some(run) = &filter.run {
        narrow.text("run = ?", run.as_str());
    }
    if let Some((at, id)) = &page.after {
        narrow.and(
            "(requested_at, execution || ' ' || request) < (?, ?)",
            [Value::Integer(at.0), Value::Text(id.clone())],
        );
    }
    let sql = format!(
        "SELECT {} FROM approvals WHERE {}
         ORDER BY requested_at DESC, execution || ' ' || request DESC LIMIT {}",
        rows::APPROVAL_COLUMNS,
        narrow.terms(),
        page.limit
    );
    readable(conn, &sql, params_from_iter(&narrow.values), |row| {
        rows::approval(&mut Columns::of(row))
    })
}

fn codes(statuses: &[Status]) -> String {
    let codes: Vec<String> = statuses.iter().map(|s| s.code().to_string()).collect();
    codes.join(",")
}

fn few_open(conn: &Connection, statuses: &str) -> StoreResult<bool> {
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM executions INDEXED BY executions_open
         WHERE status < 4 AND status IN ({statuses}) LIMIT {})",
        SORTED_MAX + 1
    );
    let count = first(conn, &sql, [], |row| Columns::of(row).int())?;
    Ok(count.unwrap_or(0) <= SORTED_MAX)
}

/// What a walk may be narrowed to: an index and the term that lets it be used.
struct Walk {
    index: &'static str,
    term: Cow<'static, str>,
}

impl Walk {
    const fn over(index: &'static str, term: &'static str) -> Self {
        Self {
            index,
            term: Cow::Borrowed(term),
        }
    }

    /// Over what ended in the range of a filter.
    fn ended(also: &Also) -> Self {
        let since = also.ended_since.map_or(i64::MIN, |at| at.0);
        let until = also.ended_until.map_or(i64::MAX, |at| at.0);
        let term = format!("ended_at IS NOT NULL AND ended_at >= {since} AND ended_at < {until}");
        Self {
            index: "executions_ended",
            term: Cow::Owned(term),
        }
    }
}

const ROOTS: Walk = Walk::over("executions_roots", "root IS NULL");
const MEMBERS: Walk = Walk::over("executions_members", "root IS NOT NULL");
/// The rows of runs of which something is open.
const OF_OPEN_RUNS: Walk = Walk::over(
    "executions_run",
    "run IN (SELECT run FROM executions INDEXED BY executions_open WHERE status < 4)",
);

/// The terms of a filter, but for its statuses.
pub(super) fn of_executions(filter: &ExecutionFilter) -> Where {
    let mut narrow = Where::default();
    if !filter.agents.is_empty() {
        let marks = vec!["?"; filter.agents.len()].join(",");
        let ids = filter.agents.iter();
        let ids = ids.map(|id| Value::Text(id.as_str().to_owned()));
        narrow.and(&format!("agent IN ({marks})"), ids);
    }
    if let Some(function) = &filter.function {
        narrow.text("function = ?", function.as_str());
    }
    if let Some(run) = &filter.run {
        narrow.text("run = ?", run.as_str());
    }
    if let Some(parent) = &filter.parent {
        narrow.text("parent = ?", parent.as_str());
    }
    if let Some(category) = &filter.category {
        narrow.text("error_category = ?", category.word());
    }
    if let Some(since) = filter.since {
        narrow.and("created_at >= ?", [Value::Integer(since.0)]);
    }
    if let Some(until) = filter.until {
        narrow.and("created_at < ?", [Value::Integer(until.0)]);
    }
    if let Some(part) = &filter.id_part {
        narrow.part("id", part);
    }
    narrow.also(&filter.also, "id");
    narrow
}

/// Executions as the filter says.
pub(super) fn executions(
    conn: &Connection,
    filter: &ExecutionFilter,
    page: &Page,
) -> StoreResult<Vec<ExecutionRow>> {
    let mut narrow = of_executions(filter);
    narrow.ended(&filter.also, "0");
    let open = !filter.statuses.is_empty() && filter.statuses.iter().all(|s| !s.is_terminal());
    let bad = !filter.statuses.is_empty() && filter.statuses.iter().all(|s| s.code() > 4);
    let statuses = codes(&filter.statuses);
    if !filter.statuses.is_empty() {
        narrow.and(&format!("status IN ({statuses})"), []);
    }
    narrow.page(page, filter.oldest_first);

    let one = |index, term| vec![Walk::over(index, term)];
    let walks = if filter.parent.is_some() {
        one("executions_parent", "parent IS NOT NULL")
    } else if filter.run.is_some() {
        one("executions_run", "1")
    } else if open && few_open(conn, &statuses)? {
        one("executions_open", "status < 4")
    } else if lately(conn, &filter.also)? {
        vec![
            Walk::ended(&filter.also),
            Walk::over("executions_open", "status < 4"),
        ]
    } else if bad {
        one("executions_bad", "status > 4")
    } else if filter.agents.len() == 1 {
        one("executions_agent", "1")
    } else {
        vec![ROOTS, MEMBERS]
    };
    let mut found = Vec::new();
    for walk in &walks {
        found.extend(walked(
            conn,
            walk,
            &narrow,
            filter.oldest_first,
            page.limit,
        )?);
    }
    if walks.len() > 1 {
        let key = |row: &ExecutionRow| (row.created_at, row.id.clone());
        found.sort_by_cached_key(key);
        if !filter.oldest_first {
            found.reverse();
        }
        found.truncate(page.limit);
    }
    Ok(found)
}

/// Whether so little ended in the range of a filter, and so little is open, that sorting it is
/// sooner done than walking by time of acceptance until a page is full.
fn lately(conn: &Connection, also: &Also) -> StoreResult<bool> {
    let Some(since) = also.ended_since else {
        return Ok(false);
    };
    let until = also.ended_until.map_or(i64::MAX, |until| until.0);
    let sql = "SELECT count(*) FROM (SELECT 1 FROM executions INDEXED BY executions_ended
               WHERE ended_at IS NOT NULL AND ended_at >= ?1 AND ended_at < ?2 LIMIT ?3)";
    let ended = first(conn, sql, [since.0, until, SORTED_MAX + 1], |row| {
        Columns::of(row).int()
    })?;
    Ok(ended.unwrap_or(0) <= SORTED_MAX && few_open(conn, "0,1,2,3")?)
}

fn walked(
    conn: &Connection,
    walk: &Walk,
    narrow: &Where,
    oldest_first: bool,
    limit: usize,
) -> StoreResult<Vec<ExecutionRow>> {
    let direction = if oldest_first { "ASC" } else { "DESC" };
    let mut sql = format!(
        "SELECT {} FROM executions INDEXED BY {} WHERE {}",
        execution_columns!(),
        walk.index,
        walk.term
    );
    for term in &narrow.terms {
        sql.push_str(" AND ");
        sql.push_str(term);
    }
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    sql.push_str(&format!(
        " ORDER BY created_at {direction}, id {direction} LIMIT {limit}"
    ));
    readable(conn, &sql, params_from_iter(&narrow.values), |row| {
        rows::execution(&mut Columns::of(row))
    })
}

const SOME_OPEN: &str = "EXISTS (SELECT 1 FROM executions m INDEXED BY executions_open
     WHERE m.status < 4 AND m.status IN (0, 1, 2, 3) AND m.run = executions.run)";

/// The terms of a filter, but for its statuses and states.
pub(super) fn of_runs(filter: &RunFilter) -> Where {
    let mut narrow = Where::default();
    narrow.and("root IS NULL", []);
    if let Some(agent) = &filter.agent {
        narrow.text("agent = ?", agent.as_str());
    }
    if let Some(function) = &filter.function {
        narrow.text("function = ?", function.as_str());
    }
    if let Some(category) = &filter.category {
        narrow.text("error_category = ?", category.word());
    }
    if let Some(since) = filter.since {
        narrow.and("created_at >= ?", [Value::Integer(since.0)]);
    }
    if let Some(until) = filter.until {
        narrow.and("created_at < ?", [Value::Integer(until.0)]);
    }
    if let Some(part) = &filter.id_part {
        narrow.part("run", part);
    }
    narrow.also(&filter.also, "run");
    narrow
}

/// Runs as the filter says, newest first.
pub(super) fn runs(
    conn: &Connection,
    filter: &RunFilter,
    page: &Page,
) -> StoreResult<Vec<RunSummary>> {
    let mut narrow = of_runs(filter);
    narrow.ended(&filter.also, SOME_OPEN);
    narrow.page(page, false);

    let wanted = || filter.statuses.iter().chain(&filter.states);
    let some = wanted().next().is_some();
    let open = some && wanted().all(|s| !s.is_terminal());
    let bad = some && wanted().all(|s| s.code() > 4);
    if !filter.statuses.is_empty() {
        let any: Vec<String> = filter.statuses.iter().map(|s| with_status(*s)).collect();
        narrow.and(&format!("({})", any.join(" OR ")), []);
    }
    if !filter.states.is_empty() {
        let any: Vec<String> = filter.states.iter().map(|s| with_state(*s)).collect();
        narrow.and(&format!("({})", any.join(" OR ")), []);
    }
    let walks = if open && few_open(conn, "0,1,2,3")? {
        vec![OF_OPEN_RUNS]
    } else if lately(conn, &filter.also)? {
        vec![Walk::ended(&filter.also), OF_OPEN_RUNS]
    } else if bad {
        vec![Walk::over("executions_bad", "status > 4")]
    } else if filter.agent.is_some() {
        vec![Walk::over("executions_agent", "1")]
    } else {
        vec![ROOTS]
    };
    let mut roots = Vec::new();
    for walk in &walks {
        roots.extend(walked(conn, walk, &narrow, false, page.limit)?);
    }
    if walks.len() > 1 {
        // A root that has ended while a member is open was found twice.
        roots.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        roots.dedup_by(|a, b| a.id == b.id);
        roots.truncate(page.limit);
    }
    roots
        .into_iter()
        .map(|root| summary(conn, root.run.clone(), root))
        .collect()
}

/// A member of a run, whose root is at hand, is open in this state.
fn any_in(state: Status) -> String {
    let code = state.code();
    format!(
        "EXISTS (SELECT 1 FROM executions o INDEXED BY executions_open
         WHERE o.status < 4 AND o.status = {code} AND o.run = executions.run)"
    )
}

/// The state of a run, whose root is at hand. Says the same as [`run_status`].
pub(super) fn state_of_run() -> String {
    let mut out = "CASE".to_owned();
    for state in OPEN_FIRST {
        out.push_str(&format!(" WHEN {} THEN {}", any_in(state), state.code()));
    }
    out.push_str(" ELSE status END");
    out
}

/// Whether a run, whose root is at hand, is in a state.
fn with_state(state: Status) -> String {
    let code = state.code();
    if state.is_terminal() {
        return format!("(status = {code} AND NOT {SOME_OPEN})");
    }
    let before = OPEN_FIRST.into_iter().take_while(|one| *one != state);
    let mut terms: Vec<String> = before.map(|one| format!("NOT {}", any_in(one))).collect();
    terms.push(any_in(state));
    format!("({})", terms.join(" AND "))
}

/// Whether a run, whose root is at hand, has a status, where running is any that is open.
fn with_status(status: Status) -> String {
    match status {
        Status::Running => SOME_OPEN.to_owned(),
        other => with_state(other),
    }
}

/// One run.
pub(super) fn run(conn: &Connection, id: &RunId) -> StoreResult<Option<RunSummary>> {
    // The root; or, should it be missing, the member that came first.
    let sql = concat!(
        "SELECT ",
        execution_columns!(),
        " FROM executions INDEXED BY executions_run WHERE run = ?1
          ORDER BY root IS NOT NULL, n LIMIT 1"
    );
    first(conn, sql, [id.as_str()], |row| {
        rows::execution(&mut Columns::of(row))
    })?
    .map(|root| summary(conn, id.clone(), root))
    .transpose()
}

fn summary(conn: &Connection, id: RunId, root: ExecutionRow) -> StoreResult<RunSummary> {
    let counts = all(
        conn,
        "SELECT status, count(*), max(ended_at) FROM executions INDEXED BY executions_run
         WHERE run = ?1 GROUP BY status ORDER BY status",
        [id.as_str()],
        |row| {
            let mut from = Columns::of(row);
            Ok((from.int()?, from.number()?, from.time_opt()?))
        },
    )?;
    let ended_at = counts.iter().filter_map(|(_, _, ended)| *ended).max();
    let counts: Vec<(Status, u64)> = counts
        .into_iter()
        .filter_map(|(code, count, _)| Some((Status::from_code(code)?, count)))
        .collect();
    let status = run_status(root.status, &counts);
    let cancelled_at = first(
        conn,
        "SELECT cancelled_at FROM runs WHERE id = ?1",
        [id.as_str()],
        |row| Columns::of(row).time_opt(),
    )?;
    Ok(RunSummary {
        id,
        ended_at: ended_at.filter(|_| status.is_terminal()),
        status,
        root,
        counts,
        cancelled_at: cancelled_at.flatten(),
    })
}

/// Agents with their instances.
pub(super) fn agents(conn: &Connection, only: Option<&AgentId>) -> StoreResult<Vec<StoredAgent>> {
    let (term, values) = match only {
        Some(id) => ("= ?1", vec![Value::Text(id.as_str().to_owned())]),
        None => ("IS NOT NULL", Vec::new()),
    };
    let sql = format!(
        "SELECT {} FROM agents WHERE id {term} ORDER BY id",
        rows::AGENT_COLUMNS
    );
    let mut agents = readable(conn, &sql, params_from_iter(&values), |row| {
        Ok(StoredAgent {
            row: rows::agent(&mut Columns::of(row))?,
            instances: Vec::new(),
        })
    })?;
    let sql = format!(
        "SELECT {} FROM instances WHERE agent {term} ORDER BY agent, registered_at, id",
        rows::INSTANCE_COLUMNS
    );
    let instances = readable(conn, &sql, params_from_iter(&values), |row| {
        rows::instance(&mut Columns::of(row))
    })?;
    for instance in instances {
        if let Ok(at) = agents.binary_search_by(|a| a.row.id.cmp(&instance.agent)) {
            agents[at].instances.push(instance);
        }
    }
    Ok(agents)
}

/// Events after a number.
pub(super) fn events(conn: &Connection, after: u64, limit: usize) -> StoreResult<Vec<EventRow>> {
    let sql = concat!(
        "SELECT ",
        event_columns!(),
        " FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2"
    );
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    readable(conn, sql, [after, limit], |row| {
        rows::event(&mut Columns::of(row))
    })
}

/// Events of one execution.
pub(super) fn events_of(
    conn: &Connection,
    id: &ExecutionId,
    limit: usize,
) -> StoreResult<Vec<EventRow>> {
    let sql = concat!(
        "SELECT ",
        event_columns!(),
        " FROM events WHERE execution = ?1 ORDER BY seq LIMIT ?2"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    readable(conn, sql, rusqlite::params![id.as_str(), limit], |row| {
        rows::event(&mut Columns::of(row))
    })
}

/// The oldest event.
pub(super) fn oldest_event(conn: &Connection) -> StoreResult<Option<u64>> {
    conn.prepare_cached("SELECT min(seq) FROM events")
        .and_then(|mut s| s.query_row([], |row| row.get::<_, Option<i64>>(0)))
        .map(|seq| seq.map(i64::cast_unsigned))
        .map_err(failed("read the oldest event"))
}
