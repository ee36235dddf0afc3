//! The little of a test harness that `cargo nextest` and `cargo test` ask for: lists tests, runs
//! those that are named.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process::ExitCode;

/// A test: its name and what it does.
pub(crate) type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// Names the tests of a module.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub(crate) const TESTS: &[crate::harness::Test] = &[$((
            concat!(module_path!(), "::", stringify!($name)),
            || Box::pin($name()),
        )),*];
    };
}
pub(crate) use tests;

/// Lists or runs tests, as the arguments say.
pub(crate) fn run(tests: &[Test]) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|one| one == word);
    let is_name = |word: &&String| !word.starts_with('-') && *word != "terse";
    let names: Vec<&String> = words.iter().filter(is_name).collect();
    let is_wanted = |test: &&Test| {
        names.is_empty()
            || names.iter().any(|name| {
                if has("--exact") {
                    short(test.0) == name.as_str()
                } else {
                    test.0.contains(name.as_str())
                }
            })
    };
    // None is ignored.
    let wanted: Vec<&Test> = tests
        .iter()
        .filter(is_wanted)
        .filter(|_| !has("--ignored"))
        .collect();
    if has("--list") {
        for test in wanted {
            println!("{}: test", short(test.0));
        }
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in &wanted {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(test())));
        runtime.shutdown_background();
        println!(
            "test {} ... {}",
            short(name),
            if ended.is_ok() { "ok" } else { "FAILED" }
        );
        failed += usize::from(ended.is_err());
    }
    println!("{} passed, {failed} failed", wanted.len() - failed);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix("processes::").unwrap_or(name)
}
