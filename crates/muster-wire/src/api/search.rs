//! The answer of `GET /api/v1/search`.

use serde::Serialize;

use super::At;
use crate::status::words;

words!(
    /// What can be found.
    FoundKind {
        /// A run.
        Run = "run",
        /// An execution.
        Execution = "execution",
        /// An agent.
        Agent = "agent",
        /// A function of an agent.
        Function = "function",
        /// A node.
        Node = "node",
        /// A worker.
        Worker = "worker",
        /// A question to a person.
        Approval = "approval",
    }
);

/// What was found.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SearchAnswer {
    /// What was asked.
    pub q: String,
    /// How it was understood: the filters in it.
    pub understood: Vec<SearchTerm>,
    /// What was found, by kind; kinds without a hit are left out.
    pub groups: Vec<FoundGroup>,
    /// What a reader should know: what is not searched, what was not understood.
    pub note: String,
}

/// A filter of a search.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SearchTerm {
    /// What it narrows: `state`, `agent`, `fn`, `category`, `reason`, `label`, `session`, `since`,
    /// `id`, or `text`.
    pub key: String,
    /// To what.
    pub value: String,
}

/// Hits of one kind.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FoundGroup {
    /// The kind.
    pub kind: FoundKind,
    /// The best of them.
    pub items: Vec<FoundItem>,
    /// Whether there are more.
    pub more: bool,
}

/// One hit.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FoundItem {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub title: String,
    /// Its state in a word; `null` for what has none.
    #[cfg_attr(feature = "schema", schema(required))]
    pub state: Option<String>,
    /// More about it.
    pub text: String,
    /// When it was made or last changed.
    #[cfg_attr(feature = "schema", schema(required))]
    pub at: Option<At>,
    /// The page that shows it.
    pub path: String,
}
