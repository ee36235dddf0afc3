//! What the plane keeps for Relay brokers: agents by name, channels, and the workspace's id. A
//! token is never in a record, only its hash. Knows no route and no store.

use std::collections::BTreeSet;

use muster_wire::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whether an agent has said goodbye. What its node's silence makes of that is not in here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Presence {
    /// It was registered, and nobody took it back.
    Online,
    /// Its broker said so, or its worker ended.
    Offline,
}

/// An agent as brokers know it. A worker of a broker is one; so is the broker itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    /// Its id; a worker's is the id of its row in the fleet.
    pub(crate) id: String,
    /// Its name, unique here.
    pub(crate) name: String,
    /// `agent`, or `human` for the broker itself.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// SHA-256 of its token, in hexadecimal: brokers name it when they take an agent back.
    pub(crate) token_sha256: String,
    /// Whose key registered it.
    pub(crate) principal: String,
    /// The node that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// The invocation that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) invocation: Option<String>,
    /// Whether it has said goodbye.
    pub(crate) presence: Presence,
    /// The channels it is in.
    #[serde(default)]
    pub(crate) channels: BTreeSet<String>,
    /// Whatever its broker keeps with it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) metadata: Value,
    /// When it was registered.
    pub(crate) created_at: Timestamp,
    /// When its record last changed.
    pub(crate) changed_at: Timestamp,
}

impl Agent {
    /// Whether this is the agent of that broker, come back: it names itself by a key of its own.
    pub(crate) fn is_the_same(&self, principal: &str, metadata: &Value) -> bool {
        let key = |of: &Value| of.get("identity_key")?.as_str().map(str::to_owned);
        self.principal == principal && key(metadata).is_some_and(|k| key(&self.metadata) == Some(k))
    }

    /// Whether its name may be given to another one.
    pub(crate) fn is_free(&self) -> bool {
        self.presence == Presence::Offline
    }
}

/// A channel. Nothing is said in it: brokers want it to be there before they start a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Channel {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// What it is about.
    #[serde(default)]
    pub(crate) topic: Option<String>,
    /// When it was made.
    pub(crate) created_at: Timestamp,
}

/// The one workspace of a plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Workspace {
    /// Its id: brokers derive the ids of their nodes from it, so it never changes.
    pub(crate) id: String,
    /// When it was made.
    pub(crate) created_at: Timestamp,
}
