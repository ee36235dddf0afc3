//! Who asks. The guard in front of every route puts it into the request; handlers take it from
//! there.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use muster_wire::{AgentId, Category, NodeId};

use crate::api::problem::Problem;
use crate::app::App;
use crate::auth::{Bound, Credential, Identity, Need, NotTaken};

/// Who asks. Cloning it counts references; its fields are those of [`Identity`].
#[derive(Debug, Clone)]
pub struct Caller {
    identity: Arc<Identity>,
    /// What it showed; `None` without a key.
    credential: Option<Credential>,
}

impl Deref for Caller {
    type Target = Identity;
    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl Caller {
    /// One who showed nothing.
    pub(crate) fn new(identity: Arc<Identity>) -> Self {
        Self {
            identity,
            credential: None,
        }
    }

    /// One who showed a key or a session.
    pub(crate) fn with(credential: Credential) -> Self {
        Self {
            identity: credential.identity().clone(),
            credential: Some(credential),
        }
    }

    /// The key or session that it showed.
    pub fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// Waits until what it showed is no longer taken; for ever, when it showed nothing.
    pub(crate) async fn until_over(&self, app: &App) -> NotTaken {
        match &self.credential {
            Some(credential) => credential.until_over(&app.auth.ring, &app.clock).await,
            None => std::future::pending().await,
        }
    }

    /// Whether it may do what needs this.
    pub fn may(&self, need: Need) -> bool {
        self.grants.satisfy(need)
    }

    /// Whether it may act as an agent that the body names; the guard has checked those that
    /// the path names.
    ///
    /// # Errors
    /// When its key is bound to another agent.
    pub fn must_be(&self, agent: &str) -> Result<(), Problem> {
        if self.grants.act_as(agent) {
            return Ok(());
        }
        Err(bound_elsewhere())
    }

    /// The node whose link it holds.
    ///
    /// # Errors
    /// When its key is not a node's.
    pub fn must_be_node(&self) -> Result<NodeId, Problem> {
        self.node.clone().ok_or_else(|| {
            Problem::new(
                Category::PermissionDenied,
                "this needs the key of a node: enrol one with `muster node enroll`",
            )
        })
    }

    /// Whether it may see what belongs to a principal: a key with the scope `call` alone sees
    /// only the results of its own calls.
    pub fn sees(&self, principal: &str) -> bool {
        !self.grants.only_own_results() || *self.principal == *principal
    }

    /// Whether it sees what any principal has.
    pub fn sees_all(&self) -> bool {
        !self.grants.only_own_results()
    }

    /// Whether it may stop what others called: not one who sees only its own, unless it
    /// operates the plane.
    pub fn stops_all(&self) -> bool {
        !self.grants.only_own_results() || self.may(Need::Operate)
    }

    /// For a registration: like [`Caller::must_be`], and a worker's key is bound to the agent
    /// it first registers as.
    ///
    /// # Errors
    /// When its key is bound to another agent, or the store cannot be written.
    pub async fn register_as(&self, app: &App, agent: &AgentId) -> Result<(), Problem> {
        let (Some(key), true) = (&self.key_id, self.grants.is_unbound_worker()) else {
            return self.must_be(agent.as_str());
        };
        let (work, key, agent) = (app.clone(), key.clone(), agent.clone());
        let bound = app
            .blocking(move |stores| work.auth.bind(&*stores.annex, &key, &agent))
            .await?;
        match bound {
            Bound::Yes => Ok(()),
            Bound::Elsewhere => Err(bound_elsewhere()),
        }
    }
}

fn bound_elsewhere() -> Problem {
    Problem::new(
        Category::PermissionDenied,
        "this key is bound to another agent",
    )
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // Absent only when a route was served without the guard in front of it.
        parts
            .extensions
            .get::<Caller>()
            .cloned()
            .ok_or_else(|| Problem::new(Category::Unauthenticated, "nobody checked who asks"))
    }
}
