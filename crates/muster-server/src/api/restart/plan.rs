//! What a restart would do, by what is stored of its source run: which calls would be taken over
//! and which made again, if its code makes the same calls.

use std::collections::{BTreeMap, HashMap};

use muster_engine::replay::{self, Before};
use muster_engine::row::{ExecutionRow, Replay};
use muster_store::{ExecutionFilter, Page, StoreResult, Stores};
use muster_wire::api::act::{RestartConsequence, RestartFunction};
use muster_wire::{ExecutionId, ReplayMode};

use crate::api::problem::Problem;
use crate::app::App;

/// Members of the source run that are looked at; a run has at most as many.
const MEMBERS_MAX: usize = 100_000;
/// Functions that are named.
const FUNCTIONS_MAX: usize = 50;

/// A restart that is only looked at.
pub(super) struct Plan {
    pub(super) scope: &'static str,
    pub(super) mode: ReplayMode,
    pub(super) fork: bool,
    /// The execution that was named.
    pub(super) named: ExecutionRow,
    /// The one that would run again.
    pub(super) of: ExecutionRow,
}

impl Plan {
    /// What it would do.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) async fn consequence(self, app: &App) -> Result<RestartConsequence, Problem> {
        let run = self.named.run.clone();
        let rows = app.blocking(move |stores| members(stores, &run)).await?;
        let open = rows.iter().filter(|row| !row.status.is_terminal()).count();
        let functions = self.by_function(&rows);
        let reuses = functions.values().map(|(reuses, _)| reuses).sum();
        let runs = functions.values().map(|(_, runs)| runs).sum();
        let mut refused = Vec::new();
        if open > 0 && !self.fork {
            refused.push(format!(
                "{open} of the run are open: wait, cancel it, or fork it"
            ));
        }
        let down = app.directory.agent(self.of.agent.as_str());
        match down {
            None => refused.push(format!("there is no agent {}", self.of.agent)),
            Some(entry) => refused.extend(
                entry
                    .down(app.clock.now(), &app.limits)
                    .map(|why| format!("{} is down: {why}", self.of.agent)),
            ),
        }
        let target = format!("{}.{}", self.of.agent, self.of.function);
        let mut functions: Vec<RestartFunction> = functions
            .into_iter()
            .map(|(name, (reuses, runs))| RestartFunction { name, reuses, runs })
            .collect();
        functions.sort_by_key(|one| std::cmp::Reverse(one.reuses + one.runs));
        functions.truncate(FUNCTIONS_MAX);
        Ok(RestartConsequence {
            dry_run: true,
            as_of: app.clock.now().into(),
            text: format!("a new run of {target}: reuses {reuses}, runs {runs}"),
            source_run_id: self.named.run,
            restarted_execution_id: self.of.id,
            target,
            scope: self.scope.to_owned(),
            kind: if self.fork { "fork" } else { "restart" }.to_owned(),
            replay_mode: self.mode.into(),
            reuses,
            runs,
            functions,
            refused,
        })
    }

    /// How many calls of each function would be taken over, and made again. What is taken over
    /// makes no calls of its own.
    fn by_function(&self, rows: &[ExecutionRow]) -> BTreeMap<String, (u64, u64)> {
        let by_id: HashMap<&ExecutionId, &ExecutionRow> =
            rows.iter().map(|row| (&row.id, row)).collect();
        let mut children: HashMap<&ExecutionId, Vec<&ExecutionRow>> = HashMap::new();
        for row in rows {
            if let Some(parent) = &row.parent {
                children.entry(parent).or_default().push(row);
            }
        }
        let named = self.of.id != self.named.id;
        let replay = Replay {
            source: self.named.run.clone(),
            mode: self.mode,
            before: named.then(|| self.named.id.clone()),
        };
        let before = named.then(|| Before {
            created_at: self.named.created_at,
            line: replay::line(&self.named, |id| by_id.get(id).copied()),
        });
        let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut again = vec![&self.of];
        while let Some(row) = again.pop() {
            let name = format!("{}.{}", row.agent, row.function);
            counts.entry(name).or_default().1 += 1;
            for child in children.get(&row.id).into_iter().flatten() {
                if replay.takes_over(child, before.as_ref()) {
                    let name = format!("{}.{}", child.agent, child.function);
                    counts.entry(name).or_default().0 += 1;
                } else {
                    again.push(child);
                }
            }
        }
        counts
    }
}

fn members(stores: &Stores, run: &muster_wire::RunId) -> StoreResult<Vec<ExecutionRow>> {
    let filter = ExecutionFilter {
        run: Some(run.clone()),
        oldest_first: true,
        ..ExecutionFilter::default()
    };
    let page = Page {
        after: None,
        limit: MEMBERS_MAX,
    };
    stores.decisions.executions(&filter, &page)
}
