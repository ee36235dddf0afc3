//! Large payloads: stored before the event that names them, dropped when it is refused after
//! all. What a crash leaves is collected later.

use bytes::Bytes;
use muster_engine::event::Outcome;
use muster_engine::row::{Payload, PayloadKind};
use muster_store::{StoreResult, Stores};
use muster_wire::ExecutionId;

use crate::bodies::SMALL;

/// Stores a payload outside the decisions' commit.
///
/// # Errors
/// When the store cannot be written.
pub async fn store(
    stores: &Stores,
    execution: &ExecutionId,
    kind: PayloadKind,
    bytes: Bytes,
) -> StoreResult<()> {
    let (stores, execution) = (stores.clone(), execution.clone());
    let write = move || stores.decisions.put_large(&execution, kind, bytes);
    tokio::task::spawn_blocking(write)
        .await
        .unwrap_or(Err(muster_store::StoreError::Stopped))
}

/// Drops a stored payload of something that was refused; a failure leaves it to the collector.
pub async fn drop_stored(stores: &Stores, execution: &ExecutionId, kind: PayloadKind) {
    let (stores, execution) = (stores.clone(), execution.clone());
    let drop = move || stores.decisions.drop_large(&execution, kind);
    if let Ok(Err(error)) = tokio::task::spawn_blocking(drop).await {
        tracing::warn!(error = %error, "a large payload of a refused call is left to the collector");
    }
}

/// Moves a large result out of an outcome into the store. When that fails the result goes the
/// usual way, with the commit.
pub async fn store_result(
    stores: &Stores,
    execution: &ExecutionId,
    mut outcome: Outcome,
) -> Outcome {
    let Some(result) = outcome.result.take_if(|result| result.len() > SMALL) else {
        return outcome;
    };
    match store(stores, execution, PayloadKind::Result, result.0.clone()).await {
        Ok(()) => outcome.result_stored = Some(result.len() as u64),
        Err(error) => {
            tracing::warn!(execution.id = %execution, error = %error, "a large result goes with the commit");
            outcome.result = Some(Payload(result.0));
        }
    }
    outcome
}
