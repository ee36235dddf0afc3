//! The messages for webhooks, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_engine::row::DeliveryRow;
use muster_wire::Timestamp;

use super::MemoryStore;
use crate::StoreResult;
use crate::outbox::{Claim, Delivery, DeliveryCounts, DeliveryFilter, Outbox, Settled, target};

/// A message with its target and its claim.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) delivery: Delivery,
    target: Arc<str>,
    claim: Option<String>,
}

impl Message {
    pub(super) fn new(row: &DeliveryRow) -> Self {
        Self {
            delivery: Delivery::written(row),
            target: target(&row.webhook),
            claim: None,
        }
    }

    fn free(&mut self, next_at: Option<Timestamp>) {
        self.claim = None;
        self.delivery.claimed = false;
        self.delivery.next_at = next_at;
    }

    fn settle(&mut self, settled: &Settled) {
        let tried = |delivery: &mut Delivery, at: Timestamp| {
            delivery.tries += 1;
            delivery.tried_at = Some(at);
        };
        match settled {
            Settled::Delivered { at, status } => {
                self.free(None);
                tried(&mut self.delivery, *at);
                self.delivery.delivered_at = Some(*at);
                self.delivery.last_error = None;
                self.delivery.last_status = Some(*status);
            }
            Settled::Failed {
                at,
                next_at,
                error,
                status,
            } => {
                self.free(Some(*next_at));
                tried(&mut self.delivery, *at);
                self.delivery.last_error = Some(error.clone());
                self.delivery.last_status = *status;
            }
            Settled::Dead { at, error, status } => {
                self.free(None);
                tried(&mut self.delivery, *at);
                self.delivery.dead_at = Some(*at);
                self.delivery.last_error = Some(error.clone());
                self.delivery.last_status = *status;
            }
            Settled::Postponed { next_at } => self.free(Some(*next_at)),
        }
    }
}

impl Outbox for MemoryStore {
    fn delivery_targets(
        &self,
        after: &str,
        limit: usize,
    ) -> StoreResult<Vec<(Arc<str>, Timestamp)>> {
        let state = self.state.lock();
        let mut due: BTreeMap<Arc<str>, Timestamp> = BTreeMap::new();
        for message in state.outbox.values() {
            if let Some(at) = message.delivery.next_at
                && (after.is_empty() || &*message.target > after)
            {
                let earliest = due.entry(message.target.clone()).or_insert(at);
                *earliest = (*earliest).min(at);
            }
        }
        Ok(due.into_iter().take(limit).collect())
    }

    fn claim_deliveries(
        &self,
        target: &str,
        now: Timestamp,
        claim: &Claim,
        limit: usize,
    ) -> StoreResult<Vec<Delivery>> {
        let mut state = self.state.lock();
        let mut due: Vec<(u32, Timestamp, u64)> = state
            .outbox
            .values()
            .filter(|message| &*message.target == target)
            .map(|message| &message.delivery)
            .filter_map(|message| Some((message.tries, message.next_at?, message.seq)))
            .filter(|(_, at, _)| *at <= now)
            .collect();
        due.sort();
        due.truncate(limit);
        let mut out = Vec::with_capacity(due.len());
        for (_, _, seq) in due {
            if let Some(message) = state.outbox.get_mut(&seq) {
                message.claim = Some(claim.token.clone());
                message.delivery.claimed = true;
                message.delivery.next_at = Some(claim.until);
                out.push(message.delivery.clone());
            }
        }
        Ok(out)
    }

    fn settle_deliveries(&self, token: &str, settled: &[(u64, Settled)]) -> StoreResult<()> {
        let mut state = self.state.lock();
        for (seq, end) in settled {
            if let Some(message) = state.outbox.get_mut(seq)
                && message.claim.as_deref() == Some(token)
            {
                message.settle(end);
            }
        }
        Ok(())
    }

    fn release_deliveries(&self, now: Timestamp) -> StoreResult<u64> {
        let mut state = self.state.lock();
        let mut released = 0;
        for message in state.outbox.values_mut() {
            if message.claim.is_some() {
                message.free(Some(now));
                released += 1;
            }
        }
        Ok(released)
    }

    fn bury_deliveries(
        &self,
        target: &str,
        since_before: Timestamp,
        now: Timestamp,
        error: &str,
        limit: usize,
    ) -> StoreResult<u64> {
        let mut state = self.state.lock();
        let old = |message: &&mut Message| {
            let delivery = &message.delivery;
            &*message.target == target
                && delivery.next_at.is_some()
                && message.claim.is_none()
                && delivery.since < since_before
        };
        let mut buried = 0;
        for message in state.outbox.values_mut().filter(old).take(limit) {
            message.free(None);
            message.delivery.dead_at = Some(now);
            let last = &mut message.delivery.last_error;
            last.get_or_insert_with(|| error.to_owned());
            buried += 1;
        }
        Ok(buried)
    }

    fn deliveries(&self, filter: &DeliveryFilter, limit: usize) -> StoreResult<Vec<Delivery>> {
        let state = self.state.lock();
        let wanted = |delivery: &&Delivery| {
            filter.state.is_none_or(|state| delivery.state() == state)
                && filter
                    .execution
                    .as_ref()
                    .is_none_or(|id| delivery.execution == *id)
                && filter.before.is_none_or(|before| delivery.seq < before)
        };
        let newest = state.outbox.values().rev().map(|message| &message.delivery);
        Ok(newest.filter(wanted).take(limit).cloned().collect())
    }

    fn delivery(&self, seq: u64) -> StoreResult<Option<Delivery>> {
        let state = self.state.lock();
        Ok(state.outbox.get(&seq).map(|found| found.delivery.clone()))
    }

    fn redrive_deliveries(
        &self,
        only: Option<u64>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<u64> {
        let mut state = self.state.lock();
        let dead = |message: &&mut Message| {
            message.delivery.dead_at.is_some()
                && only.is_none_or(|only| message.delivery.seq == only)
        };
        let mut redriven = 0;
        for message in state.outbox.values_mut().filter(dead).take(limit) {
            message.free(Some(now));
            message.delivery.dead_at = None;
            message.delivery.since = now;
            message.delivery.tries = 0;
            redriven += 1;
        }
        Ok(redriven)
    }

    fn delivery_counts(&self) -> StoreResult<DeliveryCounts> {
        let state = self.state.lock();
        let mut counts = DeliveryCounts::default();
        for message in state.outbox.values() {
            if message.delivery.next_at.is_some() {
                counts.pending += 1;
                let since = message.delivery.since;
                counts.oldest = Some(counts.oldest.map_or(since, |oldest| oldest.min(since)));
            }
            counts.dead += u64::from(message.delivery.dead_at.is_some());
        }
        Ok(counts)
    }
}
