//! A node's link over real sockets, against a plane that the test scripts: what it asks, what it
//! answers, what it withholds. With `holder` this program is a holder, as the processes' one is.

// Its own harness prints, as the standard one does.
#![allow(clippy::print_stdout)]

#[path = "../processes/harness.rs"]
mod harness;

mod actions;
mod enrolment;
mod frames;
mod liveness;
mod local;
mod registration;
mod support;
mod terminals;
mod tunnels;

use std::process::ExitCode;

use muster_node::holder::{self, HolderArguments};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|first| first == "holder") {
        return holder::main(HolderArguments {
            words: words.collect(),
        });
    }
    let tests = [
        actions::TESTS,
        enrolment::TESTS,
        frames::TESTS,
        liveness::TESTS,
        local::TESTS,
        registration::TESTS,
        terminals::TESTS,
        tunnels::TESTS,
    ];
    harness::run(&tests.concat())
}
