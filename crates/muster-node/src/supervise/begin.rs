//! Starts a holder: its directory, its process, what it is told. The holder then starts the
//! worker.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use muster_wire::fleet::frame::SpawnInput;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::core::Core;
use super::{link, plan};
use crate::holder::{READY, boot};
use crate::record::WorkerDir;
use crate::state::make_private;

/// How long a holder may take to begin. It is a small process; the machine may be very busy.
const BEGIN_WAIT: Duration = Duration::from_secs(20);

/// Begins a worker, and follows it to its end.
pub(crate) async fn begin(core: Arc<Core>, input: SpawnInput) {
    let id = input.worker_id.clone();
    match begun(&core, input).await {
        Ok(mut child) => {
            // It is this process's child until this process ends: somebody has to collect it.
            tokio::spawn(async move { child.wait().await });
            link::keep(core, id).await;
        }
        Err(sentence) => core.refuse(&id, sentence),
    }
}

async fn begun(core: &Core, input: SpawnInput) -> Result<Child, String> {
    let dir = core.dir(&input.worker_id);
    let boot = plan::plan(input, &core.settings, &core.epoch)?;
    let start = boot.start.clone();
    let boot = boot::encode(&boot)?;
    let unwritable = |error: std::io::Error| {
        format!(
            "the node's state directory cannot be written: {error} ({}); nothing was started",
            dir.path().display()
        )
    };
    make_private(dir.path()).map_err(unwritable)?;
    dir.make_lock(&start).map_err(unwritable)?;
    let mut child = spawn(core, &dir)?;
    let ready = timeout(BEGIN_WAIT, tell(&mut child, &boot)).await;
    let problem = match ready {
        Ok(Ok(())) => return Ok(child),
        Ok(Err(sentence)) => sentence,
        Err(_) => format!("it did not begin within {} s", BEGIN_WAIT.as_secs()),
    };
    // Ours and not collected: its number is its own. It has started nothing, or what it started
    // dies with it.
    let _ = child.kill().await;
    Err(format!("the worker's holder failed: {problem}"))
}

fn spawn(core: &Core, dir: &WorkerDir) -> Result<Child, String> {
    let told = |error: std::io::Error| format!("the worker's holder cannot be started: {error}");
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(dir.path().join("holder.log"))
        .map_err(told)?;
    let (program, words) = core
        .settings
        .holder
        .split_first()
        .ok_or("this node has no command for holders")?;
    let mut command = Command::new(program);
    command.as_std_mut().env_clear();
    for name in ["PATH", "HOME", "LANG", "TZ", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        // The allocator of `muster` would take huge pages at once, made for a plane: 6 MB of
        // memory in a process that needs half of one.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .arg0("muster")
        .args(words)
        .arg("--dir")
        .arg(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(told)
}

/// Tells a holder what it is to do, and hears that it serves.
async fn tell(child: &mut Child, boot: &[u8]) -> Result<(), String> {
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("it has no pipes".into());
    };
    // It says why it does not read, so that its answer counts and not the broken pipe.
    let _ = to.write_all(boot).await;
    drop(to);
    let mut line = String::new();
    let heard = BufReader::new(from).read_line(&mut line).await;
    heard.map_err(|error| error.to_string())?;
    match line.trim() {
        READY => Ok(()),
        "" => Err("it ended at once; its holder.log may say why".into()),
        sentence => Err(sentence.to_owned()),
    }
}
