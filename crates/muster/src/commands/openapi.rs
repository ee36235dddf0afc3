//! `muster openapi`.

use super::Asking;
use crate::failure::Outcome;
use crate::out;

/// Prints the document as the plane gives it.
pub(super) async fn run(asking: &Asking<'_>) -> Outcome<u8> {
    let answer = asking.client.get("/openapi.json").await?;
    out::data(&String::from_utf8_lossy(&answer.body));
    Ok(0)
}
