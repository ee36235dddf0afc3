//! What both stores mean by the fleet's words: the same in every store.

use std::time::Duration;

use muster_wire::Timestamp;

/// How long a start still reads a worker that ended: late frames, idempotency keys and
/// duplicates are about it.
const LATELY: Duration = Duration::from_secs(24 * 3600);

/// A worker that ended after this is read by a start.
pub(crate) fn ended_lately(now: Timestamp) -> Timestamp {
    now - LATELY
}
