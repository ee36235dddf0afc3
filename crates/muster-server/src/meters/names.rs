//! Every metric: its name, its kind, its labels and what it says. The one place; the page
//! `docs/operations.md` points here, and a test compares what is rendered with this list.
//! No label ever carries an execution id; the only one that agents choose is their own id, and
//! of those at most [`AGENTS_MAX`] are shown.

/// How many agents have series of their own; the rest is added up under `_other`.
pub const AGENTS_MAX: usize = 1_000;

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $name:literal $kind:ident [$($label:literal),*] $help:literal;)*) => {
        $(#[doc = $help] pub const $constant: &str = $name;)*
        /// All of them.
        pub const ALL: &[Metric] = &[
            $(Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help },)*
        ];
    };
}

metrics! {
    STARTED = "muster_executions_started_total" Counter ["lane", "origin"] "Executions accepted.";
    ENDED = "muster_executions_ended_total" Counter ["lane", "status", "category", "origin"] "Executions that ended; the category is `none` for a success.";
    REFUSED = "muster_executions_refused_total" Counter ["lane", "category", "origin"] "Submissions refused before anything was stored.";
    DURATION = "muster_execution_duration_seconds" Histogram ["lane", "status", "origin"] "From acceptance to the end.";
    UNPROVED = "muster_messages_unproved_total" Counter [] "Messages dropped because they did not prove their attempt.";
    LINES_DROPPED = "muster_log_lines_dropped_total" Counter [] "Log lines and notes lost before they were written: too many at once, or the store could not be written.";
    ABSORBED = "muster_dials_absorbed_total" Counter [] "Failed dials that an execution survived, waiting for its agent.";
    GUARDED = "muster_requests_denied_total" Counter ["category"] "Requests denied for their host, origin, key or scope.";
    COMMIT_EVENTS = "muster_commit_events" Histogram [] "Events decided in one commit.";
    COMMIT_WRITES = "muster_commit_writes" Histogram [] "Rows written in one commit.";
    COMMIT_SECONDS = "muster_commit_seconds" Histogram [] "How long a commit took.";
    INBOX_AGE = "muster_inbox_age_seconds" Histogram [] "How long the oldest event of a batch had waited.";
    INBOX_DEPTH = "muster_inbox_depth" Gauge ["inbox"] "Events that wait for the engine.";
    DISPATCHES = "muster_dispatches_in_flight" Gauge [] "Calls to agents whose HTTP exchange is open.";
    WEBHOOKS = "muster_webhooks_total" Counter ["end"] "Messages for webhooks: delivered, failed (and sent again later), dead (given up).";
    WEBHOOKS_PENDING = "muster_webhooks_pending" Gauge [] "Messages for webhooks that are not delivered yet.";
    WEBHOOKS_DEAD = "muster_webhooks_dead" Gauge [] "Messages for webhooks that were given up and are still kept.";
    WEBHOOKS_AGE = "muster_webhooks_oldest_age_seconds" Gauge [] "Age of the oldest message that is not delivered yet.";
    READERS = "muster_stream_readers" Gauge ["stream"] "Open event streams and sockets.";
    GAPS = "muster_stream_gaps_total" Counter ["stream"] "Times a slow reader was sent back to the store.";
    WAITERS = "muster_waiting_requests" Gauge [] "Requests that wait for a reply of the engine.";
    LAST_SEQ = "muster_event_sequence" Gauge [] "Number of the last committed event.";
    RESTORED = "muster_engine_restored_total" Counter [] "Times the engine was rebuilt while running.";
    QUARANTINED = "muster_quarantined_total" Counter [] "Events set aside since the start.";
    OPEN = "muster_executions_open" Gauge ["status"] "Executions that have not ended.";
    AGENTS = "muster_agents" Gauge ["state"] "Agents by the state of their best instance.";
    AGENT_RUNNING = "muster_agent_slots_held" Gauge ["agent"] "Slots held.";
    AGENT_CAP = "muster_agent_slots_cap" Gauge ["agent"] "The cap, where there is one.";
    AGENT_QUEUED = "muster_agent_queue_depth" Gauge ["agent"] "Executions queued, and sync callers waiting for their turn.";
    AGENT_QUEUE_AGE = "muster_agent_queue_age_seconds" Gauge ["agent"] "Age of the oldest queued execution.";
    AGENT_ABSORBED = "muster_agent_absorbed" Gauge ["agent"] "Executions that wait for the agent to come back.";
    LLM_OPEN = "muster_llm_circuit_open" Gauge ["endpoint"] "1 while calls that need this LLM endpoint are refused, 0.5 while its circuit is half open.";
    NODES = "muster_nodes" Gauge ["state"] "Nodes by state, those that are retired left out.";
    WORKERS = "muster_workers" Gauge ["state"] "Workers that have not ended, by state.";
    PLACES_REACHABLE = "muster_fleet_reachable_share" Gauge [] "Share of the places on nodes that can be reached, 0 to 1; absent without nodes.";
    PLACEMENTS_QUEUED = "muster_fleet_placements_queued" Gauge [] "Placements that wait for a place.";
    NODES_DRIFTING = "muster_fleet_drifting_nodes" Gauge [] "Nodes that lastingly say other than what is believed of them.";
    FLEET_DOUBT = "muster_fleet_doubt" Gauge [] "1 while so many fell silent at once that nothing acts on it.";
    NODE_LINKS = "muster_node_links" Gauge [] "Control sockets of nodes that are open.";
    NODE_LINKS_OPENED = "muster_node_links_opened_total" Counter [] "Control sockets of nodes that were opened: a node that opens many has a bad link.";
    LATE_FRAMES = "muster_node_late_frames_total" Counter [] "Frames of superseded links, dropped.";
    HELD = "muster_held" Gauge [] "1 while nothing is dispatched at all.";
    TRACES = "muster_trace_spans_total" Counter ["end"] "Spans of traces: exported, dropped (the queue was full; counted by execution), failed (not taken by the collector). Absent while traces are off.";
    STORE_BYTES = "muster_store_bytes" Gauge ["kind"] "Size of the store.";
    STORE_FREE = "muster_store_free_bytes" Gauge [] "Room left on the store's disk.";
    DUTY_AGE = "muster_duty_age_seconds" Gauge ["duty"] "Time since a duty last ran.";
    DUTY_LATE = "muster_duty_late" Gauge ["duty"] "1 while a duty is late.";
    DUTY_FAILED = "muster_duty_failed" Gauge ["duty"] "1 while a duty's last run had failed.";
    BUILD = "muster_build_info" Gauge ["version"] "1.";
    PROCESS_MEMORY = "process_resident_memory_bytes" Gauge [] "Resident memory.";
    PROCESS_FDS = "process_open_fds" Gauge [] "Open file descriptors.";
    PROCESS_FDS_MAX = "process_max_fds" Gauge [] "Most file descriptors the process may open.";
    PROCESS_CPU = "process_cpu_seconds_total" Counter [] "User and system time.";
    PROCESS_START = "process_start_time_seconds" Gauge [] "When the process started, since 1970.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_and_no_label_is_unbounded() {
        let allowed = [
            "lane", "origin", "status", "category", "inbox", "stream", "state", "agent", "kind",
            "duty", "version", "end", "endpoint",
        ];
        for metric in ALL {
            assert!(metric.name.starts_with("muster_") || metric.name.starts_with("process_"));
            assert_eq!(
                metric.kind == Kind::Counter,
                metric.name.ends_with("_total"),
                "{}",
                metric.name
            );
            assert!(metric.help.ends_with('.'), "{}", metric.name);
            for label in metric.labels {
                assert!(allowed.contains(label), "{label}");
            }
            assert_eq!(
                ALL.iter().filter(|other| other.name == metric.name).count(),
                1
            );
        }
    }
}
