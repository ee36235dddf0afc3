//! The key of the supervised process: links what registers to its supervisor. A key is bound to
//! the first agent that registers with it, so a process that may have another name gets another
//! key, for the same worker.

use std::sync::Arc;

use muster_server::App;
use muster_server::auth::{OWNER, Scope};
use muster_wire::{Category, Timestamp};
use tokio::sync::Mutex;

use crate::failure::{Failure, Outcome};

/// The keys of one worker, of which the newest is taken.
pub(crate) struct WorkerKeys {
    app: App,
    worker: Arc<str>,
    newest: Mutex<Option<Made>>,
}

#[derive(Clone)]
struct Made {
    id: String,
    text: String,
}

impl WorkerKeys {
    /// Of a worker; none is made yet.
    pub(crate) fn of(app: App, worker: Arc<str>) -> Self {
        Self {
            app,
            worker,
            newest: Mutex::new(None),
        }
    }

    /// A key for a process that is about to start. One that nothing registered with is given
    /// again; else the former is revoked.
    pub(crate) async fn for_next_process(&self) -> Outcome<String> {
        let mut newest = self.newest.lock().await;
        if let Some(made) = &*newest
            && self.is_unbound(&made.id)
        {
            return Ok(made.text.clone());
        }
        let made = self.make().await?;
        let text = made.text.clone();
        if let Some(former) = newest.replace(made) {
            self.revoke(former.id).await;
        }
        Ok(text)
    }

    /// Revokes the newest: nothing of ours runs any more.
    pub(crate) async fn end(&self) {
        if let Some(made) = self.newest.lock().await.take() {
            self.revoke(made.id).await;
        }
    }

    fn is_unbound(&self, id: &str) -> bool {
        let record = self.app.auth.ring.get(id);
        // Binding adds the scope of the one agent.
        record.is_some_and(|record| record.revoked_at.is_none() && record.scopes.len() == 1)
    }

    async fn make(&self) -> Outcome<Made> {
        let auth = self.app.clone();
        let worker = self.worker.clone();
        let made = self
            .app
            .blocking(move |stores| {
                auth.auth.create(
                    &*stores.annex,
                    "muster dev",
                    &[Scope::Worker(worker)],
                    OWNER,
                    None,
                    Timestamp::wall_clock(),
                )
            })
            .await;
        let (key, record) = made.map_err(|error| {
            Failure::new(
                Category::InternalError,
                format!("cannot make a key: {error}"),
            )
        })?;
        Ok(Made {
            id: record.id,
            text: key.expose().to_owned(),
        })
    }

    async fn revoke(&self, id: String) {
        let auth = self.app.clone();
        let revoked = self
            .app
            .blocking(move |stores| {
                auth.auth
                    .revoke(&*stores.annex, &id, Timestamp::wall_clock())
            })
            .await;
        if let Err(error) = revoked {
            tracing::warn!(error = %error, "could not revoke the worker's key");
        }
    }
}
