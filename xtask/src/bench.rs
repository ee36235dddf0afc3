//! `cargo xtask bench`: the plane against a direct call and a bare one-hop proxy, everything on
//! this machine, in one run with interleaved rounds. Prints ratios, gates and misses. Knows no
//! internals of the plane: it speaks HTTP and reads `/proc` and `/metrics`.

mod agent;
mod bodies;
mod connection;
mod crash;
mod fleet;
mod gates;
mod histogram;
mod history;
mod load;
mod memory;
mod nodes;
mod process;
mod proxy;
mod report;
mod rounds;
mod site;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gates::Gates;
use site::Site;

use crate::say;

/// What to measure.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Under three minutes: shorter rounds, a tenth of the large numbers.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure only these parts (may be repeated).
    #[arg(long, value_enum)]
    only: Vec<Which>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// The plane to measure, instead of the one just built.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where the stores lie: the disk that is measured.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Rounds of each lane.
    #[arg(long)]
    pub(crate) rounds: Option<usize>,
    /// Keep the folder, with the planes' logs.
    #[arg(long)]
    keep: bool,
}

/// The parts, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Which {
    /// Throughput, latency, CPU and commits of each lane.
    Rounds,
    /// 50,000 agents that beat every two seconds.
    Beats,
    /// At start, with agents, with calls in flight, with a queue.
    Memory,
    /// A start with 1,000,000 finished executions.
    History,
    /// The first answer after kill -9 with 2,000 calls in flight.
    Crash,
    /// 1,000 nodes with 20 workers each.
    Fleet,
}

/// A process of the benchmark.
#[derive(Args)]
pub(crate) struct Child {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// The no-op agent.
    Agent {
        plane: SocketAddr,
        port: u16,
        queues: u8,
    },
    /// The bare proxy.
    Proxy { port: u16, upstream: SocketAddr },
    /// The load generator.
    Load,
    /// Simulated nodes.
    Nodes {
        plane: SocketAddr,
        identities: PathBuf,
        workers: u32,
    },
}

/// Runs one of the processes.
///
/// # Errors
/// When it cannot listen or read its orders.
pub(crate) fn run_child(child: Child) -> anyhow::Result<()> {
    match child.kind {
        Kind::Agent {
            plane,
            port,
            queues,
        } => agent::serve(plane, port, queues),
        Kind::Proxy { port, upstream } => proxy::serve(port, upstream),
        Kind::Load => load::serve(),
        Kind::Nodes {
            plane,
            identities,
            workers,
        } => nodes::serve(plane, &identities, workers),
    }
}

/// Runs the benchmark. `false` when a gate is missed.
///
/// # Errors
/// When a process cannot be started or answers what it should not.
pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => std::env::current_exe()?.with_file_name("muster"),
    };
    anyhow::ensure!(binary.exists(), "there is no {}", binary.display());
    let folder = match &options.folder {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let mut site = Site::open(binary, folder.path(), options.quick)?;
    let mut gates = Gates::default();
    let mut lanes = Vec::new();
    let wanted = |which| options.only.is_empty() || options.only.contains(&which);
    for which in Which::value_variants()
        .iter()
        .copied()
        .filter(|w| wanted(*w))
    {
        say::step(&format!("{which:?}").to_lowercase());
        let ended = match which {
            Which::Rounds => rounds::measure(&mut site, options, &mut gates).map(|l| lanes = l),
            Which::Beats => memory::beats(&mut site, &mut gates),
            Which::Memory => memory::measure(&mut site, &mut gates),
            Which::History => history::measure(&mut site, &mut gates),
            Which::Crash => crash::measure(&mut site, &mut gates),
            Which::Fleet => fleet::measure(&mut site, &mut gates),
        };
        if let Err(error) = ended {
            say::problem(&format!("{which:?}: {error:#}"));
            gates.could_not(&format!("{which:?}").to_lowercase(), &format!("{error:#}"));
        }
    }
    if options.keep {
        let kept = folder.keep();
        say::note(&format!("kept {}", kept.display()));
    }
    report::print(&lanes, &gates, options.json);
    Ok(gates.all_passed())
}
