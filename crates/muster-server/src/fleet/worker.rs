//! What a worker is given when it starts: its spec, opened, and the variables by which it finds
//! the plane and proves itself. Nothing of either is ever logged.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use muster_engine::fleet::WorkerRow;
use muster_engine::row::Payload;
use muster_store::StoreResult;
use muster_wire::WorkerId;
use muster_wire::fleet::WorkerSpec;

use super::Link;
use crate::app::App;
use crate::auth::Subject;
use crate::identity::Ready;

/// What a sealed spec is bound to.
fn about(worker: &WorkerId) -> String {
    format!("worker:{worker}")
}

/// The sealer of this store. Blocks when nobody asked for it before.
async fn sealer(app: &App) -> Result<Arc<Ready>, String> {
    if let Some(ready) = app.identity.at_hand() {
        return Ok(ready);
    }
    let work = app.clone();
    app.blocking(move |stores| work.identity.ready(&work.config, stores))
        .await
        .map_err(|error| error.to_string())
}

/// Seals a spec for the store: its environment may hold secrets.
///
/// # Errors
/// When the sealing key cannot be read or made.
pub(crate) async fn seal(
    app: &App,
    worker: &WorkerId,
    spec: &WorkerSpec,
) -> Result<Payload, String> {
    let text = serde_json::to_vec(spec).map_err(|error| error.to_string())?;
    let ready = sealer(app).await?;
    let sealed = ready.sealer().seal(&text, &about(worker));
    sealed
        .map(|sealed| Payload(Bytes::from(sealed)))
        .map_err(|error| error.to_string())
}

/// Opens the spec of a row.
///
/// # Errors
/// When it was sealed with another key, or is none: without its text.
pub(crate) async fn open(app: &App, row: &WorkerRow) -> Result<WorkerSpec, String> {
    let ready = sealer(app).await?;
    let text = ready.sealer().unseal_text(&row.spec.0, &about(&row.id));
    let text = text.map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|_| "its spec cannot be read".into())
}

/// What a worker gets beside its own variables: the plane's address as its node reaches it, a
/// key of its own, and its id.
///
/// # Errors
/// When no key can be made.
pub(crate) async fn given_env(
    app: &App,
    link: &Link,
    row: &WorkerRow,
) -> Result<BTreeMap<String, String>, String> {
    let (work, id, principal) = (app.clone(), row.id.clone(), row.principal.clone());
    let now = app.clock.now();
    let made = app
        .blocking(move |stores| {
            work.auth
                .issue(&*stores.annex, &Subject::Worker(id), &principal, now)
        })
        .await;
    let (key, _) = made.map_err(|error| format!("no key can be made for it: {error}"))?;
    Ok(BTreeMap::from([
        ("AGENTFIELD_SERVER".to_owned(), link.plane_url.to_string()),
        ("AGENTFIELD_API_KEY".to_owned(), key.expose().to_owned()),
        ("MUSTER_WORKER_ID".to_owned(), row.id.to_string()),
    ]))
}

/// Takes the keys of a worker that has ended. Blocks.
///
/// # Errors
/// When the store cannot be written.
pub(crate) fn revoke_keys(
    app: &App,
    stores: &muster_store::Stores,
    worker: &WorkerId,
) -> StoreResult<()> {
    app.auth
        .withdraw(&*stores.annex, &Subject::Worker(worker.clone()))
        .map(|_| ())
}
