//! The steps of a run in columns, for a drawing of it: which rows, where their time went, and
//! what changed since. And in groups, where there are too many to draw.

mod groups;
pub(crate) mod receipts;
pub(crate) mod segments;

pub(crate) use groups::grouped;

use std::collections::{BTreeSet, HashMap};

use muster_engine::row::ExecutionRow;
use muster_store::{ExecutionFilter, Life, Page, RunSummary, StoreResult, Stores};
use muster_wire::api::steps::{Columns, StepColumns, StepReceipt, flag};
use muster_wire::{Category, ExecutionId, ExecutionKind, ParentEnd, RunId, Status};

use super::cursor::Cursors;
use super::paging;
use super::problem::Problem;
use super::stamp::Stamp;
use super::why::sentence;
use crate::app::App;
use segments::ms;

/// The most rows of one answer.
pub(super) const LIMIT_MAX: usize = 2_000;
/// Events that are looked through for what changed; a reader that is further behind reads anew.
const CHANGES_MAX: usize = 5_000;
/// Ids that may be asked for at once.
const IDS_MAX: usize = 500;

/// Which steps are wanted.
pub(super) enum Wanted {
    /// So many from here on.
    Window {
        /// Behind this one.
        after: Option<String>,
        /// At most.
        limit: usize,
    },
    /// Those that changed since an event.
    Since(u64),
    /// These.
    Ids(Vec<ExecutionId>),
}

impl Wanted {
    /// Reads a query.
    ///
    /// # Errors
    /// 400 when a cursor or an id is none.
    pub(super) fn read(
        app: &App,
        after: Option<&str>,
        after_position: Option<&str>,
        ids: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Self, Problem> {
        if let Some(ids) = ids.filter(|ids| !ids.is_empty()) {
            let ids: Vec<ExecutionId> = ids
                .split(',')
                .map(|id| super::show::execution_id(id.trim()))
                .collect::<Result<_, _>>()?;
            if ids.len() > IDS_MAX {
                return Err(Problem::validation(format!("at most {IDS_MAX} ids")));
            }
            return Ok(Wanted::Ids(ids));
        }
        if let Some(position) = after_position.filter(|position| !position.is_empty()) {
            let seq = Cursors::of(app).read(position).ok_or_else(|| {
                Problem::validation("after_position: not one that this plane gave")
            })?;
            return Ok(Wanted::Since(seq));
        }
        Ok(Wanted::Window {
            after: after.filter(|after| !after.is_empty()).map(str::to_owned),
            limit: limit.unwrap_or(LIMIT_MAX).clamp(1, LIMIT_MAX),
        })
    }
}

/// What the store says.
struct Read {
    rows: Vec<ExecutionRow>,
    lives: Vec<Life>,
    places: HashMap<ExecutionId, u64>,
    next: Option<String>,
    reset: bool,
}

/// The steps of a run in columns.
///
/// # Errors
/// When the store or the engine cannot be read, and 400 for a cursor that is none.
pub(super) async fn columns(
    app: &App,
    run: &RunSummary,
    wanted: Wanted,
) -> Result<StepColumns, Problem> {
    let stamp = Stamp::now(app);
    let page = match &wanted {
        Wanted::Window { after, limit } => {
            let mut page = paging::page(None, after.as_deref())?;
            page.limit = *limit;
            Some(page)
        }
        Wanted::Since(_) | Wanted::Ids(_) => None,
    };
    let id = run.id.clone();
    let read = app
        .blocking(move |stores| read(stores, &id, wanted, page))
        .await?;
    let verdicts = sentence::verdicts(app, read.rows.iter()).await?;
    let mut names: Vec<String> = Vec::new();
    let mut known: HashMap<(String, String), u32> = HashMap::new();
    let mut columns = Columns::default();
    for (row, life) in read.rows.iter().zip(&read.lives) {
        let key = (row.agent.to_string(), row.function.to_string());
        let name = *known.entry(key).or_insert_with(|| {
            names.push(format!("{}.{}", row.agent, row.function));
            u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
        });
        let place = |id: &ExecutionId| read.places.get(id).copied();
        columns.index.push(place(&row.id).unwrap_or_default());
        let parent = row.parent.as_ref().and_then(place);
        columns
            .parent
            .push(parent.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)));
        columns.name.push(name);
        columns.why.push(sentence::of(row, &verdicts));
        push(&mut columns, row, life);
    }
    let total = run.counts.iter().map(|(_, count)| count).sum();
    Ok(StepColumns {
        as_of: stamp.as_of,
        position: stamp.position,
        run_id: run.id.clone(),
        state: run.status.into(),
        total,
        names,
        columns,
        next: read.next,
        reset: read.reset.then_some(true),
    })
}

/// What the row and its life tell by themselves.
fn push(columns: &mut Columns, row: &ExecutionRow, life: &Life) {
    let segments = segments::of(row, life);
    let queued = segments
        .iter()
        .rev()
        .find(|segment| segment.0.known() == Some(muster_wire::api::steps::SegmentKind::Queued));
    columns.id.push(row.id.clone());
    columns.agent.push(row.agent.clone());
    columns.state.push(row.status.into());
    columns
        .reason
        .push(row.status_reason.as_deref().map(str::to_owned));
    columns.category.push(row.error_category.clone());
    columns.created.push(ms(row.created_at));
    columns.queued.push(queued.map(|segment| segment.1));
    columns.started.push(row.started_at.map(ms));
    columns.ended.push(row.ended_at.map(ms));
    columns.attempts.push(row.attempt);
    let receipt = receipts::of(row, life);
    columns.flags.push(flags(row, life, receipt));
    columns.receipt.push(receipt.map(Into::into));
    let replayed = row.replayed_from().map(ExecutionId::trusted);
    columns.replay_of.push(replayed);
    columns.segments.push(segments);
}

fn flags(row: &ExecutionRow, life: &Life, receipt: Option<StepReceipt>) -> u32 {
    let observed = row.kind == ExecutionKind::Observed;
    let reason = row.status_reason.as_deref().unwrap_or_default();
    let stopped_knowing = matches!(
        row.error_category,
        Some(Category::OutcomeUnknown | Category::AgentTimeout | Category::AgentRestartOrphaned)
    );
    let was_paused = row.status == Status::Paused
        || life
            .events
            .iter()
            .any(|event| event.kind == muster_engine::row::EventKind::ExecutionPaused);
    let marks = [
        (
            row.parent.is_some() && row.on_parent_end == ParentEnd::Detach && !observed,
            flag::DETACHED,
        ),
        (observed, flag::OBSERVED),
        (row.over_cap, flag::OVER_CAP),
        (row.late_outcome.is_some(), flag::LATE_OUTCOME),
        (row.replayed_from().is_some(), flag::REPLAYED),
        (
            observed && reason.starts_with("parent_"),
            flag::INFERRED_END,
        ),
        (stopped_knowing, flag::STOPPED_KNOWING),
        (was_paused, flag::PAUSED),
        (row.attempt > 1, flag::RESENT),
        (receipts::code_may_run(row, receipt), flag::CODE_MAY_RUN),
    ];
    marks
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, mark)| mark)
        .sum()
}

fn read(stores: &Stores, run: &RunId, wanted: Wanted, page: Option<Page>) -> StoreResult<Read> {
    let store = &stores.decisions;
    let ids = store.step_ids(run)?;
    let places: HashMap<ExecutionId, u64> = ids.into_iter().zip(0..).collect();
    let mut next = None;
    let mut reset = false;
    let rows = match (wanted, page) {
        (_, Some(page)) => {
            let filter = ExecutionFilter {
                run: Some(run.clone()),
                oldest_first: true,
                ..ExecutionFilter::default()
            };
            let rows = store.executions(&filter, &page)?;
            next = rows
                .last()
                .filter(|_| rows.len() == page.limit)
                .map(|row| paging::cursor(row.created_at, row.id.as_str()));
            rows
        }
        (Wanted::Since(seq), None) => match changed(stores, run, seq)? {
            Some(ids) => some(stores, run, ids)?,
            None => {
                reset = true;
                Vec::new()
            }
        },
        (Wanted::Ids(ids), None) => some(stores, run, ids)?,
        (Wanted::Window { .. }, None) => Vec::new(),
    };
    let ids: Vec<ExecutionId> = rows.iter().map(|row| row.id.clone()).collect();
    Ok(Read {
        lives: store.lives(&ids)?,
        rows,
        places,
        next,
        reset,
    })
}

/// The steps of a run about which something happened after an event; `None` when that cannot be
/// told any more, or there is too much of it.
fn changed(stores: &Stores, run: &RunId, seq: u64) -> StoreResult<Option<Vec<ExecutionId>>> {
    let store = &stores.decisions;
    let oldest = store.oldest_event()?;
    if oldest.is_some_and(|oldest| seq + 1 < oldest) || seq > store.last_seq()? {
        return Ok(None);
    }
    let events = store.events(seq, CHANGES_MAX)?;
    if events.len() == CHANGES_MAX {
        return Ok(None);
    }
    let ids: BTreeSet<ExecutionId> = events
        .into_iter()
        .filter(|event| event.run.as_ref() == Some(run))
        .filter_map(|event| event.execution)
        .collect();
    Ok(Some(ids.into_iter().collect()).filter(|ids: &Vec<_>| ids.len() <= LIMIT_MAX))
}

/// These, as far as they are of the run, oldest first.
fn some(stores: &Stores, run: &RunId, ids: Vec<ExecutionId>) -> StoreResult<Vec<ExecutionRow>> {
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        rows.extend(
            stores
                .decisions
                .execution(&id)?
                .1
                .filter(|row| row.run == *run),
        );
    }
    rows.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(rows)
}
