//! `cargo xtask test`: every check of the project, in one command. A failing part does not hide
//! the others; the last line is the sum of all test runners. Knows no test by name.

mod counts;
mod node;
pub(crate) mod part;
mod python;
mod system;

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, ValueEnum};
use counts::Counts;
use part::Part;

use crate::{root, say};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Run only these parts (may be repeated).
    #[arg(long, value_enum)]
    only: Vec<Which>,
    /// Run only tests whose name matches: a filter of the test runners.
    #[arg(short = 'k', value_name = "FILTER")]
    filter: Option<String>,
    /// Give the peers and the browser a release binary: slower to build, quicker to run.
    #[arg(long)]
    release: bool,
}

/// The parts, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Which {
    /// Formatting.
    Fmt,
    /// Lints, warnings as errors.
    Clippy,
    /// Documentation, warnings as errors.
    Doc,
    /// The dependency tree holds no second TLS backend.
    Tree,
    /// The dashboard: its types against the document of the API, its tests.
    Web,
    /// The tests in Rust.
    Rust,
    /// Tests with real peers, against the real binary.
    Peers,
    /// The dashboard in a real browser, against the real binary.
    Browser,
}

/// What one part came to.
struct Row {
    name: &'static str,
    counts: Option<Counts>,
    passed: bool,
    seconds: u64,
    why: String,
}

/// Runs what was asked for. `false` when anything failed.
///
/// # Errors
/// When a command of ours cannot be started at all.
pub(crate) fn run(options: &Options) -> anyhow::Result<bool> {
    let mut rows = Vec::new();
    // Whatever compiles the binary builds the dashboard.
    node::ready()?;
    for which in Which::value_variants() {
        if options.only.is_empty() || options.only.contains(which) {
            rows.extend(run_part(*which, options));
        }
    }
    Ok(conclude(&rows))
}

fn run_part(which: Which, options: &Options) -> Vec<Row> {
    let filter = options.filter.as_deref();
    match which {
        Which::Fmt => vec![check("fmt", &Part::cargo("fmt --all --check"))],
        Which::Clippy => vec![check(
            "clippy",
            &Part::cargo("clippy --workspace --all-targets --all-features --locked -- -D warnings"),
        )],
        Which::Doc => vec![check(
            "doc",
            &Part::cargo("doc --workspace --no-deps --all-features --locked")
                .env("RUSTDOCFLAGS", "-D warnings"),
        )],
        Which::Tree => vec![no_second_tls()],
        Which::Web => web(filter),
        Which::Rust => rust_tests(filter),
        Which::Peers => real("peers", options.release, |binary| peers(binary, filter)),
        Which::Browser => real("browser", options.release, |binary| browser(binary, filter)),
    }
}

/// A part that passes or fails as a whole.
fn check(name: &'static str, part: &Part) -> Row {
    let began = Instant::now();
    let (passed, why) = match part.stream(&mut |_| {}) {
        Ok(passed) => (passed, String::new()),
        Err(error) => (false, format!("{error:#}")),
    };
    Row {
        name,
        counts: None,
        passed,
        seconds: began.elapsed().as_secs(),
        why,
    }
}

/// A part whose runner counts its tests; one that counts none has failed.
fn counted(name: &'static str, part: &Part) -> Row {
    let began = Instant::now();
    let mut counts = Counts::default();
    let ended = part.stream(&mut |line| counts.read(line));
    let (mut passed, mut why) = match ended {
        Ok(passed) => (passed, String::new()),
        Err(error) => (false, format!("{error:#}")),
    };
    if !passed && counts.failed == 0 {
        counts.failed = 1;
    }
    if passed && counts.failed > 0 {
        passed = false;
        why = "the runner counted failures but ended well".to_owned();
    }
    Row {
        name,
        counts: Some(counts),
        passed,
        seconds: began.elapsed().as_secs(),
        why,
    }
}

fn rust_tests(filter: Option<&str>) -> Vec<Row> {
    let nextest = Part::cargo("nextest --version").quiet();
    let mut suite = if nextest {
        Part::cargo(
            "nextest run --workspace --all-features --locked --no-fail-fast --no-tests pass",
        )
    } else {
        Part::cargo("test --workspace --all-features --locked --no-fail-fast --all-targets")
    };
    if let Some(filter) = filter {
        suite = suite.arg(filter);
    }
    let mut rows = vec![counted("rust", &suite)];
    if filter.is_none() {
        let docs = Part::cargo("test --workspace --all-features --locked --no-fail-fast --doc");
        rows.push(counted("rust, in docs", &docs));
    }
    rows
}

/// `ring` is the one TLS backend: two of them make every build longer and panic at start.
fn no_second_tls() -> Row {
    let began = Instant::now();
    let tree = Part::cargo("tree --workspace --locked -e normal,build,dev --prefix none").output();
    let (passed, why) = match tree {
        Ok(text) if text.contains("aws-lc-rs") => (false, "cargo tree names aws-lc-rs".to_owned()),
        Ok(text) if text.contains("muster") => (true, String::new()),
        Ok(_) => (false, "cargo tree printed no package of ours".to_owned()),
        Err(error) => (false, format!("{error:#}")),
    };
    Row {
        name: "tree",
        counts: None,
        passed,
        seconds: began.elapsed().as_secs(),
        why,
    }
}

/// The dashboard's own checks, which need no plane.
fn web(filter: Option<&str>) -> Vec<Row> {
    if let Err(error) = node::prepare_dashboard(&root()) {
        return vec![cannot_run("web", &error)];
    }
    let npm = |arguments: &[&str]| {
        Part::program(Path::new("npm"))
            .args(arguments.iter().copied())
            .env("NO_COLOR", "1")
            .inside("web")
    };
    let mut tests = npm(&["test", "--", "--reporter=default"]);
    if let Some(filter) = filter {
        tests = tests.args(["-t", filter, "--passWithNoTests"]);
    }
    vec![
        check("web, types", &npm(&["run", "check"])),
        counted("web", &tests),
    ]
}

/// Builds the binary and runs tests that need it. A peer that is not there has failed; it was not
/// skipped.
fn real(
    name: &'static str,
    release: bool,
    tests: impl FnOnce(&str) -> anyhow::Result<Part>,
) -> Vec<Row> {
    let build = if release {
        Part::cargo("build --locked --package muster --release")
    } else {
        everything()
    };
    let built = check("build", &build);
    if !built.passed {
        return vec![
            built,
            cannot_run(name, &anyhow::anyhow!("the binary could not be built")),
        ];
    }
    let profile = if release { "release" } else { "debug" };
    let suite = part::target_directory()
        .context("cargo does not say where its target is")
        .map(|target| target.join(profile).join("muster"))
        .and_then(|binary| tests(&binary.to_string_lossy()));
    match suite {
        Ok(suite) => vec![built, counted(name, &suite)],
        Err(error) => vec![built, cannot_run(name, &error)],
    }
}

/// What the tests in Rust have built already: after them nothing is compiled again.
fn everything() -> Part {
    Part::cargo("build --workspace --all-features --all-targets --locked")
}

fn peers(binary: &str, filter: Option<&str>) -> anyhow::Result<Part> {
    let python = python::prepare(&root())?;
    node::prepare(&root())?;
    system::networks()?;
    let mut suite = Part::program(&python)
        .args(["-m", "pytest", "-p", "no:cacheprovider", "--color=no"])
        // Most of their time they wait: for an agent to come back, for a grace to pass.
        .args(["-n", "3", "--dist", "loadgroup"])
        .env("MUSTER_BINARY", binary)
        .inside("tests/peers");
    if let Some(filter) = filter {
        suite = suite.args(["-k", filter]);
    }
    Ok(suite)
}

fn browser(binary: &str, filter: Option<&str>) -> anyhow::Result<Part> {
    let python = python::prepare(&root())?;
    node::prepare_dashboard(&root())?;
    let chromium = system::chromium()?;
    // It fills the large stores that the tests look at.
    anyhow::ensure!(
        everything().stream(&mut |_| {})?,
        "xtask could not be built"
    );
    let filler = part::target_directory().context("cargo does not say where its target is")?;
    let filler = filler.join("debug").join("xtask");
    let mut suite = Part::program(Path::new("npx"))
        .args(["vitest", "run", "--config", "vitest.e2e.config.ts"])
        .args(["--reporter=default"])
        .env("NO_COLOR", "1")
        .env("MUSTER_BINARY", binary)
        .env("MUSTER_PYTHON", &python.to_string_lossy())
        .env("MUSTER_XTASK", &filler.to_string_lossy())
        .env("CHROMIUM", &chromium.to_string_lossy())
        .inside("web");
    if let Some(filter) = filter {
        suite = suite.args(["-t", filter, "--passWithNoTests"]);
    }
    Ok(suite)
}

/// Tests that could not be run have failed.
fn cannot_run(name: &'static str, why: &anyhow::Error) -> Row {
    Row {
        name,
        counts: Some(Counts {
            failed: 1,
            ..Counts::default()
        }),
        passed: false,
        seconds: 0,
        why: format!("{why:#}"),
    }
}

/// Prints the table and, last and alone, the sum. A failed check counts as one failure.
fn conclude(rows: &[Row]) -> bool {
    let mut sum = Counts::default();
    say::line("");
    for row in rows {
        let verdict = if row.passed { "passed" } else { "FAILED" };
        let detail = match &row.counts {
            Some(counts) => {
                sum.add(counts);
                format!(
                    "{} passed, {} failed, {} skipped",
                    counts.passed, counts.failed, counts.skipped
                )
            }
            None => {
                sum.failed += u64::from(!row.passed);
                String::new()
            }
        };
        let name = row.name;
        let seconds = row.seconds;
        let text = format!("{name:<14} {verdict}  {seconds:>5} s  {detail} {}", row.why);
        say::line(text.trim_end());
    }
    say::line("");
    say::line(&format!("{} passed, {} failed", sum.passed, sum.failed));
    sum.failed == 0 && rows.iter().all(|row| row.passed)
}
