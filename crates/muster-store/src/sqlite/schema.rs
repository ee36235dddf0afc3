//! The tables of the three files, as numbered steps that only add, and the views that show
//! them with words. Knows nothing of connections.
//!
//! Executions have a number of their own (`n`); attempts and payloads hang on it, because a
//! short key at the end of a tree is the cheapest place to write. A root's `root` is NULL.

use muster_engine::row::{AttemptOutcome, EventKind, PayloadKind};
use muster_wire::{ExecutionKind, FunctionKind, Lane, Origin, Status};

use super::codes::Code;

/// The format that this build writes, and the newest it reads.
pub(crate) const FORMAT: u32 = 4;

/// Steps of the decisions file; each brings the format of its number.
pub(crate) const DECISIONS: &[&str] = &[
    r"
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE leases (
    id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL, taken_at INTEGER NOT NULL
);

CREATE TABLE executions (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL, run TEXT NOT NULL, root TEXT, parent TEXT, depth INTEGER NOT NULL,
    kind INTEGER NOT NULL, lane INTEGER NOT NULL, agent TEXT NOT NULL, function TEXT NOT NULL,
    function_kind INTEGER NOT NULL, status INTEGER NOT NULL, status_reason BLOB,
    error_category TEXT, error_text BLOB, error_status INTEGER,
    class INTEGER NOT NULL, turn INTEGER NOT NULL, seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL, holds TEXT, over_cap INTEGER NOT NULL,
    created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
    active_us INTEGER NOT NULL, clock_from INTEGER, deadline_us INTEGER NOT NULL,
    absorb_until INTEGER, input_size INTEGER NOT NULL, input_hash BLOB NOT NULL,
    result_size INTEGER, key_hash TEXT, principal TEXT NOT NULL, session BLOB, actor BLOB,
    traceparent BLOB, usage BLOB, origin INTEGER NOT NULL, late_outcome INTEGER
);
CREATE UNIQUE INDEX executions_id ON executions (id);
CREATE INDEX executions_run ON executions (run);
CREATE INDEX executions_agent ON executions (agent, created_at, id);
CREATE INDEX executions_roots ON executions (created_at, id) WHERE root IS NULL;
CREATE INDEX executions_members ON executions (created_at, id) WHERE root IS NOT NULL;
CREATE INDEX executions_parent ON executions (parent, created_at, id) WHERE parent IS NOT NULL;
-- A query uses a partial index only if it says the index's own condition, word for word.
CREATE INDEX executions_open ON executions (status, run, agent, turn) WHERE status < 4;
CREATE INDEX executions_queue ON executions (agent, class, turn, seq) WHERE status = 0;
CREATE INDEX executions_bad ON executions (created_at, id) WHERE status > 4;

-- How many wait where, so that a start need not count the queues.
CREATE TABLE queue_counts (
    agent TEXT NOT NULL, class INTEGER NOT NULL, turn INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (agent, class, turn)
) WITHOUT ROWID;

CREATE TABLE attempts (
    execution INTEGER NOT NULL, n INTEGER NOT NULL, instance TEXT NOT NULL, candidates BLOB,
    secret_hash BLOB NOT NULL, sent_at INTEGER NOT NULL, accepted_at INTEGER, ended_at INTEGER,
    outcome INTEGER, evidence BLOB,
    PRIMARY KEY (execution, n)
) WITHOUT ROWID;

-- Up to 64 KiB; larger ones are in the payload file under the execution's id.
CREATE TABLE payloads (
    slot INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL,
    owner INTEGER GENERATED ALWAYS AS (slot >> 2) VIRTUAL,
    kind INTEGER GENERATED ALWAYS AS (slot & 3) VIRTUAL,
    chunk INTEGER GENERATED ALWAYS AS (0) VIRTUAL
);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, execution TEXT,
    run TEXT, agent TEXT, function TEXT, instance TEXT, attempt INTEGER, status INTEGER,
    reason BLOB, category TEXT, text BLOB
);
CREATE INDEX events_execution ON events (execution) WHERE execution IS NOT NULL;

CREATE TABLE idempotency (
    key BLOB PRIMARY KEY, execution TEXT NOT NULL, body_hash BLOB NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX idempotency_at ON idempotency (at);

CREATE TABLE runs (
    id TEXT PRIMARY KEY, root TEXT NOT NULL, cancelled_at INTEGER, cancelled_by BLOB
) WITHOUT ROWID;

CREATE TABLE agents (
    id TEXT PRIMARY KEY, principal TEXT NOT NULL, created_at INTEGER NOT NULL,
    registered_at INTEGER NOT NULL, held INTEGER NOT NULL, registration BLOB NOT NULL
);
CREATE TABLE instances (
    agent TEXT NOT NULL, id TEXT NOT NULL, base_url BLOB NOT NULL, version BLOB NOT NULL,
    functions BLOB NOT NULL, registered_at INTEGER NOT NULL, renewed_at INTEGER NOT NULL,
    goodbye_at INTEGER, gone_at INTEGER, gone_evidence BLOB, orphans_at INTEGER, worker BLOB,
    PRIMARY KEY (agent, id)
);
CREATE INDEX instances_gone ON instances (gone_at) WHERE gone_at IS NOT NULL;

CREATE TABLE quarantine (
    id TEXT PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, about BLOB NOT NULL,
    error BLOB NOT NULL, what BLOB NOT NULL
);
CREATE INDEX quarantine_at ON quarantine (at, id);

CREATE TABLE keys (
    id TEXT PRIMARY KEY, prefix TEXT NOT NULL, hash BLOB NOT NULL, name BLOB NOT NULL,
    scopes BLOB NOT NULL, principal TEXT NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER,
    revoked_at INTEGER, expires_at INTEGER
);
CREATE TABLE audit (
    n INTEGER PRIMARY KEY, at INTEGER NOT NULL, principal BLOB NOT NULL, action BLOB NOT NULL,
    object BLOB NOT NULL, detail BLOB NOT NULL
);
CREATE INDEX audit_at ON audit (at);
CREATE TABLE identities (
    did TEXT PRIMARY KEY, agent TEXT NOT NULL, component TEXT NOT NULL, function TEXT NOT NULL,
    sealed_seed BLOB NOT NULL, created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX identities_agent ON identities (agent, component, function);
CREATE TABLE credentials (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, execution TEXT NOT NULL, run TEXT NOT NULL,
    created_at INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE INDEX credentials_run ON credentials (run, created_at);
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
",
    r"
ALTER TABLE executions ADD COLUMN wait_cause INTEGER;
ALTER TABLE executions ADD COLUMN wait_reference BLOB;
ALTER TABLE executions ADD COLUMN wait_until INTEGER;
ALTER TABLE executions ADD COLUMN resume_to INTEGER;
ALTER TABLE executions ADD COLUMN on_parent_end INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN replay TEXT;
ALTER TABLE executions ADD COLUMN replay_of TEXT;
ALTER TABLE executions ADD COLUMN restart_of TEXT;
ALTER TABLE executions ADD COLUMN restarted_as TEXT;
ALTER TABLE executions ADD COLUMN webhook BLOB;
ALTER TABLE runs ADD COLUMN paused_at INTEGER;
ALTER TABLE runs ADD COLUMN paused_by BLOB;
ALTER TABLE runs ADD COLUMN source TEXT;
CREATE INDEX runs_source ON runs (source) WHERE source IS NOT NULL;
-- Equal calls of one parent, in the order of their acceptance.
CREATE INDEX executions_equal ON executions (parent, input_hash) WHERE parent IS NOT NULL;
CREATE INDEX executions_twin ON executions (replay_of) WHERE replay_of IS NOT NULL;
ALTER TABLE agents ADD COLUMN tags BLOB;

CREATE INDEX executions_bereaved ON executions (parent)
    WHERE status = 0 AND on_parent_end = 1;

CREATE TABLE approvals (
    execution TEXT NOT NULL, request TEXT NOT NULL, run TEXT NOT NULL, agent TEXT NOT NULL,
    attempt INTEGER NOT NULL, request_url BLOB, callback_url BLOB, requested_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, decision INTEGER, decided_at INTEGER, decided_by BLOB,
    feedback BLOB, response BLOB, told BLOB,
    PRIMARY KEY (execution, request)
) WITHOUT ROWID;
CREATE INDEX approvals_request ON approvals (request);
CREATE INDEX approvals_time ON approvals (requested_at, execution);
CREATE INDEX approvals_run ON approvals (run);
-- Pending, or decided and not told.
CREATE INDEX approvals_open ON approvals (expires_at)
    WHERE decided_at IS NULL OR (told IS NULL AND decision IS NOT NULL);

-- seq: the number of the event it tells of. target: where to, for its own bounds. next_at is
-- NULL when nothing is due: delivered, or dead. since: from when it counts as not taken. claim:
-- who is delivering it, until next_at.
CREATE TABLE webhook_outbox (
    seq INTEGER PRIMARY KEY, execution TEXT NOT NULL, run TEXT NOT NULL, status INTEGER NOT NULL,
    at INTEGER NOT NULL, webhook BLOB NOT NULL, target TEXT NOT NULL, since INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0, next_at INTEGER, claim TEXT, tried_at INTEGER,
    delivered_at INTEGER, dead_at INTEGER, last_error BLOB, last_status INTEGER
);
CREATE INDEX webhook_outbox_due ON webhook_outbox (target, next_at, seq)
    WHERE next_at IS NOT NULL;
CREATE INDEX webhook_outbox_next ON webhook_outbox (target, tries, next_at, seq)
    WHERE next_at IS NOT NULL;
CREATE INDEX webhook_outbox_delivered ON webhook_outbox (delivered_at)
    WHERE delivered_at IS NOT NULL;
CREATE INDEX webhook_outbox_dead ON webhook_outbox (dead_at) WHERE dead_at IS NOT NULL;
CREATE INDEX webhook_outbox_execution ON webhook_outbox (execution);
",
    r"
ALTER TABLE events ADD COLUMN node TEXT;
ALTER TABLE events ADD COLUMN worker TEXT;
CREATE INDEX events_worker ON events (worker) WHERE worker IS NOT NULL;
CREATE INDEX events_node ON events (node) WHERE node IS NOT NULL;

-- What a key is for, as JSON: what an enrolment token enrols.
ALTER TABLE keys ADD COLUMN detail BLOB;

-- The words here are text. detail: JSON of what no list filters by. state: the one that was last
-- told; what it is now is computed.
CREATE TABLE nodes (
    id TEXT PRIMARY KEY, name BLOB NOT NULL, kind TEXT NOT NULL, wish TEXT NOT NULL,
    state TEXT NOT NULL, state_at INTEGER NOT NULL, enrolled_at INTEGER NOT NULL,
    connected_at INTEGER, heard_at INTEGER, principal BLOB NOT NULL, detail TEXT NOT NULL
);

-- spec is sealed; it is the last column, so that lists need not walk over it.
CREATE TABLE workers (
    id TEXT PRIMARY KEY, name BLOB NOT NULL, node TEXT, state TEXT NOT NULL,
    state_at INTEGER NOT NULL, created_at INTEGER NOT NULL, confirmed_at INTEGER,
    ended_at INTEGER, ended_how TEXT, agent TEXT, principal BLOB NOT NULL,
    idempotency_key BLOB, detail TEXT NOT NULL, spec BLOB NOT NULL
);
CREATE INDEX workers_time ON workers (created_at, id);
CREATE INDEX workers_node ON workers (node, created_at, id);
CREATE INDEX workers_name ON workers (name, created_at, id);
CREATE INDEX workers_living ON workers (created_at, id) WHERE ended_at IS NULL;
CREATE INDEX workers_ended ON workers (ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX workers_key ON workers (idempotency_key) WHERE idempotency_key IS NOT NULL;

-- seq: the number of the event that told it.
CREATE TABLE fleet_history (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, node TEXT, worker TEXT, kind TEXT NOT NULL,
    before BLOB, after BLOB, evidence BLOB NOT NULL
);
CREATE INDEX fleet_history_node ON fleet_history (node, seq) WHERE node IS NOT NULL;
CREATE INDEX fleet_history_worker ON fleet_history (worker, seq) WHERE worker IS NOT NULL;

CREATE TABLE relay (
    kind TEXT NOT NULL, name BLOB NOT NULL, node BLOB, value BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE INDEX relay_time ON relay (kind, updated_at);
",
    r"
-- What ended when, with all that is counted of it.
CREATE INDEX executions_ended
    ON executions (ended_at, status, agent, error_category, function, origin, root)
    WHERE ended_at IS NOT NULL;
-- How many members of a run there are of each status, and when the last one ended.
DROP INDEX executions_run;
CREATE INDEX executions_run ON executions (run, status, ended_at);
CREATE INDEX executions_held ON executions (status, wait_cause, created_at)
    WHERE status IN (2, 3);
CREATE INDEX executions_absorbed ON executions (created_at)
    WHERE status = 1 AND absorb_until IS NOT NULL;
-- Changes of instances.
CREATE INDEX events_agent ON events (agent, seq) WHERE execution IS NULL AND instance IS NOT NULL;

-- What a person decided; 0 is no cap.
ALTER TABLE agents ADD COLUMN cap INTEGER;

-- What is summed of a report of usage. usage_seen: NULL without a report, else bits. usage_cost:
-- billionths of a US dollar.
ALTER TABLE executions ADD COLUMN usage_seen INTEGER;
ALTER TABLE executions ADD COLUMN usage_input INTEGER;
ALTER TABLE executions ADD COLUMN usage_output INTEGER;
ALTER TABLE executions ADD COLUMN usage_total INTEGER;
ALTER TABLE executions ADD COLUMN usage_cache_read INTEGER;
ALTER TABLE executions ADD COLUMN usage_cache_written INTEGER;
ALTER TABLE executions ADD COLUMN usage_models INTEGER;
ALTER TABLE executions ADD COLUMN usage_cost INTEGER;
CREATE INDEX executions_usage ON executions (ended_at, agent, function, run, usage_seen,
    usage_input, usage_output, usage_total, usage_cache_read, usage_cache_written, usage_models,
    usage_cost) WHERE ended_at IS NOT NULL;
",
];

/// Steps of the payload file: large payloads, and the agents' memory.
pub(crate) const PAYLOADS: &[&str] = &[
    r"
-- settled: an execution that has ended names it, so it is no leftover of a crash.
CREATE TABLE payloads (
    owner TEXT NOT NULL, kind INTEGER NOT NULL, chunk INTEGER NOT NULL, bytes BLOB NOT NULL,
    at INTEGER NOT NULL, settled INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, kind, chunk)
);
CREATE INDEX payloads_unsettled ON payloads (at) WHERE settled = 0 AND chunk = 0;

CREATE TABLE memory (
    scope TEXT NOT NULL, scope_id TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (scope, scope_id, key)
);
CREATE TABLE memory_events (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, scope TEXT NOT NULL,
    scope_id TEXT NOT NULL, key TEXT NOT NULL, deleted INTEGER NOT NULL, data BLOB,
    previous BLOB, agent BLOB, actor BLOB, workflow BLOB
);
",
    r"
-- For the retention of payloads alone.
CREATE INDEX payloads_settled ON payloads (at) WHERE settled = 1 AND chunk = 0;
",
];

/// Steps of the log file: log lines and notes.
pub(crate) const LOGS: &[&str] = &[r"
CREATE TABLE logs (
    execution TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, level BLOB NOT NULL,
    source BLOB NOT NULL, event_type BLOB NOT NULL, message BLOB NOT NULL,
    attributes BLOB NOT NULL, debug INTEGER NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (execution, seq)
) WITHOUT ROWID;
CREATE INDEX logs_debug ON logs (execution, seq) WHERE debug = 1;
-- What is kept of an execution's logs, and what was dropped by their bound.
CREATE TABLE log_totals (
    execution TEXT PRIMARY KEY, next INTEGER NOT NULL, lines INTEGER NOT NULL,
    bytes INTEGER NOT NULL, dropped INTEGER NOT NULL, written_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX log_totals_at ON log_totals (written_at);
CREATE TABLE notes (
    n INTEGER PRIMARY KEY, execution TEXT NOT NULL, run TEXT, agent BLOB, message BLOB NOT NULL,
    tags BLOB NOT NULL, at INTEGER NOT NULL
);
CREATE INDEX notes_execution ON notes (execution, n);
"];

/// Views with words, for people with a `sqlite3` shell. Made anew at each start, so that they
/// show every word of this build.
pub(crate) fn views() -> String {
    format!(
        "DROP VIEW IF EXISTS executions_shown;
         CREATE VIEW executions_shown AS SELECT n, id, run, coalesce(root, id) AS root, parent,
            {kind} AS kind, {lane} AS lane, agent, function, {function_kind} AS function_kind,
            {status} AS status, CAST(status_reason AS TEXT) AS status_reason, error_category,
            CAST(error_text AS TEXT) AS error_text, class, turn, seq, attempt, holds, over_cap,
            {created} AS created_at, {started} AS started_at, {ended} AS ended_at, active_us,
            input_size, result_size, principal, CAST(session AS TEXT) AS session,
            CAST(actor AS TEXT) AS actor, {origin} AS origin, {late} AS late_outcome
            FROM executions;
         DROP VIEW IF EXISTS attempts_shown;
         CREATE VIEW attempts_shown AS SELECT e.id AS execution, a.n, a.instance,
            {sent} AS sent_at, {accepted} AS accepted_at, {a_ended} AS ended_at,
            {outcome} AS outcome, CAST(a.evidence AS TEXT) AS evidence
            FROM attempts a JOIN executions e ON e.n = a.execution;
         DROP VIEW IF EXISTS payloads_shown;
         CREATE VIEW payloads_shown AS SELECT e.id AS owner, {payload} AS kind, p.chunk, p.bytes
            FROM payloads p JOIN executions e ON e.n = p.owner;
         DROP VIEW IF EXISTS events_shown;
         CREATE VIEW events_shown AS SELECT seq, {at} AS at, {event} AS kind, execution, run,
            agent, function, instance, node, worker, attempt, {status} AS status,
            CAST(reason AS TEXT) AS reason, category, CAST(text AS TEXT) AS text FROM events;
         DROP VIEW IF EXISTS nodes_shown;
         CREATE VIEW nodes_shown AS SELECT id, CAST(name AS TEXT) AS name, kind, wish,
            state AS last_told, {state_at} AS last_told_at, {enrolled} AS enrolled_at,
            {connected} AS connected_at, {heard} AS heard_at, CAST(principal AS TEXT) AS principal,
            detail ->> 'version' AS version, detail ->> 'host' AS host,
            detail ->> 'max_workers' AS max_workers, detail -> 'labels' AS labels FROM nodes;
         DROP VIEW IF EXISTS workers_shown;
         CREATE VIEW workers_shown AS SELECT w.id, CAST(w.name AS TEXT) AS name, w.node,
            CAST(n.name AS TEXT) AS node_name, w.state, {w_state_at} AS state_at,
            {w_created} AS created_at, {w_confirmed} AS confirmed_at, {w_ended} AS ended_at,
            w.ended_how, w.agent, CAST(w.principal AS TEXT) AS principal,
            w.detail ->> 'command' AS command, w.detail ->> 'pid' AS pid,
            w.detail ->> 'restarts' AS restarts, w.detail -> '$.exit.code' AS exit_code,
            w.detail -> '$.exit.signal' AS exit_signal
            FROM workers w LEFT JOIN nodes n ON n.id = w.node;
         DROP VIEW IF EXISTS fleet_history_shown;
         CREATE VIEW fleet_history_shown AS SELECT seq, {at} AS at, node, worker, kind,
            CAST(before AS TEXT) AS before, CAST(after AS TEXT) AS after,
            CAST(evidence AS TEXT) AS evidence FROM fleet_history;",
        kind = ExecutionKind::case("kind"),
        lane = Lane::case("lane"),
        function_kind = FunctionKind::case("function_kind"),
        status = Status::case("status"),
        origin = Origin::case("origin"),
        late = Status::case("late_outcome"),
        outcome = AttemptOutcome::case("a.outcome"),
        payload = PayloadKind::case("p.kind"),
        event = EventKind::case("kind"),
        created = shown_time("created_at"),
        started = shown_time("started_at"),
        ended = shown_time("ended_at"),
        sent = shown_time("a.sent_at"),
        accepted = shown_time("a.accepted_at"),
        a_ended = shown_time("a.ended_at"),
        at = shown_time("at"),
        state_at = shown_time("state_at"),
        enrolled = shown_time("enrolled_at"),
        connected = shown_time("connected_at"),
        heard = shown_time("heard_at"),
        w_state_at = shown_time("w.state_at"),
        w_created = shown_time("w.created_at"),
        w_confirmed = shown_time("w.confirmed_at"),
        w_ended = shown_time("w.ended_at"),
    )
}

fn shown_time(column: &str) -> String {
    format!("strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1000000.0, 'unixepoch')")
}
