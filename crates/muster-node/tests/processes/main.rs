//! Real processes: holders, workers, daemons that are killed. This program is all of them: with
//! `holder` it is a holder, with `daemon` a daemon that a test may kill, else it runs the tests.
//! That is why it has its own main and not the standard one; `cargo nextest` and `cargo test`
//! run it like any other.
#![expect(
    clippy::print_stdout,
    reason = "a harness and a daemon of its tests speak there"
)]

mod again;
mod ends;
mod floods;
mod harness;
mod lives;
mod outlives;
mod refusals;
mod support;
mod watches;

use std::process::ExitCode;

use muster_node::holder::{self, HolderArguments};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let first = words.next();
    match first.as_ref().and_then(|first| first.to_str()) {
        Some("holder") => holder::main(HolderArguments {
            words: words.collect(),
        }),
        Some("daemon") => support::daemon::main(words.collect()),
        _ => {
            let tests = [
                again::TESTS,
                ends::TESTS,
                floods::TESTS,
                lives::TESTS,
                outlives::TESTS,
                refusals::TESTS,
                watches::TESTS,
            ];
            harness::run(&tests.concat())
        }
    }
}
