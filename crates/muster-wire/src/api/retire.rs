//! `POST /api/v1/nodes/{agent}/retire`: an agent goes off the list.

use serde::{Deserialize, Serialize};

use crate::{AgentId, InstanceId};

/// An agent that is off the list, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentRetired {
    /// The agent.
    pub agent: AgentId,
    /// Nothing was done: with `dry_run=true`.
    pub dry_run: bool,
    /// Its instances, which go with it.
    pub instances: Vec<InstanceId>,
    /// What stays, in a sentence.
    pub stays: String,
}
