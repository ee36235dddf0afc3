//! What a placement would come to, and why those that wait do. Asks the same judge as a placement
//! does, and changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use muster_wire::fleet::{RestartMode, WorkerIo, WorkerState};
use muster_wire::{Timestamp, WorkerId};

use super::effect::{FleetRefusal, PlanAsk, PlanView, WaitingView};
use super::queue::may_pass;
use super::row::{Target, WorkerRow};
use crate::engine::Engine;
use crate::row::Payload;

impl Engine {
    pub(crate) fn plan(&self, now: Timestamp, ask: &PlanAsk) -> PlanView {
        let row = imagined(now, ask);
        let (takers, passed_over) = self.judge_nodes(now, &row);
        let refusal = match self.refuses_any_spawn() {
            Some(refusal) => Some(refusal),
            None => self.choose_node(now, &row, None).err(),
        };
        PlanView {
            may_wait: refusal
                .as_ref()
                .is_some_and(|refusal| may_pass(&refusal.category)),
            takers,
            passed_over,
            refusal,
        }
    }

    /// Placements that wait, the oldest first. Wishes that are alike wait for the same reason.
    pub(crate) fn placements(&self, now: Timestamp, limit: usize) -> Vec<WaitingView> {
        let mut known: HashMap<(&Target, Option<WorkerIo>, RestartMode), Option<FleetRefusal>> =
            HashMap::new();
        let mut views = Vec::new();
        for (_, id) in self.fleet.queue.iter().take(limit) {
            let Some(worker) = self.fleet.workers.get(id) else {
                continue;
            };
            let row = &worker.row;
            let kind = (&row.target, row.io, row.restart.mode);
            let refusal = known
                .entry(kind)
                .or_insert_with(|| self.choose_node(now, row, None).err());
            let refusal = refusal.clone();
            let view = self.worker_view(now, id);
            views.extend(view.map(|worker| WaitingView { worker, refusal }));
        }
        views
    }
}

/// A worker that is nowhere.
fn imagined(now: Timestamp, ask: &PlanAsk) -> WorkerRow {
    let nobody: Arc<str> = Arc::from("");
    WorkerRow {
        id: WorkerId::trusted(nobody.clone()),
        name: nobody.clone(),
        node: None,
        target: ask.target.clone(),
        spec: Payload::default(),
        command: nobody.clone(),
        io: Some(ask.io),
        restart: ask.restart,
        labels: ask.labels.clone(),
        principal: nobody,
        idempotency_key: None,
        body_hash: [0; 16],
        created_at: now,
        state: WorkerState::Queued,
        state_at: now,
        place_by: None,
        waits_for: None,
        pid: None,
        started_at: None,
        restarts: 0,
        next_start_at: None,
        confirmed_at: None,
        release: None,
        adopted: false,
        agent: None,
        exit: None,
        ended: None,
    }
}
