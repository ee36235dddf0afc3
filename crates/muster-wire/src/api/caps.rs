//! `PUT /api/v1/nodes/{agent}/cap`: how many executions an agent runs at once.

use serde::{Deserialize, Serialize};

use super::Open;
use crate::AgentId;
use crate::status::words;

words!(
    /// Who says how many.
    CapSource {
        /// The configuration.
        Config = "config",
        /// Somebody, with this route.
        Set = "set",
    }
);

/// A word of [`CapSource`].
pub type CapSourceWord = Open<CapSource>;

/// The cap of an agent, and what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CapShown {
    /// The agent.
    pub agent: AgentId,
    /// Executions at once; `null` is no cap.
    #[cfg_attr(feature = "schema", schema(required))]
    pub cap: Option<u32>,
    /// Who says so.
    pub source: CapSourceWord,
    /// What it was; `null` is no cap.
    #[cfg_attr(feature = "schema", schema(required))]
    pub was: Option<u32>,
    /// Who said so. To undo: send `was` (0 for no cap), or `null` when this is `config`.
    pub was_source: CapSourceWord,
}
