//! The words of nodes and workers. Which fact gives which word is the engine's.

use crate::status::words;

words!(
    /// What speaks to us.
    NodeKind {
        /// `muster node`.
        Daemon = "muster",
        /// The Agent Relay broker.
        Relay = "relay",
    }
);

words!(
    /// What a node's facts amount to. Computed, never stored as the truth.
    NodeState {
        /// Enrolled, and never heard yet; or its link is being set up.
        Connecting = "connecting",
        /// An application exchange was acknowledged recently.
        Online = "online",
        /// Its socket is closed, beats are missing, or an acknowledgement is overdue.
        Suspect = "suspect",
        /// Suspect for the node grace: nobody knows about its workers.
        Unreachable = "unreachable",
        /// Unreachable for so long, or by an operator's word, that its workers count as lost.
        Lost = "lost",
    }
);

words!(
    /// What an operator wants of a node.
    NodeWish {
        /// It takes work.
        Active = "active",
        /// It takes no new work; what runs goes on.
        Cordoned = "cordoned",
        /// It takes no new work and its workers are released one after another.
        Draining = "draining",
        /// It is history.
        Retired = "retired",
    }
);

words!(
    /// Where a worker is. `unknown` is computed; the others are stored.
    WorkerState {
        /// Waits for a place.
        Queued = "queued",
        /// Sent to its node, not yet seen running.
        Starting = "starting",
        /// It runs, last confirmed at some moment.
        Running = "running",
        /// It exited, and its node will start it again.
        Restarting = "restarting",
        /// It ended, on evidence.
        Exited = "exited",
        /// Its node was declared lost.
        Lost = "lost",
        /// Nobody can know: its node is unreachable.
        Unknown = "unknown",
    }
);

words!(
    /// How a worker's end became known.
    ExitHow {
        /// Its node reported the exit.
        Reported = "reported",
        /// Two inventories in a row omitted it.
        Unobserved = "unobserved",
        /// It never started, or not past its start window.
        StartFailed = "start_failed",
        /// Somebody released it.
        Released = "released",
        /// An operator or a policy said so.
        Declared = "declared",
        /// It waited for a place and was cancelled.
        Cancelled = "cancelled",
        /// It waited for a place until its deadline.
        PlacementExpired = "placement_expired",
        /// Nobody confirmed it for the binding's time to live.
        BindingExpired = "binding_expired",
    }
);
