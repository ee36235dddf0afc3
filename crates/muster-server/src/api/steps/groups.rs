//! The steps of a run, grouped by what called them and what they call.

use std::collections::BTreeMap;

use muster_store::{RunSummary, StepLine};
use muster_wire::api::execution::ExecutionCounts;
use muster_wire::api::steps::{StepGroup, StepGroups};
use muster_wire::{ExecutionId, Status};

use crate::api::problem::Problem;
use crate::api::stamp::Stamp;
use crate::app::App;

/// The most groups of one answer.
const GROUPS_MAX: usize = 1_000;

/// The groups of a run, or of the calls of one of its steps.
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn grouped(
    app: &App,
    run: &RunSummary,
    parent: Option<ExecutionId>,
) -> Result<StepGroups, Problem> {
    let stamp = Stamp::now(app);
    let id = run.id.clone();
    let lines = app
        .blocking(move |stores| stores.decisions.step_lines(&id, parent.as_ref()))
        .await?;
    let mut groups = of(lines);
    let more = groups.len().saturating_sub(GROUPS_MAX);
    groups.truncate(GROUPS_MAX);
    Ok(StepGroups {
        as_of: stamp.as_of,
        position: stamp.position,
        run_id: run.id.clone(),
        total: run.counts.iter().map(|(_, count)| count).sum(),
        groups,
        more: more as u64,
    })
}

fn of(lines: Vec<StepLine>) -> Vec<StepGroup> {
    let mut by: BTreeMap<(Option<ExecutionId>, String), Vec<StepLine>> = BTreeMap::new();
    for line in lines {
        let name = format!("{}.{}", line.agent, line.function);
        by.entry((line.parent.clone(), name))
            .or_default()
            .push(line);
    }
    let mut groups: Vec<StepGroup> = by
        .into_iter()
        .map(|((parent, name), lines)| group(parent, name, &lines))
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.total));
    groups
}

fn group(parent: Option<ExecutionId>, name: String, lines: &[StepLine]) -> StepGroup {
    let states: ExecutionCounts = lines.iter().map(|line| (line.status, 1)).collect();
    let mut took: Vec<u64> = lines
        .iter()
        .filter_map(|line| line.ended_at.map(|ended| ended.since(line.from)))
        .map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
        .collect();
    took.sort_unstable();
    let failed = |line: &&StepLine| matches!(line.status, Status::Failed | Status::Timeout);
    StepGroup {
        parent,
        name,
        total: lines.len() as u64,
        states,
        min_ms: took.first().copied(),
        p50_ms: took.get(took.len() / 2).copied(),
        max_ms: took.last().copied(),
        first_failed_id: lines.iter().find(failed).map(|line| line.id.clone()),
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::{AgentId, FunctionName, Timestamp};

    use super::*;

    #[test]
    fn a_group_says_how_many_how_long_and_which_failed_first() {
        let line = |id: &str, parent: Option<&str>, status, took: Option<i64>| StepLine {
            id: ExecutionId::trusted(id),
            parent: parent.map(ExecutionId::trusted),
            agent: AgentId::trusted("a"),
            function: FunctionName::trusted("f"),
            status,
            from: Timestamp(0),
            ended_at: took.map(|ms| Timestamp(ms * 1_000)),
        };
        let groups = of(vec![
            line("root", None, Status::Running, None),
            line("1", Some("root"), Status::Succeeded, Some(10)),
            line("2", Some("root"), Status::Failed, Some(30)),
            line("3", Some("root"), Status::Succeeded, Some(20)),
            line("4", Some("root"), Status::Failed, Some(5)),
            line("5", Some("root"), Status::Queued, None),
        ]);
        assert_eq!(groups.len(), 2);
        let below = &groups[0];
        assert_eq!(below.total, 5);
        assert_eq!(
            (below.min_ms, below.p50_ms, below.max_ms),
            (Some(5), Some(20), Some(30))
        );
        assert_eq!(below.first_failed_id, Some(ExecutionId::trusted("2")));
        assert_eq!((below.states.failed, below.states.queued), (2, 1));
        assert_eq!((groups[1].parent.clone(), groups[1].min_ms), (None, None));
    }
}
