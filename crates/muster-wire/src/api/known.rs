//! What was last known of a number that nobody can know now.

use serde::Serialize;

use super::At;

/// The last count that was known, and when.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LastCount {
    /// The count.
    pub value: u64,
    /// As of when.
    pub at: At,
}

/// The last measure that was known, and when.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LastMeasure {
    /// The measure.
    pub value: f64,
    /// As of when.
    pub at: At,
}
