//! The system's packages that the tests need: asks for them only where something is missing.
//! Knows `apt-get` and nothing else; elsewhere a person installs them.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::part::Part;
use crate::say;

/// Installs packages, where there is an `apt-get`; says which.
///
/// # Errors
/// When `apt-get` cannot be run.
pub(crate) fn install(packages: &[&str]) -> anyhow::Result<()> {
    let apt = Path::new("apt-get");
    if !Part::program(apt).arg("--version").quiet() {
        return Ok(());
    }
    say::step(&format!(
        "installing the system packages {}",
        packages.join(" and ")
    ));
    Part::program(apt).arg("update").quiet();
    Part::program(apt)
        .args(["install", "--yes"])
        .args(packages.iter().copied())
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stream(&mut |_| {})?;
    Ok(())
}

/// `ip`, with which the tests of lost packets make networks of their own.
///
/// # Errors
/// When it is not there and cannot be installed.
pub(crate) fn networks() -> anyhow::Result<()> {
    let is_there = || Part::program(Path::new("ip")).arg("-V").quiet();
    if !is_there() {
        install(&["iproute2"])?;
    }
    ensure!(
        is_there(),
        "the tests of lost packets need `ip` (iproute2); install it"
    );
    Ok(())
}

/// A Chromium, with fonts that have the letters it draws.
///
/// # Errors
/// When none is there and none can be installed.
pub(crate) fn chromium() -> anyhow::Result<PathBuf> {
    let found = || {
        let named = ["chromium", "chromium-browser", "google-chrome"];
        let named = named.map(|name| Path::new("/usr/bin").join(name));
        named.into_iter().find(|program| program.exists())
    };
    if found().is_none() {
        install(&["chromium", "fonts-dejavu-core"])?;
    }
    found().context("the tests in the browser need Chromium; install it")
}
