//! The commands of the project that are not the product: `cargo xtask test`, `cargo xtask bench`
//! and `cargo xtask fill`. Never shipped.

#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "bench")]
mod fill;
mod say;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Commands for people who work on this project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs what the tests need, says what, and runs everything.
    Test(test::Options),
    /// Measures the plane against a direct call and a bare proxy, in one run.
    #[cfg(not(feature = "bench"))]
    #[command(disable_help_flag = true)]
    Bench(Rest),
    /// Measures the plane against a direct call and a bare proxy, in one run.
    #[cfg(feature = "bench")]
    Bench(bench::Options),
    /// Fills a new store with a past and with machines, to look at large lists. Needs
    /// `--features bench`.
    #[cfg(feature = "bench")]
    Fill(fill::Options),
    /// A process of the benchmark.
    #[cfg(feature = "bench")]
    #[command(hide = true)]
    BenchChild(bench::Child),
}

/// Arguments that are passed on as they came.
#[cfg(not(feature = "bench"))]
#[derive(clap::Args)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

fn main() -> ExitCode {
    let ended = match Arguments::parse().command {
        Command::Test(options) => test::run(&options),
        #[cfg(not(feature = "bench"))]
        Command::Bench(rest) => bench_in_release(&rest.words),
        #[cfg(feature = "bench")]
        Command::Bench(options) => bench::run(&options),
        #[cfg(feature = "bench")]
        Command::Fill(options) => fill::run(&options).map(|()| true),
        #[cfg(feature = "bench")]
        Command::BenchChild(child) => bench::run_child(child).map(|()| true),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say::problem(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Builds the plane and this package in release, and goes on there: a load generator that is
/// itself slow would measure itself.
#[cfg(not(feature = "bench"))]
fn bench_in_release(words: &[String]) -> anyhow::Result<bool> {
    use test::part::{Part, target_directory};
    let built = Part::cargo("build --release --locked --package muster").stream(&mut |_| {})?
        && Part::cargo("build --release --locked --package xtask --features bench")
            .stream(&mut |_| {})?;
    anyhow::ensure!(built, "the release build failed");
    let target = target_directory().ok_or_else(|| anyhow::anyhow!("no target directory"))?;
    Part::program(&target.join("release").join("xtask"))
        .arg("bench")
        .args(words.iter().map(String::as_str))
        .stream(&mut |_| {})
}

/// The workspace's root: the parent of this package.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
