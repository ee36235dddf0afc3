//! How much is kept of what an execution says: the same in every store.

use crate::annex::LogRow;

/// Log lines, and notes, of one execution.
pub const LINES_MAX: usize = 5_000;
/// Bytes of log lines of one execution.
pub const BYTES_MAX: usize = 1 << 20;

/// What a line counts against the bound.
pub(crate) fn log_size(line: &LogRow) -> usize {
    line.message.len() + line.attributes.len() + line.source.len() + line.event_type.len() + 32
}
