//! Who asks. The guard in front of every route puts it into the request; handlers take it from
//! there.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};

use axum::extract::FromRequestParts;
use http::request::Parts;
use muster_wire::AgentId;

/// What a key may do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everything.
    Admin,
    /// Look at everything.
    Read,
    /// Execute, see its own results, cancel.
    Call,
    /// Pause, approve, hold, drain.
    Operate,
    /// Register, beat, call back, events, logs, memory, call; for one agent id or any.
    Agent(Option<AgentId>),
    /// `agent` for one agent id, bound to a supervised process.
    Worker(Arc<str>),
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who the key stands for; a keyless caller on loopback is the owner.
    pub principal: Arc<str>,
    /// The key, hashed; `None` without one.
    pub key_hash: Option<Arc<str>>,
    /// What it may do.
    pub scopes: Arc<[Scope]>,
    /// The agent to which the key is bound.
    pub key_agent: Option<AgentId>,
    /// The supervised process to which the key belongs.
    pub worker: Option<Arc<str>>,
}

static OWNER: LazyLock<Caller> = LazyLock::new(|| Caller {
    principal: Arc::from("owner"),
    key_hash: None,
    scopes: Arc::from([Scope::Admin]),
    key_agent: None,
    worker: None,
});

impl Caller {
    /// The owner of the plane.
    pub fn owner() -> Self {
        OWNER.clone()
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts
            .extensions
            .get::<Caller>()
            .cloned()
            .unwrap_or_else(Caller::owner))
    }
}
