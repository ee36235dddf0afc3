//! The `muster` command: reads its arguments, runs one command, and turns how it ended into an
//! exit code. Decides nothing about executions: that is the engine's, behind the plane.

mod cli;
mod client;
mod commands;
mod dev;
mod failure;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod hints;
mod out;
mod settings;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The holder of a worker, which `muster node` starts: a process of few parts. Its words are a
    // program's arguments, so nothing else reads them.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|first| first == "holder") {
        return muster_node::holder::main(muster_node::holder::HolderArguments {
            words: words.collect(),
        });
    }
    commands::completions::answer();
    let cli = cli::read();
    let look = out::Look::of_this_process(cli.color);
    let json = cli.json;
    match commands::run(cli, &look) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print(&look.errors, json);
            ExitCode::from(failure.exit_code())
        }
    }
}
