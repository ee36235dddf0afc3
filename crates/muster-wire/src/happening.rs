//! The words of the event sequence: what can have happened. Which change says which word is
//! elsewhere.

use crate::status::words;

words!(
    /// What happened. A newer plane may know more.
    EventKind {
        /// Accepted and waiting for a slot.
        ExecutionQueued = "execution.queued",
        /// Handed to an instance.
        ExecutionStarted = "execution.started",
        /// A dial failed; it waits for the agent to come back.
        ExecutionAbsorbed = "execution.absorbed",
        /// The same execution goes out again.
        ExecutionResent = "execution.resent",
        /// Ended with a result.
        ExecutionSucceeded = "execution.succeeded",
        /// Ended with an error.
        ExecutionFailed = "execution.failed",
        /// Ended by a person or a policy.
        ExecutionCancelled = "execution.cancelled",
        /// Ended by a clock.
        ExecutionTimedOut = "execution.timed_out",
        /// An outcome came after the end.
        ExecutionLateOutcome = "execution.late_outcome",
        /// What the agent did about a cancel.
        ExecutionCancelReceipt = "execution.cancel_receipt",
        /// It waits for a person or for a waiting child.
        ExecutionWaiting = "execution.waiting",
        /// It no longer waits.
        ExecutionContinued = "execution.continued",
        /// A person stopped it for a while.
        ExecutionPaused = "execution.paused",
        /// It goes on from where it was paused.
        ExecutionResumed = "execution.resumed",
        /// It was restarted or forked; the text names the new one.
        ExecutionRestarted = "execution.restarted",
        /// An agent asked for a person's decision.
        ApprovalRequested = "approval.requested",
        /// A person decided, or the time for it ran out.
        ApprovalDecided = "approval.decided",
        /// Whether the agent could be told of a decision.
        ApprovalTold = "approval.told",
        /// A run was marked cancelled.
        RunCancelled = "run.cancelled",
        /// A run was marked paused.
        RunPaused = "run.paused",
        /// A run's pause was lifted.
        RunResumed = "run.resumed",
        /// An instance registered.
        InstanceRegistered = "instance.registered",
        /// It was found at another address than the one it gave.
        InstanceMoved = "instance.moved",
        /// An instance said goodbye.
        InstanceGoodbye = "instance.goodbye",
        /// Beats are late.
        InstanceDegraded = "instance.degraded",
        /// It is alive again.
        InstanceActive = "instance.active",
        /// It is down.
        InstanceDown = "instance.down",
        /// A supervisor is about to start it again.
        InstanceRestarting = "instance.restarting",
        /// Beats are fresh but dials fail.
        InstanceUnreachableCallback = "instance.unreachable_callback",
        /// It is gone.
        InstanceGone = "instance.gone",
        /// Tags of an agent wait for an approval, or were decided.
        AgentTagsChanged = "agent.tags_changed",
        /// The circuit of an LLM endpoint opened, half opened or closed.
        LlmCircuitChanged = "llm.circuit_changed",
        /// An agent was taken off the list: its id is free.
        AgentRetired = "agent.retired",
        /// How many executions an agent runs at once was decided, or is the configuration's again.
        AgentCapChanged = "agent.cap_changed",
        /// Dispatching to an agent, or to all, was stopped or allowed again.
        HoldChanged = "hold.changed",
        /// A node's state changed; the text says why, and what happens next.
        NodeStateChanged = "node.state_changed",
        /// An operator's wish about a node changed, or its pin.
        NodeWished = "node.wished",
        /// A node's link opened, closed or was superseded.
        NodeLink = "node.link",
        /// What a node says and what is believed differ lastingly, or no longer.
        NodeDrift = "node.drift",
        /// A worker waits for a place.
        WorkerQueued = "worker.queued",
        /// A worker was sent to its node.
        WorkerStarting = "worker.starting",
        /// A worker runs.
        WorkerRunning = "worker.running",
        /// A worker exited and will be started again.
        WorkerRestarting = "worker.restarting",
        /// A worker ended, on evidence.
        WorkerExited = "worker.exited",
        /// A worker's node was declared lost.
        WorkerLost = "worker.lost",
        /// A worker's node became unreachable: nobody knows.
        WorkerUnknown = "worker.unknown",
        /// Somebody took or gave back the keyboard of a worker's terminal.
        WorkerDriven = "worker.driven",
        /// Mass silence, or a fall of the reachable capacity; or its end.
        FleetAlarm = "fleet.alarm",
        /// The plane started.
        PlaneStarted = "plane.started",
        /// The plane began to shut down.
        PlaneDraining = "plane.draining",
    }
);

impl EventKind {
    /// The first word: what kind of thing it is about.
    pub fn topic(self) -> &'static str {
        self.word().split('.').next().unwrap_or_default()
    }
}
