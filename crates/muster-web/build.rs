//! Makes the dashboard's files that this crate embeds, in `OUT_DIR/ui`. From `UI_DIST` when that
//! names a folder with a finished build; else by npm and vite from `web/`; else one page that
//! says what is missing. `UI_REQUIRED=1` makes the last a failure. Writes nothing into the
//! source tree but `web/node_modules`, and takes turns there with other builds of the same tree.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What a change of makes a new build, beside this file. `openapi.json` is what the client's
/// types come from.
const SOURCES: [&str; 6] = [
    "web/src",
    "web/public",
    "web/index.html",
    "web/package-lock.json",
    "web/vite.config.ts",
    "openapi.json",
];
/// In `node_modules`: the lock file from which they were installed.
const STAMP: &str = "lock.installed";
/// Smaller files gain nothing.
const COMPRESS_FROM: usize = 860;

fn main() -> Outcome<()> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=build.rs");
    for source in SOURCES {
        // One that is missing would make every build a new one.
        let path = root.join(source);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    for variable in ["UI_DIST", "UI_REQUIRED"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }

    let fresh = out.join("ui.new");
    remove(&fresh)?;
    let made = match std::env::var_os("UI_DIST") {
        Some(dist) => copy(&root.join(&dist), &fresh)
            .map_err(|error| format!("UI_DIST={}: {error}", dist.display()).into()),
        None => build(&root.join("web"), &fresh),
    };
    let made = made.and_then(|()| match fresh.join("index.html").is_file() {
        true => Ok(()),
        false => Err("it has no index.html".into()),
    });
    if let Err(error) = made {
        let required = std::env::var("UI_REQUIRED").is_ok_and(|word| !matches!(&*word, "" | "0"));
        if required {
            return Err(format!("the dashboard could not be built: {error}").into());
        }
        let error = error.to_string().replace(['\n', '\r'], " ");
        println!("cargo:warning=the dashboard is one page that says so: {error}");
        remove(&fresh)?;
        fs::create_dir_all(&fresh)?;
        fs::write(fresh.join("index.html"), PLACEHOLDER)?;
    }
    compress(&fresh)?;
    // Whoever embeds meets the old files or the new ones.
    let place = out.join("ui");
    remove(&place)?;
    fs::rename(&fresh, &place)?;
    Ok(())
}

/// Installs what the lock file names, where that is not there yet, and builds.
fn build(web: &Path, into: &Path) -> Outcome<()> {
    if !web.join("package-lock.json").is_file() {
        return Err("there is no web/package-lock.json".into());
    }
    for program in ["node", "npm"] {
        let version = Command::new(program).arg("--version").output();
        if !version.is_ok_and(|output| output.status.success()) {
            return Err(format!(
                "{program} is not there; install Node.js 20 or newer, or set UI_DIST to a finished build"
            )
            .into());
        }
    }
    // Another build of this tree, an editor's perhaps, may be at it. The lock goes with this
    // process.
    let turn = File::open(web)?;
    turn.lock()?;
    let wanted = fs::read(web.join("package-lock.json"))?;
    let stamp = web.join("node_modules").join(STAMP);
    if fs::read(&stamp).ok().as_ref() != Some(&wanted) {
        let flags = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        run(web, "npm", flags.map(OsStr::new))?;
        fs::write(&stamp, &wanted)?;
    }
    let flags = ["--no", "--", "vite", "build", "--emptyOutDir", "--logLevel"];
    let flags = flags.into_iter().chain(["warn", "--outDir"]);
    run(web, "npx", flags.map(OsStr::new).chain([into.as_os_str()]))
}

fn run<'a>(
    inside: &Path,
    program: &str,
    words: impl IntoIterator<Item = &'a OsStr>,
) -> Outcome<()> {
    let output = Command::new(program)
        .args(words)
        .current_dir(inside)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // The end of what it said: that is where tools put what went wrong.
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = lines[lines.len().saturating_sub(12)..].join("\n");
    Err(format!("{program} ended with {}: {last}", output.status).into())
}

fn copy(from: &Path, into: &Path) -> Outcome<()> {
    fs::create_dir_all(into)?;
    println!("cargo:rerun-if-changed={}", from.display());
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = into.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Writes `NAME.gz` beside each file that becomes smaller by it. Not of pages: they differ in
/// each answer.
fn compress(folder: &Path) -> Outcome<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            compress(&path)?;
            continue;
        }
        let kind = path.extension().and_then(OsStr::to_str).unwrap_or("");
        if !matches!(kind, "js" | "css" | "svg" | "json" | "map" | "txt" | "wasm") {
            continue;
        }
        let bytes = fs::read(&path)?;
        if bytes.len() < COMPRESS_FROM {
            continue;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        let packed = encoder.finish()?;
        if packed.len() < bytes.len() {
            fs::write(format!("{}.gz", path.display()), packed)?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> Outcome<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

const PLACEHOLDER: &str = r#"<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Muster</title></head>
<body>
<h1>The plane runs; its dashboard was not built</h1>
<p>This binary was built where Node.js was not found, or the build of <code>web/</code> failed.
Install Node.js 20 or newer and build again: <code>cargo build --release</code>. The build says why
when it is run with <code>UI_REQUIRED=1</code>.</p>
<p>Everything else works: <a href="/docs">the API</a>, and <code>muster --help</code> in a terminal.</p>
</body>
</html>
"#;
