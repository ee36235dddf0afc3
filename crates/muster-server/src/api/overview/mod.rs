//! `GET /api/v1/overview`: the whole plane in one answer. What is counted comes from one state of
//! the store; why something is held up comes from the engine, at the same moment as far as that
//! can be. Each count carries the query of the list that it counts.

mod held;
mod needs;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use muster_engine::fleet::effect::FleetSummary;
use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_store::{Glance, Glanced};
use muster_wire::Timestamp;
use muster_wire::api::At;
use muster_wire::api::overview::{
    FailureGroup, Failures, Flow, HeldUp, Overview, Slots, StateCounts,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::fleet;
use super::hold::HeldBack;
use super::problem::Problem;
use super::stamp::Stamp;
use super::{agents, conditional};
use crate::app::App;
use crate::lives::covered;

/// The length of a bucket of the flow, and how many there are.
const BUCKET: Duration = Duration::from_secs(60);
const BUCKETS: usize = 60;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(overview))
}

/// The whole plane at a glance
///
/// What needs somebody, what is held up and by what, whether work ends as fast as it starts, what
/// fails. Each count has the query of the list that it counts. With `ETag` and 304: the tag leaves
/// out the time of the answer, its position and ages.
#[utoipa::path(get, path = "/api/v1/overview", tag = "overview",
    responses((status = 200, description = "The overview", body = Overview),
              (status = 304, description = "Nothing changed but time")))]
async fn overview(State(app): State<App>) -> Result<Response, Problem> {
    let overview = look(&app).await?;
    let tag = tag(&overview);
    let mut headers = HeaderMap::new();
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    Ok((headers, Json(overview)).into_response())
}

/// A tag that changes with what is shown, and not with time alone.
fn tag(overview: &Overview) -> String {
    let mut plain = overview.clone();
    plain.as_of = At(Timestamp::ZERO);
    plain.position = String::new();
    plain.flow.oldest_wait_ms = None;
    conditional::weak(&serde_json::to_vec(&plain).unwrap_or_default())
}

async fn look(app: &App) -> Result<Overview, Problem> {
    let now = app.clock.now();
    let ask = buckets(now);
    let states = agents::states(app).await?;
    let FleetReply::Summary(fleet) = fleet::ask(app, FleetQuestion::Summary).await? else {
        return Err(Problem::internal(
            &"the summary of the fleet was answered with something else",
        ));
    };
    let held_back = HeldBack::ask(app).await?;
    let judged = agents::judged(app, now);
    let down = needs::down(&judged);
    let seen = app
        .blocking(move |stores| needs::Stored::read(stores, &ask, &down))
        .await?;
    let stamp = Stamp::at(app, seen.glanced.last_seq);
    let needs = needs::all(app, now, &states, &held_back, &fleet, &seen).await;
    let held = held::causes(&states, &seen.glanced);
    let count = |status| held::count(&held, status);
    let (waiting, paused, queued) = (
        count(muster_wire::Status::Waiting),
        count(muster_wire::Status::Paused),
        count(muster_wire::Status::Queued),
    );
    let running = seen.glanced.running;
    let open = running + waiting + paused + queued;
    let mut agents = StateCounts {
        total: judged.len() as u64,
        states: Default::default(),
    };
    for (_, verdict) in &judged {
        let word = agents::word(verdict).to_owned();
        *agents.states.entry(word).or_default() += 1;
    }
    let nodes = fleet::by_word(fleet.nodes.iter().map(|(state, n)| (state.word(), *n)));
    Ok(Overview {
        as_of: At(now),
        position: stamp.position,
        needs_total: needs.total,
        needs: needs.first,
        flow: flow(app, now, &ask, &seen.glanced, open),
        held: HeldUp {
            total: held.iter().map(|group| group.count).sum(),
            causes: held,
        },
        failed: failures(app, &ask, &seen.glanced),
        agents,
        nodes: StateCounts {
            total: nodes.values().sum(),
            states: nodes,
        },
        workers: fleet::by_word(fleet.workers.iter().map(|(state, n)| (state.word(), *n))),
        slots: slots(&fleet),
        running,
        waiting,
        queued,
        paused,
    })
}

/// The last hour in minutes; the last bucket is the minute that goes on.
fn buckets(now: Timestamp) -> Glance {
    let width = i64::try_from(BUCKET.as_micros()).unwrap_or(i64::MAX);
    let this = now.0.div_euclid(width) * width;
    let passed = BUCKET * u32::try_from(BUCKETS - 1).unwrap_or(u32::MAX);
    Glance {
        from: Timestamp(this) - passed,
        bucket: BUCKET,
        buckets: BUCKETS,
    }
}

fn flow(app: &App, now: Timestamp, ask: &Glance, seen: &Glanced, open: u64) -> Flow {
    let away = app.lives.away(ask.from, now);
    // A bucket is unknown when the plane was not there in any of it.
    let known: Vec<bool> = (0..u32::try_from(ask.buckets).unwrap_or(u32::MAX))
        .map(|n| {
            let from = ask.from + ask.bucket * n;
            let until = (from + ask.bucket).min(now);
            covered(&away, from, until) < until.since(from) || until <= from
        })
        .collect();
    // Whole buckets, so that the rate changes with what happens and not with each moment.
    let minutes =
        known.iter().filter(|known| **known).count() as f64 * ask.bucket.as_secs_f64() / 60.0;
    let rate = |counts: &[u64]| {
        let all: u64 = counts.iter().sum();
        (minutes > 0.0).then(|| (all as f64 / minutes * 100.0).round() / 100.0)
    };
    let shown = |counts: &[u64]| {
        let counts = counts.iter().zip(&known);
        counts
            // What is stored is known, whoever was there.
            .map(|(count, known)| (*known || *count > 0).then_some(*count))
            .collect()
    };
    let oldest = seen.queued.iter().map(|queue| queue.oldest_at).min();
    Flow {
        from: At(ask.from),
        bucket_ms: u64::try_from(ask.bucket.as_millis()).unwrap_or(u64::MAX),
        started: shown(&seen.started),
        ended: shown(&seen.ended),
        started_per_min: rate(&seen.started),
        ended_per_min: rate(&seen.ended),
        open,
        oldest_wait_ms: oldest
            .map(|at| u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX)),
    }
}

fn failures(app: &App, ask: &Glance, seen: &Glanced) -> Failures {
    let before = ask.from - ask.span();
    let there = covered(&app.lives.away(before, ask.from), before, ask.from) < ask.span();
    let total_before: u64 = seen.failed_before.iter().map(|(_, n)| n).sum();
    let there = there || total_before > 0;
    let earlier = |word: &str| {
        let found = seen
            .failed_before
            .iter()
            .find(|(one, _)| one.word() == word);
        found.map_or(0, |(_, n)| *n)
    };
    let group = |(category, count): &(muster_wire::Category, u64)| FailureGroup {
        query: format!(
            "status=failed,timeout&category={}&since={}",
            category.word(),
            ask.from.rfc3339()
        ),
        category: category.clone(),
        count: *count,
        before: there.then(|| earlier(category.word())),
    };
    Failures {
        from: At(ask.from),
        total: seen.failed.iter().map(|(_, n)| n).sum(),
        before: there.then_some(total_before),
        categories: seen.failed.iter().map(group).collect(),
    }
}

fn slots(fleet: &FleetSummary) -> Slots {
    let (here, used, away) = (&fleet.capacity, &fleet.used, &fleet.capacity_unknown);
    let free = match here.value {
        // Of none none is free, whatever is used elsewhere.
        Some(0) => Some((0, 0)),
        here => here.zip(used.value),
    };
    let total = here.value.zip(away.value);
    Slots {
        free: free.map(|(here, used)| here.saturating_sub(used)),
        free_unknown: match free {
            Some(_) => None,
            None => here.reason.clone().or_else(|| used.reason.clone()),
        },
        reachable: here.value,
        reachable_unknown: here.reason.clone(),
        total: total.map(|(here, away)| here + away),
        total_unknown: match total {
            Some(_) => None,
            None => here.reason.clone().or_else(|| away.reason.clone()),
        },
        unknown: away.value,
        unknown_unknown: away.reason.clone(),
        unknown_since: fleet.unknown_since.map(At),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bucket_holds_the_present_minute() {
        let now = Timestamp(7_200_000_000 + 61_000_000);
        let ask = buckets(now);
        assert_eq!(ask.bucket_of(now), Some(BUCKETS - 1));
        assert_eq!(ask.from.0 % 60_000_000, 0);
        assert_eq!(ask.bucket_of(ask.from), Some(0));
        assert_eq!(ask.bucket_of(ask.from - Duration::from_micros(1)), None);
    }
}
