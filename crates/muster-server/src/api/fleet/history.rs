//! Nodes over some time, in equal stretches: from their state now and the lines of their history,
//! each of which says what was before it. Where no plane was there, nobody knows.

use std::collections::{BTreeMap, HashMap};

use axum::Json;
use axum::extract::State;
use muster_engine::fleet::effect::NodeView;
use muster_engine::fleet::row::FleetHistoryRow;
use muster_engine::fleet::{FleetQuestion, FleetReply};
use muster_wire::api::At;
use muster_wire::api::fleet::{FleetBucket, FleetPast, NodeBucket};
use muster_wire::fleet::NodeState;
use muster_wire::{NodeId, Timestamp};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{ask, unexpected};
use crate::api::agents::history::span as span_of;
use crate::api::body::Query;
use crate::api::problem::Problem;
use crate::api::stamp::Stamp;
use crate::app::App;

/// Stretches at most.
const BUCKETS_MAX: usize = 1_000;
/// Stretches when nobody says how many.
const BUCKETS: usize = 96;
/// Lines that are read of one page of the store.
const LINES: usize = 2_000;
/// Lines that are read at most.
const LINES_MAX: usize = 40_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(past))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Asked {
    from: Option<String>,
    to: Option<String>,
    buckets: Option<usize>,
}

/// Some time, in equal stretches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    from: Timestamp,
    to: Timestamp,
    buckets: usize,
}

/// Reads it.
pub(super) fn span(
    app: &App,
    from: Option<&str>,
    to: Option<&str>,
    buckets: usize,
) -> Result<Span, Problem> {
    let (from, to) = span_of(app.clock.now(), from, to)?;
    let buckets = buckets.clamp(1, BUCKETS_MAX);
    Ok(Span { from, to, buckets })
}

impl Span {
    fn stretches(self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let count = u32::try_from(self.buckets).unwrap_or(u32::MAX);
        let width = self.to.since(self.from) / count;
        (0..count).map(move |n| {
            let from = self.from + width * n;
            let to = if n + 1 == count {
                self.to
            } else {
                from + width
            };
            (from, to)
        })
    }
}

/// The fleet over some time
///
/// In equal stretches: nodes by the worst state that each had in it.
#[utoipa::path(get, path = "/api/v1/fleet/history", tag = "fleet",
    params(("from" = Option<String>, Query, description = "RFC 3339; a day ago when absent"),
           ("to" = Option<String>, Query, description = "RFC 3339; now when absent"),
           ("buckets" = Option<usize>, Query, description = "96 when absent, 1,000 at most")),
    responses((status = 200, description = "Its past", body = FleetPast)))]
async fn past(
    State(app): State<App>,
    Query(asked): Query<Asked>,
) -> Result<Json<FleetPast>, Problem> {
    let stamp = Stamp::now(&app);
    let buckets = asked.buckets.unwrap_or(BUCKETS);
    let span = span(&app, asked.from.as_deref(), asked.to.as_deref(), buckets)?;
    let FleetReply::Nodes(views) = ask(&app, FleetQuestion::Nodes).await? else {
        return Err(unexpected("a question about nodes"));
    };
    let lines = lines(&app, None, span.from).await?;
    let mut of: HashMap<&NodeId, Vec<&FleetHistoryRow>> = HashMap::new();
    for line in &lines {
        if let Some(node) = &line.node {
            of.entry(node).or_default().push(line);
        }
    }
    let pasts: Vec<Past> = views
        .iter()
        .map(|view| Past::of(view, of.get(&view.row.id).map_or(&[][..], Vec::as_slice)))
        .collect();
    let written = written(&lines);
    let presence = app.lives.presence(span.from, span.to, &written);
    let buckets = span.stretches().map(|(from, to)| {
        let seen = presence.of(from, to, is_in(&written, from, to));
        let mut states: BTreeMap<String, u64> = BTreeMap::new();
        for state in pasts.iter().filter_map(|past| past.worst(from, to)) {
            *states.entry(state.word().to_owned()).or_default() += 1;
        }
        FleetBucket {
            from: At(from),
            to: At(to),
            states: seen.unknown.is_none().then_some(states),
            states_unknown: seen.unknown.map(str::to_owned),
            plane_down: seen.plane_down,
        }
    });
    Ok(Json(FleetPast {
        as_of: stamp.as_of,
        position: stamp.position,
        from: At(span.from),
        to: At(span.to),
        buckets: buckets.collect(),
    }))
}

/// One node over some time.
pub(super) async fn of_node(
    app: &App,
    view: &NodeView,
    span: Span,
) -> Result<Vec<NodeBucket>, Problem> {
    let lines = lines(app, Some(view.row.id.clone()), span.from).await?;
    let past = Past::of(view, &lines.iter().collect::<Vec<_>>());
    let written = written(&lines);
    let presence = app.lives.presence(span.from, span.to, &written);
    let bucket = |(from, to): (Timestamp, Timestamp)| {
        let seen = presence.of(from, to, is_in(&written, from, to));
        let state = past.worst(from, to).filter(|_| seen.unknown.is_none());
        let unknown = match state {
            Some(_) => None,
            None => seen.unknown.or(Some("it was not enrolled yet")),
        };
        NodeBucket {
            from: At(from),
            to: At(to),
            state,
            state_unknown: unknown.map(str::to_owned),
            plane_down: seen.plane_down,
        }
    };
    Ok(span.stretches().map(bucket).collect())
}

/// The moments at which something was written, in order.
fn written(lines: &[FleetHistoryRow]) -> Vec<Timestamp> {
    let mut written: Vec<Timestamp> = lines.iter().map(|line| line.at).collect();
    written.sort_unstable();
    written
}

/// Whether one of these moments, which are in order, lies in a stretch.
pub(crate) fn is_in(written: &[Timestamp], from: Timestamp, to: Timestamp) -> bool {
    let first = written.partition_point(|at| *at < from);
    written.get(first).is_some_and(|at| *at < to)
}

/// Changes of state since a moment, the latest first.
async fn lines(
    app: &App,
    node: Option<NodeId>,
    from: Timestamp,
) -> Result<Vec<FleetHistoryRow>, Problem> {
    let read = move |stores: &muster_store::Stores| -> muster_store::StoreResult<_> {
        let mut found: Vec<FleetHistoryRow> = Vec::new();
        let (mut before, mut read) = (None, 0);
        loop {
            let page = stores
                .decisions
                .fleet_history(node.as_ref(), None, before, LINES)?;
            before = page.last().map(|line| line.seq);
            read += page.len();
            let end = page.len() < LINES || page.last().is_none_or(|line| line.at < from);
            let state = |line: &FleetHistoryRow| line.at >= from && &*line.kind == "node.state";
            found.extend(page.into_iter().filter(state));
            if end || read >= LINES_MAX {
                return Ok(found);
            }
        }
    };
    Ok(app.blocking(read).await?)
}

/// What a node was, backwards from now.
struct Past {
    enrolled_at: Timestamp,
    /// From when which state, the latest first.
    states: Vec<(Timestamp, Option<NodeState>)>,
}

impl Past {
    /// From its state now and its lines, the latest first.
    fn of(view: &NodeView, lines: &[&FleetHistoryRow]) -> Self {
        let word =
            |text: &Option<std::sync::Arc<str>>| text.as_deref().and_then(NodeState::from_word);
        let mut states = Vec::with_capacity(lines.len() + 2);
        states.push((view.state_at, Some(view.state)));
        for line in lines {
            states.push((line.at, word(&line.to)));
        }
        match lines.last() {
            Some(first) => states.push((Timestamp::ZERO, word(&first.from))),
            // Nothing changed since before that time.
            None => states.push((Timestamp::ZERO, Some(view.state))),
        }
        Self {
            enrolled_at: view.row.enrolled_at,
            states,
        }
    }

    /// The worst that it was in a stretch; `None` before it was enrolled.
    fn worst(&self, from: Timestamp, to: Timestamp) -> Option<NodeState> {
        if to <= self.enrolled_at {
            return None;
        }
        let mut worst = None;
        for (since, state) in &self.states {
            if *since >= to {
                continue;
            }
            worst = worst.max(state.map(badness));
            if *since <= from {
                break;
            }
        }
        worst.map(|(_, state)| state)
    }
}

/// By how bad it is.
fn badness(state: NodeState) -> (u8, NodeState) {
    let rank = match state {
        NodeState::Online => 0,
        NodeState::Connecting => 1,
        NodeState::Suspect => 2,
        NodeState::Unreachable => 3,
        NodeState::Lost => 4,
    };
    (rank, state)
}
