//! `GET /api/v1/usage`: what agents reported as usage, summed up. Nothing is added to it: there
//! are no prices here, a cost is what an agent said that it was.

use serde::{Deserialize, Serialize};

use super::{At, Open};
use crate::status::words;
use crate::{AgentId, FunctionName, RunId};

words!(
    /// What usage is grouped by.
    UsageGroup {
        /// The run.
        Run = "run",
        /// The agent.
        Agent = "agent",
        /// The function of an agent.
        Function = "function",
        /// The day on which executions ended, in UTC.
        Day = "day",
    }
);

/// A word of [`UsageGroup`].
pub type UsageGroupWord = Open<UsageGroup>;

/// A sum of costs in one currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageCost {
    /// The currency, as it was reported: `USD`.
    pub currency: String,
    /// The sum as a decimal number, exact to a billionth: text, so that no reader rounds it.
    pub amount: String,
    /// How many executions named a cost.
    pub executions: u64,
}

/// Sums over executions that ended. Where agents did not report, they are less than what was
/// used: see `unreported` and `unreadable`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageSums {
    /// Executions that ended.
    pub executions: u64,
    /// Of them, those whose agent reported no usage.
    pub unreported: u64,
    /// Of them, those whose report has a value that cannot be read: text, a negative or an
    /// unbelievable number, or more than 64 KiB. Such a value is in no sum.
    pub unreadable: u64,
    /// Of them, those whose report has keys that are not known here: they are in no sum, and in
    /// the execution as they came.
    pub with_other_keys: u64,
    /// Tokens that went into models; `null` when no report says.
    #[cfg_attr(feature = "schema", schema(required))]
    pub input_tokens: Option<u64>,
    /// Tokens that came out of models; `null` when no report says.
    #[cfg_attr(feature = "schema", schema(required))]
    pub output_tokens: Option<u64>,
    /// All tokens, as reported; `null` when no report says.
    #[cfg_attr(feature = "schema", schema(required))]
    pub total_tokens: Option<u64>,
    /// Input tokens that were read from a cache; `null` when no report says.
    #[cfg_attr(feature = "schema", schema(required))]
    pub cache_read_tokens: Option<u64>,
    /// Input tokens that were written to a cache; `null` when no report says.
    #[cfg_attr(feature = "schema", schema(required))]
    pub cache_creation_tokens: Option<u64>,
    /// Calls of models; `null` when no report says.
    #[cfg_attr(feature = "schema", schema(required))]
    pub model_calls: Option<u64>,
    /// Costs, one entry for each currency; empty when no report names any.
    pub cost: Vec<UsageCost>,
    /// Why numbers are `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_unknown: Option<String>,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageRow {
    /// What it is a group of: a run, an agent, `agent.function`, or a day like `2026-11-30`.
    pub key: String,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionName>,
    /// Its sums.
    pub usage: UsageSums,
}

/// Usage of what ended in a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageShown {
    /// The plane's time.
    pub as_of: At,
    /// The event position that the answer reflects.
    pub position: String,
    /// What it is grouped by.
    pub by: UsageGroupWord,
    /// It is about what ended at this moment or later,
    pub from: At,
    /// and before this one.
    pub to: At,
    /// Days newest first; else what cost most first, then what used most tokens.
    pub rows: Vec<UsageRow>,
    /// How many groups there are.
    pub rows_total: u64,
    /// Over all groups, not only those of this page.
    pub total: UsageSums,
    /// For the next page; `null` on the last.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_cursor: Option<String>,
}
