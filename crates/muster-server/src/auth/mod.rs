//! Who asks, and what they may. Replaced as a whole by the real thing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use muster_store::Stores;

use crate::app::App;
use crate::config::Config;

/// Keys and rules.
#[derive(Debug, Default)]
pub struct Auth;

impl Auth {
    /// Reads what a start needs.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn open(_config: &Arc<Config>, _stores: &Stores) -> Result<Self, muster_store::StoreError> {
        Ok(Self)
    }
}

/// In front of every route: host, origin, key; puts the [`crate::api::caller::Caller`] there.
pub async fn guard(State(_app): State<App>, request: Request, next: Next) -> Response {
    next.run(request).await
}
