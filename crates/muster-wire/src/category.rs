//! The closed enum of error categories, and the two places that know a number for each:
//! its HTTP status and its process exit code.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! categories {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $http:literal, $exit:literal;)*) => {
        /// Why something was refused or failed. Clients switch on this word.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Category {
            $($(#[$doc])* $variant,)*
            /// A word this build does not know, kept as it came.
            Other(String),
        }
        impl Category {
            /// Every category this build knows, in the contract's order.
            pub const ALL: &'static [Category] = &[$(Category::$variant,)*];
            /// The word on the wire, in rows, events and metrics.
            pub fn word(&self) -> &str {
                match self { $(Category::$variant => $word,)* Category::Other(word) => word }
            }
            /// The HTTP status of a response that carries this category.
            pub fn http_status(&self) -> u16 {
                match self { $(Category::$variant => $http,)* Category::Other(_) => 500 }
            }
            /// The exit code of the command that ends with this category.
            pub fn exit_code(&self) -> u8 {
                match self { $(Category::$variant => $exit,)* Category::Other(_) => 1 }
            }
        }
        impl From<&str> for Category {
            fn from(word: &str) -> Self {
                match word { $($word => Category::$variant,)* other => Category::Other(other.to_owned()) }
            }
        }
    };
}

categories! {
    /// The request itself is wrong: body, target, header, input against the schema.
    Validation = "validation", 400, 2;
    /// No key, or one that is not known or was revoked.
    Unauthenticated = "unauthenticated", 401, 77;
    /// The key lacks the scope, or the request came from a place that may not ask.
    PermissionDenied = "permission_denied", 403, 77;
    /// The body is over the limit.
    TooLarge = "too_large", 413, 2;
    /// Too many requests from this principal.
    RateLimited = "rate_limited", 429, 75;
    /// No such object.
    NotFound = "not_found", 404, 66;
    /// The object's state does not allow it.
    Conflict = "conflict", 409, 65;
    /// No such agent or no such function.
    TargetNotFound = "target_not_found", 404, 66;
    /// The run, or an ancestor, was cancelled.
    RunCancelled = "run_cancelled", 409, 65;
    /// The idempotency key was used with another target or input.
    IdempotencyConflict = "idempotency_conflict", 409, 65;
    /// The agent's tags wait for approval.
    AgentPendingApproval = "agent_pending_approval", 503, 75;
    /// The agent id belongs to another principal.
    AgentIdTaken = "agent_id_taken", 409, 77;
    /// The message does not prove that it comes from the attempt it names.
    WrongAttempt = "wrong_attempt", 403, 77;
    /// A cap, a queue or a fan-out bound is reached.
    ConcurrencyLimit = "concurrency_limit", 503, 75;
    /// Every instance of the agent is down.
    NodeUnavailable = "node_unavailable", 503, 69;
    /// The circuit of the language model's endpoint is open.
    LlmUnavailable = "llm_unavailable", 503, 69;
    /// The plane is shutting down.
    ControlPlaneShutdown = "control_plane_shutdown", 503, 75;
    /// The plane cannot decide now.
    ControlPlaneUnavailable = "control_plane_unavailable", 503, 75;
    /// The plane has more to do than it takes.
    Overloaded = "overloaded", 503, 75;
    /// The disk is below its reserve.
    StoreFull = "store_full", 503, 75;
    /// The agent could not be dialled within the grace.
    AgentUnreachable = "agent_unreachable", 504, 69;
    /// The agent did not answer in time.
    AgentTimeout = "agent_timeout", 504, 124;
    /// The agent answered with an error.
    AgentError = "agent_error", 502, 1;
    /// The agent's answer cannot be used.
    BadResponse = "bad_response", 502, 1;
    /// The process that had the execution is gone.
    AgentRestartOrphaned = "agent_restart_orphaned", 502, 1;
    /// Sent, and then nothing was heard: nobody knows.
    OutcomeUnknown = "outcome_unknown", 502, 1;
    /// The caller waited as long as it may; the execution goes on.
    StillRunning = "still_running", 504, 75;
    /// A person or a policy cancelled it.
    Cancelled = "cancelled", 409, 130;
    /// The node is suspect or unreachable.
    NodeUnreachable = "node_unreachable", 503, 69;
    /// The node takes no new work.
    NodeDraining = "node_draining", 409, 65;
    /// No node fits.
    NoEligibleNode = "no_eligible_node", 409, 65;
    /// Every fitting node is full.
    FleetCapacity = "fleet_capacity", 503, 75;
    /// A queued placement's deadline passed.
    PlacementExpired = "placement_expired", 504, 75;
    /// The node cannot do that.
    UnsupportedByNode = "unsupported_by_node", 409, 65;
    /// This plane does not have that surface.
    NotSupported = "not_supported", 501, 3;
    /// A fault of ours.
    InternalError = "internal_error", 500, 70;
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for Category {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        crate::api::words_schema(
            "Why something was refused or failed. A newer plane may know more words.",
            Category::ALL.iter().map(Category::word),
        )
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for Category {}

impl Serialize for Category {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Category {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Category::from(String::deserialize(from)?.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_as_itself_and_unknown_words_are_kept() {
        assert_eq!(Category::ALL.len(), 36);
        for category in Category::ALL {
            assert_eq!(&Category::from(category.word()), category);
            assert!(category.http_status() >= 400);
            assert_ne!(category.exit_code(), 0);
        }
        assert_eq!(
            Category::from("brand_new"),
            Category::Other("brand_new".into())
        );
        assert_eq!(Category::from("brand_new").word(), "brand_new");
    }
}
