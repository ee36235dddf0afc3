//! `muster server`: the plane as a process. Opens the store, starts, waits for a signal, stops
//! in stages. What the stages are is the server's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use muster_server::config::{Config, Durability};
use muster_server::plane::StartError;
use muster_server::ui::{Site, SiteFile};
use muster_server::{Plane, Running};
use muster_store::sqlite::{Options, SqliteStore};
use muster_store::{StoreError, Stores};
use muster_wire::Category;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use crate::cli::Server;
use crate::failure::{Failure, Outcome};
use crate::out::{self, Look};
use crate::settings::{self, Loaded, Sources};

/// Runs the plane until a signal.
pub(super) fn run(args: &Server, look: &Look, json: bool) -> Outcome<u8> {
    let loaded = sources(args).load()?;
    if args.print_config {
        if json {
            out::data(&settings::as_json(&loaded).to_string());
        } else {
            out::data_raw(&settings::as_text(&loaded, &look.data));
        }
        return Ok(0);
    }
    start_logging("info");
    doubts(&loaded);
    raise_file_limit();
    runtime()?.block_on(serve(loaded.config))
}

fn sources(args: &Server) -> Sources {
    let mut sources = Sources::of_this_process(args.config.clone());
    let home = crate::client::home().unwrap_or_else(|| PathBuf::from("."));
    sources
        .defaults
        .push(("store.data", home.join(".muster").display().to_string()));
    for (flag, key, value) in [
        ("--listen", "server.listen", &args.listen),
        ("--data", "store.data", &args.data),
        ("--database", "store.database", &args.database),
    ] {
        if let Some(value) = value {
            sources.flags.push((flag, key, value.clone()));
        }
    }
    sources
}

async fn serve(config: Config) -> Outcome<u8> {
    let mut stop = Stop::listen()?;
    let running = start(config).await?;
    let dashboard = format!("http://{}/ui/", running.address);
    info!(address = %running.address, dashboard, version = env!("CARGO_PKG_VERSION"), "ready");
    let name = stop.next().await;
    info!(signal = name, "stopping; a second signal ends at once");
    tokio::select! {
        () = running.stop() => info!("stopped"),
        name = stop.next() => {
            warn!(signal = name, "ended at once; what was answered is stored");
            return Ok(130);
        }
    }
    Ok(0)
}

/// Opens the store and starts the plane, with errors that say what to do.
pub(crate) async fn start(config: Config) -> Outcome<Running> {
    let given = given_socket()?;
    let stores = open(&config)?;
    let started = async {
        let listener = match given {
            Some(listener) => listener,
            None => Plane::listen(config.server.listen).await?,
        };
        Plane::start_on(listener, config, stores, dashboard()).await
    };
    started.await.map_err(|error| match error {
        StartError::Listen(address, error) => cannot_listen(address, &error),
        StartError::Store(error) => from_store(&error),
        error @ StartError::Config(_) => Failure::new(Category::Validation, error.to_string()),
        error @ StartError::Key(_) => Failure::new(Category::InternalError, error.to_string()),
    })
}

/// The files of the dashboard that are part of this binary.
fn dashboard() -> Site {
    Site::new(&muster_web::template(), muster_web::NONCE, |path| {
        muster_web::asset(path).map(|asset| SiteFile {
            bytes: asset.bytes,
            gzip: asset.gzip,
            content_type: asset.content_type,
            etag: asset.etag,
            is_immutable: asset.is_immutable,
        })
    })
}

/// The socket that a supervisor hands over (`LISTEN_FDS`), so that a restart queues connections
/// instead of refusing them.
fn given_socket() -> Outcome<Option<TcpListener>> {
    let Some(listener) = listenfd::ListenFd::from_env().take_tcp_listener(0)? else {
        return Ok(None);
    };
    listener.set_nonblocking(true)?;
    Ok(Some(TcpListener::from_std(listener)?))
}

fn open(config: &Config) -> Outcome<Stores> {
    if config.store.database.is_some() {
        return Err(Failure::new(
            Category::NotSupported,
            "PostgreSQL is not in this build yet",
        )
        .hint("leave store.database away and name a data directory: --data DIR"));
    }
    let Some(directory) = &config.store.data else {
        return Err(Failure::new(Category::Validation, "store.data is not set").hint("--data DIR"));
    };
    let options = Options {
        durability: match config.store.durability {
            Durability::Power => muster_store::sqlite::Durability::Power,
            Durability::Process => muster_store::sqlite::Durability::Process,
        },
        ..Options::default()
    };
    std::fs::create_dir_all(directory).map_err(|error| not_writable(directory, &error))?;
    let store =
        Arc::new(SqliteStore::open(directory, options).map_err(|error| from_store(&error))?);
    Ok(Stores {
        decisions: store.clone(),
        annex: store,
    })
}

fn not_writable(directory: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        Category::PermissionDenied,
        format!(
            "the data directory {} cannot be written: {error}",
            directory.display()
        ),
    )
    .hint("name another with --data DIR, or change its owner")
}

fn cannot_listen(address: std::net::SocketAddr, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "something listens there already, perhaps another muster: stop it, or take another port with --listen ADDRESS:PORT"
        }
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege: take another with --listen ADDRESS:PORT"
        }
        _ => "name an address of this machine with --listen ADDRESS:PORT",
    };
    Failure::new(
        Category::Conflict,
        format!("cannot listen on {address}: {error}"),
    )
    .hint(hint)
}

fn from_store(error: &StoreError) -> Failure {
    let (category, hint) = match error {
        StoreError::InUse(_) => (
            Category::Conflict,
            "find it with `ps ax | grep muster`, or start this one with --data DIR",
        ),
        StoreError::Newer { .. } => (
            Category::NotSupported,
            "nothing was changed; run the version that wrote it, or name another with --data DIR",
        ),
        StoreError::ReadOnly(_) => (
            Category::PermissionDenied,
            "name another directory with --data DIR, or change its owner",
        ),
        StoreError::Full => (
            Category::StoreFull,
            "free some space on that disk, or move the directory",
        ),
        StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => (
            Category::PermissionDenied,
            "name another directory with --data DIR, or change its owner",
        ),
        _ => (
            Category::InternalError,
            "nothing was changed; keep the directory as it is, a copy of it helps to find out",
        ),
    };
    Failure::new(category, error.to_string()).hint(hint)
}

/// SIGTERM, SIGINT, and SIGHUP: a terminal that was closed.
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
    /// `None` under `nohup`: whoever had it ignored wants the plane to live on.
    hang_up: Option<Signal>,
    last: Option<Instant>,
}

/// Whoever signals a process and then its group means one signal.
const SAME_SIGNAL: Duration = Duration::from_millis(300);

impl Stop {
    /// Takes the signals over.
    pub(crate) fn listen() -> Outcome<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: match ignores_hang_up() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
            last: None,
        })
    }

    /// The name of the next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        loop {
            let name = tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
                () = hung_up(&mut self.hang_up) => "SIGHUP",
            };
            let before = self.last.replace(Instant::now());
            if before.is_none_or(|before| before.elapsed() > SAME_SIGNAL) {
                return name;
            }
        }
    }
}

async fn hung_up(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether this process was started with SIGHUP ignored. A system that does not say has it not.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is the first signal, so its bit is the lowest.
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// A runtime with a thread per core.
pub(crate) fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}

/// The process ends its plane and its own node together: that the node leaves is no news.
static LEAVING: AtomicBool = AtomicBool::new(false);

/// From now on nothing is logged of the fleet: this process takes down what is left of it.
pub(crate) fn leave_quietly() {
    LEAVING.store(true, Ordering::Relaxed);
}

/// Logs go to stderr: text on a terminal, JSON otherwise. `MUSTER_LOG` filters, except that the
/// MCP library never says more than warnings: below that it writes whole messages.
pub(crate) fn start_logging(level: &str) {
    use std::io::IsTerminal;
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::fmt::writer::MakeWriterExt as _;
    let filter = EnvFilter::try_from_env("MUSTER_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let filter = match "rmcp=warn".parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    };
    let is_said = |meta: &tracing::Metadata<'_>| {
        !meta.target().starts_with("muster_server::fleet") || !LEAVING.load(Ordering::Relaxed)
    };
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr.with_filter(is_said));
    if std::io::stderr().is_terminal() {
        lines.init();
    } else {
        lines.json().flatten_event(true).init();
    }
}

/// Says what looks like a setting and is none.
pub(crate) fn doubts(loaded: &Loaded) {
    for (name, meant) in &loaded.doubtful {
        warn!(
            variable = name,
            meant = meant,
            "this variable is not read; two underscores part section and key"
        );
    }
}

/// Each caller, agent and stream holds a descriptor: takes as many as the system allows.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let wanted = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        warn!(error = %error, "could not raise the limit of open files");
    }
}
