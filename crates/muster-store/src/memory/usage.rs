//! Usage in memory: reads every report again for each question.

use std::collections::BTreeMap;

use muster_engine::row::ExecutionRow;
use muster_wire::RunId;

use super::state::State;
use crate::usage::{DAY, Report, Sums, UsageAnswer, UsageBy, UsageKey, UsageQuestion};

fn report(row: &ExecutionRow) -> Option<Report> {
    row.usage.as_ref().map(|usage| Report::read(&usage.0))
}

pub(super) fn sums(state: &State, question: &UsageQuestion) -> UsageAnswer {
    let mut groups: BTreeMap<UsageKey, Sums> = BTreeMap::new();
    let mut total = Sums::default();
    for row in state.executions.values() {
        let Some(ended) = row
            .ended_at
            .filter(|at| *at >= question.from && *at < question.to)
        else {
            continue;
        };
        let key = match question.by {
            UsageBy::Run => UsageKey::Run(row.run.clone()),
            UsageBy::Agent => UsageKey::Agent(row.agent.clone()),
            UsageBy::Function => UsageKey::Function(row.agent.clone(), row.function.clone()),
            UsageBy::Day => UsageKey::Day(ended.0.div_euclid(DAY)),
        };
        let report = report(row);
        total.count(report.as_ref());
        groups.entry(key).or_default().count(report.as_ref());
    }
    UsageAnswer::of(groups, total, question)
}

pub(super) fn of_run(state: &State, run: &RunId) -> Sums {
    let mut sums = Sums::default();
    for row in state.run_members(run).filter(|row| row.ended_at.is_some()) {
        sums.count(report(row).as_ref());
    }
    sums
}
