//! Being signed in: who a browser is to the plane, what it may, and what it lacks for what.

use serde::{Deserialize, Serialize};

use super::{At, Open};
use crate::status::words;

words!(
    /// By what a request is known.
    SignedBy {
        /// The cookie of a session.
        Session = "session",
        /// A key in a header.
        Key = "key",
        /// Nothing; it comes from this machine.
        Loopback = "loopback",
        /// Nothing.
        Nobody = "nobody",
    }
);

/// A word for by what a request is known.
pub type SignedByWord = Open<SignedBy>;

/// What a scope that is missing would allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Lacking {
    /// The scope.
    pub scope: String,
    /// For what it is needed.
    pub what: String,
}

/// Who asks, as the plane sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionShown {
    /// The plane's time of this answer.
    pub as_of: At,
    /// What the plane is called, when somebody gave it a name: whoever signs in sees where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plane: Option<String>,
    /// Whether it showed a session or a key that is taken.
    pub signed_in: bool,
    /// By what.
    pub by: SignedByWord,
    /// Who it stands for; `null` when nobody is signed in and the request is not from this
    /// machine.
    #[cfg_attr(feature = "schema", schema(required))]
    pub principal: Option<String>,
    /// What it may do.
    pub scopes: Vec<String>,
    /// The id of the key that it stands for.
    #[cfg_attr(feature = "schema", schema(required))]
    pub key_id: Option<String>,
    /// The name of that key.
    #[cfg_attr(feature = "schema", schema(required))]
    pub name: Option<String>,
    /// The start of that key's text.
    #[cfg_attr(feature = "schema", schema(required))]
    pub prefix: Option<String>,
    /// Whether the request comes from this machine and needs no key for calls and reads.
    pub loopback: bool,
    /// What it lacks, and for what; empty when it may do everything.
    pub needs: Vec<Lacking>,
    /// When it ends at the latest; `null` when it does not.
    #[cfg_attr(feature = "schema", schema(required))]
    pub expires_at: Option<At>,
    /// When a session ends that is not used again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_until: Option<At>,
}

/// A browser is signed in; its cookie came with this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionStarted {
    /// Who it stands for.
    pub principal: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// When it ends at the latest.
    pub expires_at: At,
}

/// A code that signs a browser in, once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CodeMade {
    /// The code, as a person types it.
    pub code: String,
    /// Where to open the dashboard with it: behind the `#`, which no server sees.
    pub path: String,
    /// What the session may do.
    pub scopes: Vec<String>,
    /// Until when it is good.
    pub expires_at: At,
}
