//! The Python environment of the peer tests, under `.test/`. Installs once, says what, and
//! needs no network afterwards. Leaves the machine's own Python alone.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::part::Part;
use super::system;
use crate::say;

/// The interpreter of an environment that has what `tests/peers/requirements.txt` names.
///
/// # Errors
/// When it cannot be made, or a package cannot be installed.
pub(crate) fn prepare(root: &Path) -> anyhow::Result<PathBuf> {
    let wanted = std::fs::read_to_string(root.join("tests/peers/requirements.txt"))
        .context("tests/peers/requirements.txt cannot be read")?;
    let home = root.join(".test").join("venv");
    let python = home.join("bin").join("python");
    let stamp = home.join("requirements.installed");
    let installed = std::fs::read_to_string(&stamp).unwrap_or_default();
    if installed == wanted
        && Part::program(&python)
            .args(["-c", "import agentfield"])
            .quiet()
    {
        say::note("the Python environment is ready");
        return Ok(python);
    }
    make(&home, &python)?;
    say::step("installing into .test/venv, and nowhere else:");
    for package in wanted.lines().filter(|line| line.contains("==")) {
        say::note(package);
    }
    let pip = Part::program(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        "tests/peers/requirements.txt",
    ]);
    ensure!(
        pip.stream(&mut |_| {})?,
        "pip could not install tests/peers/requirements.txt"
    );
    std::fs::write(&stamp, wanted)?;
    Ok(python)
}

/// Makes the environment, with the system's package for it where that is missing.
fn make(home: &Path, python: &Path) -> anyhow::Result<()> {
    let place = home.to_string_lossy();
    let venv = Part::program(Path::new("python3")).args(["-m", "venv", "--clear", &place]);
    let has_pip = || {
        Part::program(python)
            .args(["-m", "pip", "--version"])
            .quiet()
    };
    if venv.quiet() && has_pip() {
        say::note("made a Python environment in .test/venv");
        return Ok(());
    }
    system::install(&["python3", "python3-venv"])?;
    ensure!(
        venv.stream(&mut |_| {})? && has_pip(),
        "python3 -m venv does not work here; install Python 3.10 or newer with its venv module"
    );
    Ok(())
}
