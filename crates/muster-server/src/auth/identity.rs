//! Who a request comes from: one value for each key, shared by all its requests.

use std::sync::{Arc, LazyLock};

use muster_wire::{AgentId, NodeId};

use super::scope::Grants;

/// The principal of the data directory's owner, and of whoever needs no key.
pub const OWNER: &str = "owner";

/// Who asks, and what they may.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who the key stands for; a keyless caller on loopback is the owner.
    pub principal: Arc<str>,
    /// The key's id; `None` without a key.
    pub key_id: Option<Arc<str>>,
    /// The key's hash, shortened, as rows keep it.
    pub key_hash: Option<Arc<str>>,
    /// The one agent to which the key is bound.
    pub key_agent: Option<AgentId>,
    /// The supervised process to which the key belongs.
    pub worker: Option<Arc<str>>,
    /// The node whose link the key may hold.
    pub node: Option<NodeId>,
    /// What it may do.
    pub grants: Grants,
}

fn keyless(principal: &str, grants: Grants) -> Arc<Identity> {
    Arc::new(Identity {
        principal: principal.into(),
        key_id: None,
        key_hash: None,
        key_agent: None,
        worker: None,
        node: None,
        grants,
    })
}

static LOOPBACK: LazyLock<Arc<Identity>> = LazyLock::new(|| keyless(OWNER, Grants::loopback()));
static NOBODY: LazyLock<Arc<Identity>> = LazyLock::new(|| keyless("anonymous", Grants::default()));

impl Identity {
    /// A caller on loopback without a key.
    pub fn loopback() -> Arc<Self> {
        LOOPBACK.clone()
    }

    /// Whoever asks a route that needs nothing, from elsewhere.
    pub fn nobody() -> Arc<Self> {
        NOBODY.clone()
    }
}
