//! The npm packages of the tests and of the dashboard, as their lock files name them: the official
//! TypeScript client of MCP, the published broker of Agent Relay, what the dashboard is built with.
//! Installs once, says what, and needs no network afterwards.

use std::path::Path;

use anyhow::{Context, ensure};

use super::part::Part;
use super::system;
use crate::say;

/// Where packages are named, and where they are installed. The client's program looks for its
/// packages beside itself.
const FOLDERS: [(&str, &str); 2] = [
    ("tests/peers/mcp", "tests/peers/mcp"),
    ("tests/peers/relay", ".test/relay"),
];

/// Installs what each `package-lock.json` names, where that is not there yet.
///
/// # Errors
/// When Node is not there and cannot be installed, or a package cannot be installed.
pub(crate) fn prepare(root: &Path) -> anyhow::Result<()> {
    for (named, installed) in FOLDERS {
        prepare_one(root, named, installed)?;
    }
    Ok(())
}

/// Installs what the dashboard is built and tested with.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn prepare_dashboard(root: &Path) -> anyhow::Result<()> {
    prepare_one(root, "web", "web")
}

fn prepare_one(root: &Path, named: &str, installed: &str) -> anyhow::Result<()> {
    let folder = root.join(installed);
    let wanted = std::fs::read_to_string(root.join(named).join("package-lock.json"))
        .with_context(|| format!("{named}/package-lock.json cannot be read"))?;
    let stamp = folder.join("node_modules").join("lock.installed");
    if node_is_there() && std::fs::read_to_string(&stamp).is_ok_and(|lock| lock == wanted) {
        say::note(&format!("the npm packages of {named} are ready"));
        return Ok(());
    }
    install_node()?;
    let package = std::fs::read_to_string(root.join(named).join("package.json"))?;
    let package: serde_json::Value = serde_json::from_str(&package)?;
    say::step(&format!(
        "installing into {installed}/node_modules, and nowhere else:"
    ));
    let named_here = ["dependencies", "devDependencies"];
    let named_here = named_here.map(|kind| package[kind].as_object());
    for (name, version) in named_here.into_iter().flatten().flatten() {
        say::note(&format!("{name} {}", version.as_str().unwrap_or_default()));
    }
    let others = wanted.matches("\"node_modules/").count();
    say::note(&format!(
        "{others} packages in all; no install scripts are run"
    ));
    if installed != named {
        std::fs::create_dir_all(&folder)?;
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            std::fs::copy(root.join(named).join(file), folder.join(file))
                .with_context(|| format!("{named}/{file} cannot be copied"))?;
        }
    }
    let npm = Part::program(Path::new("npm"))
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .inside(installed);
    ensure!(
        npm.stream(&mut |_| {})?,
        "npm could not install {named}/package-lock.json"
    );
    std::fs::write(&stamp, wanted)?;
    Ok(())
}

/// Node and npm, with which the dashboard is built, too.
///
/// # Errors
/// When they are not there and cannot be installed.
pub(crate) fn ready() -> anyhow::Result<()> {
    install_node()
}

/// Node 20.19 or newer, and npm.
fn node_is_there() -> bool {
    node_is_at_least(20, 19) && Part::program(Path::new("npm")).arg("--version").quiet()
}

fn node_is_at_least(major: u32, minor: u32) -> bool {
    let look = format!(
        "const [a, b] = process.versions.node.split('.').map(Number); \
         process.exit(a > {major} || (a === {major} && b >= {minor}) ? 0 : 1)"
    );
    Part::program(Path::new("node"))
        .args(["-e", look.as_str()])
        .quiet()
}

/// The system's packages for both, where they are missing.
fn install_node() -> anyhow::Result<()> {
    if node_is_there() {
        return Ok(());
    }
    system::install(&["nodejs", "npm"])?;
    ensure!(
        node_is_there(),
        "the dashboard and the peer tests need Node 20.19 or newer with npm; install them"
    );
    Ok(())
}
