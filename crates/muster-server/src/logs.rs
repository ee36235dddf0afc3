//! Logs and notes on their way to the store. Filled by its owner.

/// Where lines wait for the next write.
#[derive(Debug, Default)]
pub struct LogSink;
