//! The words of an execution: status, lane, kind, origin. Decides no transition.

macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// The word on the wire and in rows.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
            /// Reads the word; `None` when this build does not know it.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some($name::$variant),)* _ => None }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.word()) }
        }
        impl $crate::api::Word for $name {
            const WORDS: &'static [Self] = Self::ALL;
            fn text(self) -> &'static str { self.word() }
        }
        #[cfg(feature = "schema")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $crate::api::words_schema(concat!($($doc),*), Self::ALL.iter().map(|one| one.word()))
            }
        }
        #[cfg(feature = "schema")]
        impl utoipa::ToSchema for $name {}
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.word())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = <String as serde::Deserialize>::deserialize(from)?;
                Self::from_word(&word).ok_or_else(|| serde::de::Error::custom(format!("unknown word {word:?}")))
            }
        }
    };
}

pub(crate) use words;

words!(
    /// Where an execution is. The last four are terminal and never change.
    Status {
        /// Stored, not yet dispatched.
        Queued = "queued",
        /// Handed to an instance, or waiting for one to come back.
        Running = "running",
        /// Waits for a person or for a waiting child.
        Waiting = "waiting",
        /// Stopped by a person; its clock stands.
        Paused = "paused",
        /// Ended with a result.
        Succeeded = "succeeded",
        /// Ended with an error.
        Failed = "failed",
        /// Ended by a person or a policy.
        Cancelled = "cancelled",
        /// Ended by a clock.
        Timeout = "timeout",
    }
);

impl Status {
    /// Succeeded, failed, cancelled or timeout.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Status::Succeeded | Status::Failed | Status::Cancelled | Status::Timeout
        )
    }

    /// What `status` says to a client of the AgentField wire: the SDK stops polling on a word
    /// it does not know, so `paused` is shown as `waiting`.
    pub fn for_sdk(self) -> &'static str {
        match self {
            Status::Paused => "waiting",
            other => other.word(),
        }
    }

    /// Reads the words and aliases that agents report (`success`, `completed`, `error`, …).
    pub fn from_agent(word: &str) -> Option<Status> {
        Some(match word.trim().to_ascii_lowercase().as_str() {
            "succeeded" | "success" | "successful" | "completed" | "complete" | "done" | "ok" => {
                Status::Succeeded
            }
            "failed" | "error" | "failure" | "errored" => Status::Failed,
            "cancelled" | "canceled" | "cancel" => Status::Cancelled,
            "timeout" | "timed_out" => Status::Timeout,
            "running" | "in_progress" | "processing" => Status::Running,
            "queued" | "pending" | "wait" => Status::Queued,
            "waiting" | "awaiting_approval" | "awaiting_human" | "approval_pending" => {
                Status::Waiting
            }
            "paused" => Status::Paused,
            _ => return None,
        })
    }
}

words!(
    /// How an execution came in.
    Lane {
        /// The caller holds the connection until the end.
        Sync = "sync",
        /// The caller gets an id and asks later.
        Async = "async",
        /// A restart or fork of an earlier execution.
        Restart = "restart",
        /// A tool call of an MCP client.
        Mcp = "mcp",
    }
);

words!(
    /// What an agent registered a function as.
    FunctionKind {
        /// Answers 202 and calls back.
        Reasoner = "reasoner",
        /// Answers with its value.
        Skill = "skill",
    }
);

words!(
    /// Whether the plane sent it.
    ExecutionKind {
        /// The plane sent it to an instance.
        Dispatched = "dispatched",
        /// It happened inside an agent's process and was reported.
        Observed = "observed",
    }
);

words!(
    /// What kind of plane took it in: keeps the edit loop apart from real traffic in metrics.
    Origin {
        /// `muster dev`.
        Dev = "dev",
        /// `muster server`.
        Server = "server",
        /// A plane started by a continuous-integration job (`CI` is set).
        Ci = "ci",
    }
);

words!(
    /// What happens to an execution when the one that called it ends.
    ParentEnd {
        /// It goes on.
        Detach = "detach",
        /// It is cancelled.
        Cancel = "cancel",
    }
);

words!(
    /// What an execution waits for.
    WaitCause {
        /// A person's decision.
        Approval = "approval",
        /// A child that waits itself.
        AwaitingChild = "awaiting_child",
    }
);

words!(
    /// What was decided about an approval.
    Decision {
        /// Go on.
        Approved = "approved",
        /// Do not.
        Rejected = "rejected",
        /// Go on, with changes.
        RequestChanges = "request_changes",
        /// Nobody decided in time.
        Expired = "expired",
    }
);

words!(
    /// Which children a restarted run takes over from its source run instead of calling again.
    ReplayMode {
        /// Those that had succeeded before the restarted execution was accepted.
        SucceededBefore = "succeeded-before",
        /// All that succeeded, but for the restarted execution and what called it.
        AllSucceeded = "all-succeeded",
        /// None.
        None = "none",
    }
);

words!(
    /// How an attempt ended.
    AttemptOutcome {
        /// A result or an error of the agent.
        Answered = "answered",
        /// No byte left.
        DialFailed = "dial_failed",
        /// The connection broke after bytes were sent.
        Broke = "broke",
        /// No answer within the call time-out.
        TimedOut = "timed_out",
        /// The execution was cancelled or timed out meanwhile.
        Disowned = "disowned",
        /// Its instance is gone.
        Orphaned = "orphaned",
        /// Nothing was heard after a crash of the plane.
        Unknown = "unknown",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_aliases_of_agents_are_understood() {
        for status in Status::ALL {
            assert_eq!(Status::from_word(status.word()), Some(*status));
            assert_eq!(Status::from_agent(status.word()), Some(*status));
        }
        assert_eq!(Status::from_agent("Completed"), Some(Status::Succeeded));
        assert_eq!(Status::from_agent("canceled"), Some(Status::Cancelled));
        assert_eq!(Status::from_agent("nonsense"), None);
        assert_eq!(Status::Paused.for_sdk(), "waiting");
        assert_eq!(Status::ALL.iter().filter(|s| s.is_terminal()).count(), 4);
    }
}
