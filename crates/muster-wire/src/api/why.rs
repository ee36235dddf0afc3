//! Why something is where it is: one shape for everything that can be asked about.

use serde::{Deserialize, Serialize};

use super::At;
use super::execution::{Attempt, ExecutionItem};
use super::word::{WhyActWord, WhyKindWord};
use crate::status::words;

words!(
    /// What is asked about.
    WhyKind {
        /// A call.
        Execution = "execution",
        /// A call and all that came of it.
        Run = "run",
        /// What can be called.
        Agent = "agent",
        /// A process of an agent.
        Instance = "instance",
        /// A machine.
        Node = "node",
        /// A process on a machine.
        Worker = "worker",
        /// Who waits for an agent.
        Queue = "queue",
        /// What the plane does by itself, again and again.
        Duty = "duty",
    }
);

/// The evidence behind where something is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Why {
    /// What it is about.
    pub id: String,
    /// What that is.
    pub kind: WhyKindWord,
    /// The plane's time of this answer.
    pub as_of: At,
    /// Where it is, in the words of its kind.
    pub state: String,
    /// Where it is, in the words that SDKs know; of executions and runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// A finer word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// Since when it is there; `null` when nobody knows.
    #[cfg_attr(feature = "schema", schema(required))]
    pub since: Option<At>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_unknown: Option<String>,
    /// What it is called; an execution and a run by `agent.function`.
    pub name: String,
    /// Its run, when it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What that is called: the target of its root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_name: Option<String>,
    /// One sentence, present tense.
    pub verdict: String,
    /// What the plane goes by.
    pub rule: WhyRule,
    /// What was seen, oldest first; what is missing has no time and says why.
    pub facts: Vec<WhyFact>,
    /// What happens by itself.
    pub next: Vec<WhyNext>,
    /// What would change it.
    pub changes: Vec<WhyChange>,
    /// What it is not.
    pub ruled_out: Vec<WhyNot>,
    /// The execution, when it is about one, or the root of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Box<ExecutionItem>>,
    /// How often that was sent, and how it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<Attempt>>,
}

/// What the plane goes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WhyRule {
    /// A stable word for it.
    pub id: String,
    /// The rule with the actual numbers.
    pub text: String,
    /// Where it is written down: a file of the project's documents, perhaps with an anchor.
    pub doc: String,
}

/// Something that was seen, or that nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WhyFact {
    /// The number of the event that tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// When; `null` for what nobody knows, or what holds now.
    #[cfg_attr(feature = "schema", schema(required))]
    pub at: Option<At>,
    /// Who saw it: `plane`, `agent`, `node`, `caller`, or the name of a person's key.
    pub by: String,
    /// What, in words.
    pub text: String,
    /// A value in the words of who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// It is not known, for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// It was inferred, not seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inferred: Option<bool>,
}

/// What happens by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WhyNext {
    /// When; `null` when it depends on something else.
    #[cfg_attr(feature = "schema", schema(required))]
    pub at: Option<At>,
    /// What.
    pub text: String,
}

/// What would change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WhyChange {
    /// What to do.
    pub text: String,
    /// The command that does it.
    pub command: String,
    /// The act of the dashboard that does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub act: Option<WhyActWord>,
}

words!(
    /// What a dashboard can do about it.
    WhyAct {
        /// Cancel the execution.
        Cancel = "cancel",
        /// Cancel the run.
        CancelTree = "cancel_tree",
        /// Resume the execution.
        Resume = "resume",
        /// Resume the run.
        ResumeTree = "resume_tree",
        /// Approve what it asks.
        Approve = "approve",
        /// Refuse what it asks.
        Reject = "reject",
        /// Run it again.
        Restart = "restart",
        /// Lift a hold.
        Unhold = "unhold",
        /// Approve the tags of an agent.
        ApproveTags = "approve_tags",
        /// Open the list of who holds the slots.
        ShowHolders = "show_holders",
        /// Ask why about another thing.
        Why = "why",
        /// Open a page outside.
        Open = "open",
    }
);

/// What it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WhyNot {
    /// In words.
    pub text: String,
}
