//! What goes wrong, and what people want meanwhile.

use std::time::Duration;

use muster_engine::fleet::event::*;
use muster_wire::WorkerId;
use muster_wire::fleet::*;

use super::Sim;

impl Sim {
    // ---- what goes wrong, and what people want ----

    pub(super) fn something_happens(&mut self) {
        let n = self.dice.roll(self.hosts.len() as u64) as usize;
        match self.dice.roll(100) {
            0..=29 => self.somebody_wants_a_worker(n),
            30..=39 => self.somebody_wants_one_ended(),
            40..=59 => {
                let ids: Vec<WorkerId> = self.hosts[n].runs.keys().cloned().collect();
                if !ids.is_empty() {
                    let id = &ids[self.dice.roll(ids.len() as u64) as usize];
                    self.host_kills(n, id, 1, true);
                }
            }
            60..=63 => {
                // It is gone, and nobody wrote it down.
                if let Some((id, _)) = self.hosts[n].runs.pop_first() {
                    self.hosts[n].ended.insert(id, ExitReport::default());
                }
            }
            64..=71 => {
                if self.hosts[n].link.is_some() {
                    self.host_hangs_up(n);
                }
            }
            72..=79 => {
                let wait = self.dice.millis(150_000);
                self.cut_off(n, wait);
            }
            80..=86 => {
                // The daemon is killed, or upgraded: what it runs goes on.
                self.host_hangs_up(n);
                self.hosts[n].up = false;
                self.hosts[n].up_at = self.now() + self.dice.millis(20_000);
            }
            87..=89 => {
                // The machine is started anew: everything on it is gone.
                self.host_hangs_up(n);
                let up_at = self.now() + self.dice.millis(60_000);
                let host = &mut self.hosts[n];
                host.runs.clear();
                host.ended.clear();
                host.outbox.clear();
                host.epoch += 1;
                host.up = false;
                host.up_at = up_at;
            }
            90..=93 => self.plane_dies(),
            94..=95 => {
                // Half of the fleet is cut off at once.
                let wait = self.dice.millis(100_000);
                for n in 0..self.hosts.len() / 2 + 1 {
                    self.cut_off(n, wait);
                }
            }
            96..=97 => {
                let by = self.dice.millis(20_000);
                self.world.now = self.world.now + by;
                self.event(FleetEvent::WasLate { by });
            }
            _ => {
                let wishes = [NodeWish::Active, NodeWish::Cordoned, NodeWish::Active];
                let wish = wishes[self.dice.roll(3) as usize];
                let name = self.hosts[n].name.clone();
                self.world.want(&name, wish);
                self.carry_out();
            }
        }
    }

    /// Nothing gets through to a host for a while: sockets stay open, and swallow.
    fn cut_off(&mut self, n: usize, wait: Duration) {
        self.hosts[n].cut_until = self.now() + wait;
        let link = self.hosts[n].link;
        if let Some(wire) = link.and_then(|id| self.wires.get_mut(&id)) {
            wire.swallows = true;
        }
    }

    fn somebody_wants_a_worker(&mut self, n: usize) {
        let name = self.hosts[n].name.clone();
        let (targeted, queued) = (self.dice.one_in(2), self.dice.one_in(3));
        let mode = [RestartMode::Never, RestartMode::OnFailure][self.dice.roll(2) as usize];
        let key = self.dice.roll(40);
        let (waiter, _) = self.world.spawn(|ask| {
            ask.target.node = targeted.then(|| name.as_str().into());
            ask.restart.mode = mode;
            ask.queue_for = queued.then_some(Duration::from_secs(60));
            ask.idempotency_key = (key < 10).then(|| format!("owner\0{key}").into());
        });
        self.waiting.insert(waiter);
        self.carry_out();
    }

    fn somebody_wants_one_ended(&mut self) {
        let living = self.world.rows.workers.values();
        let living: Vec<WorkerId> = living
            .filter(|row| row.ended.is_none())
            .map(|row| row.id.clone())
            .collect();
        if living.is_empty() {
            return;
        }
        let id = living[self.dice.roll(living.len() as u64) as usize].clone();
        let waiter = self.world.release(&id, false);
        self.waiting.insert(waiter);
        self.unwanted.insert(id);
        self.carry_out();
    }
}
