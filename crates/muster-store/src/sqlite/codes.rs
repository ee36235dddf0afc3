//! Closed words as small numbers in rows. A number, once given, is never given to another
//! word. The views of the schema show the words.

use muster_engine::row::{AttemptOutcome, EventKind, PayloadKind};
use muster_wire::{
    Decision, ExecutionKind, FunctionKind, Lane, Origin, ParentEnd, Status, WaitCause,
};

/// A closed enum that rows keep as a number.
pub(crate) trait Code: Copy + Sized + 'static {
    /// What the enum is called in messages.
    const NOUN: &'static str;
    /// Every value.
    const VALUES: &'static [Self];
    /// The number in rows.
    fn code(self) -> i64;
    /// The word for people.
    fn shown(self) -> &'static str;
    /// Reads the number; `None` when this build does not know it.
    fn from_code(code: i64) -> Option<Self> {
        Self::VALUES.iter().copied().find(|v| v.code() == code)
    }
    /// `CASE column WHEN 0 THEN 'queued' … ELSE column END`, for the views.
    fn case(column: &str) -> String {
        let mut out = format!("CASE {column}");
        for value in Self::VALUES {
            out.push_str(&format!(" WHEN {} THEN '{}'", value.code(), value.shown()));
        }
        out.push_str(&format!(" ELSE {column} END"));
        out
    }
}

macro_rules! codes {
    ($name:ty, $noun:literal, { $($variant:ident = $code:literal,)* }) => {
        impl Code for $name {
            const NOUN: &'static str = $noun;
            const VALUES: &'static [Self] = &[$(<$name>::$variant,)*];
            fn code(self) -> i64 {
                match self { $(<$name>::$variant => $code,)* }
            }
            fn shown(self) -> &'static str {
                self.word()
            }
        }
    };
}

codes!(Status, "status", {
    Queued = 0, Running = 1, Waiting = 2, Paused = 3,
    Succeeded = 4, Failed = 5, Cancelled = 6, Timeout = 7,
});
codes!(Lane, "lane", { Sync = 0, Async = 1, Restart = 2, Mcp = 3, });
codes!(FunctionKind, "function kind", { Reasoner = 0, Skill = 1, });
codes!(ExecutionKind, "execution kind", { Dispatched = 0, Observed = 1, });
codes!(Origin, "origin", { Dev = 0, Server = 1, Ci = 2, });
codes!(ParentEnd, "parent end", { Detach = 0, Cancel = 1, });
codes!(WaitCause, "wait cause", { Approval = 0, AwaitingChild = 1, });
codes!(Decision, "decision", {
    Approved = 0, Rejected = 1, RequestChanges = 2, Expired = 3,
});
codes!(PayloadKind, "payload kind", { Input = 0, Result = 1, ErrorDetails = 2, Late = 3, });
codes!(AttemptOutcome, "attempt outcome", {
    Answered = 0, DialFailed = 1, Broke = 2, TimedOut = 3, Disowned = 4, Orphaned = 5,
    Unknown = 6,
});
codes!(EventKind, "event kind", {
    ExecutionQueued = 1, ExecutionStarted = 2, ExecutionAbsorbed = 3, ExecutionResent = 4,
    ExecutionSucceeded = 5, ExecutionFailed = 6, ExecutionCancelled = 7, ExecutionTimedOut = 8,
    ExecutionLateOutcome = 9, ExecutionCancelReceipt = 10, ExecutionWaiting = 11,
    ExecutionContinued = 12, ExecutionPaused = 13, ExecutionResumed = 14,
    ExecutionRestarted = 15, ApprovalRequested = 16, ApprovalDecided = 17, ApprovalTold = 18,
    RunCancelled = 20, RunPaused = 21, RunResumed = 22,
    InstanceRegistered = 30, InstanceGoodbye = 31, InstanceDegraded = 32, InstanceActive = 33,
    InstanceDown = 34, InstanceRestarting = 35, InstanceUnreachableCallback = 36,
    InstanceGone = 37, InstanceMoved = 38, AgentTagsChanged = 40, LlmCircuitChanged = 41,
    AgentCapChanged = 42, AgentRetired = 43, HoldChanged = 50, PlaneStarted = 60, PlaneDraining = 61,
    NodeStateChanged = 70, NodeWished = 71, NodeLink = 72, NodeDrift = 73, FleetAlarm = 74,
    WorkerQueued = 80, WorkerStarting = 81, WorkerRunning = 82, WorkerRestarting = 83,
    WorkerExited = 84, WorkerLost = 85, WorkerUnknown = 86, WorkerDriven = 87,
});

#[cfg(test)]
mod tests {
    use super::*;

    fn each_reads_back<T: Code + PartialEq + std::fmt::Debug>() {
        for value in T::VALUES {
            assert_eq!(T::from_code(value.code()), Some(*value));
        }
        assert_eq!(T::from_code(9_999), None);
    }

    #[test]
    fn every_number_belongs_to_one_word() {
        each_reads_back::<Status>();
        each_reads_back::<Lane>();
        each_reads_back::<FunctionKind>();
        each_reads_back::<ExecutionKind>();
        each_reads_back::<Origin>();
        each_reads_back::<ParentEnd>();
        each_reads_back::<WaitCause>();
        each_reads_back::<Decision>();
        each_reads_back::<PayloadKind>();
        each_reads_back::<AttemptOutcome>();
        each_reads_back::<EventKind>();
        assert_eq!(EventKind::VALUES.len(), EventKind::ALL.len());
    }
}
