//! `GET /api/v1/system`: what `muster doctor` looks at. The effective configuration without its
//! secrets, the limits of the process, the clock, the disk.

use axum::Json;
use axum::extract::State;
use muster_wire::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::health::{StoreShown, store_shown};
use crate::app::App;
use crate::meters::process;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(system))
}

/// The plane and where it runs.
#[derive(Debug, Serialize, ToSchema)]
struct System {
    /// What the plane is called: `server.name`, or the name of its machine.
    name: String,
    /// The plane's version.
    version: &'static str,
    /// Operating system and processor.
    platform: String,
    /// The process' id.
    pid: u32,
    /// Processors it may use.
    cpus: usize,
    /// What it uses.
    process: ProcessShown,
    /// The clock.
    clock: ClockShown,
    /// The store and its disk.
    store: StoreShown,
    /// Where it listens.
    listeners: Vec<String>,
    /// Every effective value; secrets are redacted.
    #[schema(value_type = Object)]
    config: Value,
}

/// What the process uses; what cannot be known is absent.
#[derive(Debug, Serialize, ToSchema)]
struct ProcessShown {
    /// Resident memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    /// Open file descriptors.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_fds: Option<u64>,
    /// Most it may open; absent when there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_fds: Option<u64>,
    /// User and system time.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_seconds: Option<f64>,
}

/// The clock. The plane counts on from the wall clock of its start: a step since then decides
/// nothing, and is seen here.
#[derive(Debug, Serialize, ToSchema)]
struct ClockShown {
    /// The plane's time.
    now: String,
    /// Milliseconds by which the wall clock is ahead of it.
    wall_ahead_ms: i64,
}

/// Look at the plane and its machine
#[utoipa::path(get, path = "/api/v1/system", tag = "health",
    responses((status = 200, description = "What a doctor looks at.", body = System)))]
async fn system(State(app): State<App>) -> Json<System> {
    let seen = process::look();
    let (now, wall) = (app.clock.now(), Timestamp::wall_clock());
    Json(System {
        name: app.config.server.shown_name(),
        version: env!("CARGO_PKG_VERSION"),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        pid: std::process::id(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        process: ProcessShown {
            memory_bytes: seen.memory,
            open_fds: seen.fds,
            max_fds: seen.fds_max,
            cpu_seconds: seen.cpu_seconds,
        },
        clock: ClockShown {
            now: now.rfc3339(),
            wall_ahead_ms: (wall.0 - now.0) / 1_000,
        },
        store: store_shown(&app).await,
        listeners: vec![app.config.server.listen.to_string()],
        config: serde_json::to_value(&*app.config).unwrap_or_default(),
    })
}
