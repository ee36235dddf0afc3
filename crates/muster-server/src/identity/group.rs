//! Writes credentials in groups: those that come while one write is on its way go together
//! with the next. Each caller is answered after its own is in the store.

use std::sync::Arc;

use muster_store::StoreError;
use muster_store::annex::CredentialRow;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::app::App;

type Waiting = (CredentialRow, oneshot::Sender<bool>);

/// Credentials on their way to the store. Bounded by the requests that wait for them.
#[derive(Debug, Clone, Default)]
pub struct CredentialGroup(Arc<Mutex<Group>>);

#[derive(Debug, Default)]
struct Group {
    waiting: Vec<Waiting>,
    is_writing: bool,
}

impl CredentialGroup {
    /// Writes a credential with others that wait; `false` when the store could not be written.
    pub async fn write(&self, app: &App, row: CredentialRow) -> bool {
        let (done, written) = oneshot::channel();
        let starts = {
            let mut group = self.0.lock();
            group.waiting.push((row, done));
            !std::mem::replace(&mut group.is_writing, true)
        };
        if starts {
            let (group, app) = (self.clone(), app.clone());
            app.tasks
                .clone()
                .spawn(async move { group.write_all(&app).await });
        }
        written.await.unwrap_or(false)
    }

    async fn write_all(&self, app: &App) {
        loop {
            let waiting = {
                let mut group = self.0.lock();
                group.is_writing = !group.waiting.is_empty();
                std::mem::take(&mut group.waiting)
            };
            if waiting.is_empty() {
                return;
            }
            let (rows, told): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
            let end: Result<(), StoreError> = app
                .blocking(move |stores| stores.annex.credentials_add(&rows))
                .await;
            if let Err(error) = &end {
                tracing::error!(error = %error, credentials = told.len(), "credentials could not be written");
            }
            for done in told {
                // Whoever hung up is not told.
                let _ = done.send(end.is_ok());
            }
        }
    }
}
