//! Why an execution does not go on: one closed list of causes for the overview, queues and lists.

use crate::status::words;

words!(
    /// Why executions do not go on.
    HeldCause {
        /// Their agent runs as many as it may.
        AgentFull = "agent_full",
        /// No instance of their agent can be called.
        AgentUnavailable = "agent_unavailable",
        /// Dispatching is stopped, to their agent or at all.
        Hold = "hold",
        /// Tags of their agent are not approved.
        TagsPending = "tags_pending",
        /// They come next: nothing holds them up.
        Starting = "starting",
        /// Their agent restarts, and nothing was sent yet.
        AgentRestart = "agent_restart",
        /// A person decides.
        Approval = "approval",
        /// A call of theirs waits itself.
        WaitingChild = "waiting_child",
        /// A person paused them.
        Paused = "paused",
    }
);
