//! `/healthz`, `/readyz` for supervisors and balancers, `/api/v1/health` for people. No probe
//! row is written: readiness is read from what serving does anyway.

use axum::Json;
use axum::extract::State;
use muster_engine::Reply;
use muster_engine::event::{Event, Question};
use muster_wire::{Category, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::circuits;
use crate::api::problem::Problem;
use crate::app::{App, LifePhase};
use crate::duties::DutyReport;
use crate::health::{NotReady, liveness, readiness};

/// Set-aside things that are counted, at most.
const QUARANTINE_COUNTED: usize = 1_000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(health_alias))
        .routes(routes!(readyz))
        .routes(routes!(health))
}

/// One word.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AliveWord)]
struct Word {
    /// `healthy` or `ready`.
    status: &'static str,
    /// The plane's version.
    version: &'static str,
}

fn alive(app: &App) -> Result<Json<Word>, Problem> {
    liveness(&app.driver.vitals(), app.phase.get(), app.clock.now())
        .map_err(|dead| Problem::unavailable(dead.to_string()))?;
    Ok(Json(Word {
        status: "healthy",
        version: env!("CARGO_PKG_VERSION"),
    }))
}

/// Whether the plane is alive
///
/// Fails when it should be restarted: its driver has had something to do and has not turned for
/// 30 seconds, or has ended.
#[utoipa::path(get, path = "/healthz", tag = "health",
    responses((status = 200, description = "It lives.", body = Word), (status = 503, description = "It is stuck.")))]
async fn healthz(State(app): State<App>) -> Result<Json<Word>, Problem> {
    alive(&app)
}

/// The same as `/healthz`
#[utoipa::path(get, path = "/health", tag = "health",
    responses((status = 200, description = "It lives.", body = Word), (status = 503, description = "It is stuck.")))]
async fn health_alias(State(app): State<App>) -> Result<Json<Word>, Problem> {
    alive(&app)
}

/// Whether the plane serves
///
/// Fails while it starts, while it shuts down, and when something has waited 10 seconds for its
/// commit. An idle plane is ready.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, description = "It serves.", body = Word), (status = 503, description = "Send work elsewhere.")))]
async fn readyz(State(app): State<App>) -> Result<Json<Word>, Problem> {
    match readiness(&app.driver.vitals(), app.phase.get(), app.clock.now()) {
        Ok(()) => Ok(Json(Word {
            status: "ready",
            version: env!("CARGO_PKG_VERSION"),
        })),
        Err(why @ NotReady::Leaving) => {
            Err(Problem::new(Category::ControlPlaneShutdown, why.to_string()).retry_after(1))
        }
        Err(why) => Err(Problem::unavailable(why.to_string())),
    }
}

/// How the plane is.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// `ok`, `degraded` (see `problems`), or `draining`.
    status: &'static str,
    /// What is not as it should be, in sentences.
    problems: Vec<String>,
    /// What the plane is called: `server.name`, or the name of its machine.
    name: String,
    /// The plane's version.
    version: &'static str,
    /// When it started.
    started_at: String,
    /// Seconds since.
    uptime_seconds: u64,
    /// Whether it takes no new work because it was told to stop.
    draining: bool,
    /// Why nothing is dispatched at all, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<String>,
    /// Things set aside, 1,000 at most.
    quarantined: usize,
    /// The engine's driver.
    driver: DriverShown,
    /// The store.
    store: StoreShown,
    /// What runs without a caller.
    duties: Vec<DutyShown>,
}

/// The engine's driver.
#[derive(Debug, Serialize, ToSchema)]
struct DriverShown {
    /// When it last turned.
    turned_at: String,
    /// Whether it has something to do right now.
    busy: bool,
    /// Milliseconds that the commit under way has taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    committing_ms: Option<u64>,
    /// Events that wait for it.
    inbox: u64,
    /// Requests that wait for a reply.
    waiting_requests: u64,
    /// Times the engine was rebuilt while running.
    restored: u64,
    /// Events set aside since the start.
    quarantined: u64,
}

/// The store.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StoreShown {
    /// `sqlite` or `memory`.
    kind: &'static str,
    /// Where it is.
    place: String,
    /// `power`, `process` or `none`.
    durability: &'static str,
    /// The number of its format.
    format: u32,
    /// Bytes by kind.
    bytes: std::collections::BTreeMap<&'static str, u64>,
    /// Bytes left on its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
    /// Size of its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_bytes: Option<u64>,
    /// Below so many free bytes new work is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reserve_bytes: Option<u64>,
    /// By how much it grows in a day, as of the last days; absent while too little is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    growth_bytes_per_day: Option<i64>,
    /// After how many days new work would be refused, or the oldest runs would go for
    /// `retention.max_store`; absent when it does not grow or too little is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    days_until_full: Option<f64>,
}

impl StoreShown {
    /// After how many days new work would be refused.
    pub(super) fn days_until_full(&self) -> Option<f64> {
        self.days_until_full
    }
}

/// A duty.
#[derive(Debug, Serialize, ToSchema)]
struct DutyShown {
    /// Its name.
    name: &'static str,
    /// How often it should run, in seconds.
    every_seconds: f64,
    /// When it last ran; absent before the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_ran_at: Option<String>,
    /// When it runs next.
    due_at: String,
    /// How long the last run took, in milliseconds; absent before the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
    /// What it did, or what went wrong.
    did: String,
    /// Whether the last run failed.
    failed: bool,
    /// Whether it is late.
    late: bool,
}

impl DutyShown {
    fn of(duty: DutyReport) -> Self {
        Self {
            name: duty.name,
            every_seconds: duty.every.as_secs_f64(),
            last_ran_at: duty.last_run.map(Timestamp::rfc3339),
            due_at: (duty.last_run.unwrap_or(duty.since) + duty.every).rfc3339(),
            took_ms: duty
                .took
                .map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            did: duty.said,
            failed: duty.failed,
            late: duty.late,
        }
    }
}

/// How the plane is
///
/// Driver, store, hold, quarantine, and each duty with its last run. A late or failing duty
/// makes it `degraded` and takes nothing down. Answers 200 while it can answer at all.
#[utoipa::path(get, path = "/api/v1/health", tag = "health",
    responses((status = 200, description = "The report.", body = Health)))]
async fn health(State(app): State<App>) -> Json<Health> {
    let now = app.clock.now();
    let vitals = app.driver.vitals();
    let phase = app.phase.get();
    let mut problems = Vec::new();
    if let Err(why) = readiness(&vitals, phase, now) {
        problems.push(why.to_string());
    }
    let duties = app.duties.report(now);
    for duty in &duties {
        if duty.late {
            problems.push(format!("the duty {} is late", duty.name));
        } else if duty.failed {
            problems.push(format!("the duty {} failed: {}", duty.name, duty.said));
        }
    }
    let (store, quarantined) = store(&app, &mut problems).await;
    let hold = hold(&app, &mut problems).await;
    llm_circuits(&app, &mut problems).await;
    if quarantined > 0 {
        problems.push(format!(
            "{quarantined} things are set aside; see `muster quarantine list`"
        ));
    }
    let draining = phase >= LifePhase::Leaving;
    let status = match (draining, problems.is_empty()) {
        (true, _) => "draining",
        (false, true) => "ok",
        (false, false) => "degraded",
    };
    Json(Health {
        status,
        problems,
        name: app.config.server.shown_name(),
        version: env!("CARGO_PKG_VERSION"),
        started_at: app.clock.started_at().rfc3339(),
        uptime_seconds: now.since(app.clock.started_at()).as_secs(),
        draining,
        hold,
        quarantined,
        driver: DriverShown {
            turned_at: vitals.turned_at.rfc3339(),
            busy: vitals.busy,
            committing_ms: vitals
                .committing_since
                .map(|since| u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX)),
            inbox: vitals.depths.iter().sum::<usize>() as u64,
            waiting_requests: vitals.waiters as u64,
            restored: vitals.restored,
            quarantined: vitals.quarantined,
        },
        store,
        duties: duties.into_iter().map(DutyShown::of).collect(),
    })
}

async fn store(app: &App, problems: &mut Vec<String>) -> (StoreShown, usize) {
    let (about, sizes, set_aside) = app
        .blocking(|stores| {
            let store = &stores.decisions;
            (
                store.about(),
                store.sizes(),
                store.quarantine(QUARANTINE_COUNTED),
            )
        })
        .await;
    let sizes = sizes.unwrap_or_else(|error| {
        problems.push(format!("the store cannot be measured: {error}"));
        Default::default()
    });
    let quarantined = set_aside.map_or_else(
        |error| {
            problems.push(format!("the quarantine cannot be read: {error}"));
            0
        },
        |items| items.len(),
    );
    if let Some(why) = &about.suspicious {
        problems.push(format!("the store is suspicious: {why}"));
    }
    let used = crate::growth::used(&sizes);
    let growth = app.growth.a_day(app.clock.now(), used);
    let reserve = sizes
        .disk
        .map(|disk| crate::chores::reserve(&app.config, Some(disk)));
    let room = sizes
        .free
        .map(|free| free.saturating_sub(reserve.unwrap_or(0)));
    let below_max = app
        .config
        .retention
        .max_store
        .map(|max| max.0.saturating_sub(used));
    let room = room.into_iter().chain(below_max).min();
    if room == Some(0) && below_max != Some(0) {
        problems.push("the disk is full up to its reserve: new work is refused".to_owned());
    }
    let shown = StoreShown {
        kind: about.kind,
        place: about.place,
        durability: about.durability,
        format: about.format,
        bytes: sizes.kinds.into_iter().collect(),
        free_bytes: sizes.free,
        disk_bytes: sizes.disk,
        reserve_bytes: reserve,
        growth_bytes_per_day: growth,
        days_until_full: room
            .zip(growth)
            .and_then(|(room, growth)| crate::growth::days_until(room, growth)),
    };
    (shown, quarantined)
}

/// Says which LLM endpoints calls are refused for.
async fn llm_circuits(app: &App, problems: &mut Vec<String>) {
    if app.limits.llm.endpoints.is_empty() {
        return;
    }
    let asked = tokio::time::timeout(std::time::Duration::from_secs(2), circuits::ask(app)).await;
    let Ok(Ok(all)) = asked else {
        return;
    };
    for circuit in all.iter().filter(|circuit| circuit.state == "open") {
        let why = circuit.last.as_ref().and_then(|(_, error)| error.clone());
        problems.push(format!(
            "the LLM endpoint {} fails its checks ({}), so calls that need it are refused",
            circuit.endpoint,
            why.as_deref().unwrap_or("no reason known"),
        ));
    }
}

/// The store alone, for `/api/v1/system`.
pub(super) async fn store_shown(app: &App) -> StoreShown {
    store(app, &mut Vec::new()).await.0
}

async fn hold(app: &App, problems: &mut Vec<String>) -> Option<String> {
    let ask = app.driver.ask(|waiter| Event::Asked {
        question: Question::HeldBack,
        waiter,
    });
    // A driver that does not answer is told of above; the report must come all the same.
    match tokio::time::timeout(std::time::Duration::from_secs(2), ask).await {
        Ok(Ok(Reply::HeldBack {
            reason: Some(reason),
            ..
        })) => {
            problems.push(format!("nothing is dispatched: {reason}"));
            Some(reason.to_string())
        }
        Ok(Ok(_)) => None,
        Ok(Err(_)) | Err(_) => {
            problems.push("the driver does not answer".into());
            None
        }
    }
}
