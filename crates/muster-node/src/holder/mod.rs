//! The holder of one worker: a small process that outlives the daemon.

use std::ffi::OsString;
use std::process::ExitCode;

/// The words after `muster holder`.
#[derive(Debug, Clone)]
pub struct HolderArguments {
    /// As they came.
    pub words: Vec<OsString>,
}

/// Runs a holder until its worker has ended for good.
pub fn main(arguments: HolderArguments) -> ExitCode {
    let _ = arguments;
    ExitCode::FAILURE
}
