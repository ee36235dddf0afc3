//! A machine of the simulation: its processes, its link, what it hears and says.

use std::collections::VecDeque;
use std::time::Duration;

use muster_engine::fleet::event::*;
use muster_wire::WorkerId;
use muster_wire::fleet::frame::{SpawnOutput, roster_digest};
use muster_wire::fleet::*;

use super::{ACK_DEADLINE, AGAIN, BEAT, Down, INVENTORY_EVERY, Process, Sim, Told, Up, Wire};
use crate::machine::code;

impl Sim {
    // ---- the node's side ----

    pub(super) fn host_moves(&mut self, n: usize) {
        let now = self.now();
        if !self.hosts[n].up {
            if now >= self.hosts[n].up_at {
                self.hosts[n].up = true;
                self.hosts[n].connect_at = now + self.dice.millis(2000);
            }
            return;
        }
        let due: Vec<WorkerId> = self.hosts[n]
            .runs
            .iter()
            .filter(|(_, p)| p.again_at.is_some_and(|at| at <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in due {
            let process = self.hosts[n].runs.get_mut(&id).expect("it is there");
            process.again_at = None;
            process.restarts += 1;
            let report = Self::report(&id, process);
            self.say(n, Up::Seen(report));
        }
        match self.hosts[n].link {
            None if now >= self.hosts[n].connect_at => self.host_connects(n),
            None => {}
            Some(_) if now.since(self.hosts[n].acknowledged_at) > ACK_DEADLINE => {
                self.host_hangs_up(n);
            }
            Some(_) => self.host_speaks(n),
        }
    }

    fn host_connects(&mut self, n: usize) {
        self.links += 1;
        let id = LinkId(self.links);
        let now = self.now();
        let cut = now < self.hosts[n].cut_until;
        let swallows = !self.calm && (cut || self.dice.one_in(12));
        self.wires.insert(
            id,
            Wire {
                node: n,
                up: VecDeque::new(),
                down: VecDeque::new(),
                swallows,
                node_open: true,
                plane_open: true,
                plane_sees: None,
                node_sees: None,
            },
        );
        let host = &mut self.hosts[n];
        host.link = Some(id);
        host.acknowledged_at = now;
        host.beat_at = now;
        host.inventory_at = now;
        host.told_at = now;
        self.say(n, Up::Hello);
    }

    pub(super) fn host_hangs_up(&mut self, n: usize) {
        let now = self.now();
        let (seen, again) = (self.dice.millis(2000), self.dice.millis(9000));
        if let Some(id) = self.hosts[n].link.take()
            && let Some(wire) = self.wires.get_mut(&id)
        {
            wire.node_open = false;
            wire.down.clear();
            // What is swallowed is seen by a time-out alone.
            let late = if wire.swallows {
                Duration::from_secs(40)
            } else {
                seen
            };
            wire.plane_sees = Some(now + late);
        }
        self.hosts[n].connect_at = now + Duration::from_secs(1) + again;
    }

    fn host_speaks(&mut self, n: usize) {
        let now = self.now();
        if now >= self.hosts[n].told_at {
            self.hosts[n].told_at = now + AGAIN;
            for told in self.hosts[n].outbox.clone() {
                self.say(n, Up::Exited(told));
            }
        }
        if now >= self.hosts[n].inventory_at {
            self.hosts[n].inventory_at = now + INVENTORY_EVERY;
            let runs = self.hosts[n].runs.iter();
            let reports = runs.map(|(id, p)| Self::report(id, p)).collect();
            self.say(n, Up::Inventory(reports));
        }
        if now >= self.hosts[n].beat_at {
            self.hosts[n].beat_at = now + BEAT;
            let runs = &self.hosts[n].runs;
            let beat = Up::Beat {
                count: u32::try_from(runs.len()).expect("few"),
                digest: roster_digest(runs.keys().map(WorkerId::as_str)),
            };
            self.say(n, beat);
        }
    }

    pub(super) fn host_hears(&mut self, n: usize, what: Down) {
        let now = self.now();
        match what {
            Down::Acknowledged => self.hosts[n].acknowledged_at = now,
            Down::ExitTaken(worker, restarts) => {
                let outbox = &mut self.hosts[n].outbox;
                outbox.retain(|told| told.worker != worker || told.restarts != restarts);
            }
            Down::Verdicts(unwanted) => {
                for id in unwanted {
                    self.host_kills(n, &WorkerId::trusted(id), 143, false);
                }
            }
            Down::Ask => {
                self.say(n, Up::Reply);
                let runs = self.hosts[n].runs.iter();
                let reports = runs.map(|(id, p)| Self::report(id, p)).collect();
                self.say(n, Up::Inventory(reports));
            }
            Down::Start(id, mode) => {
                let answer = self.host_starts(n, &id, mode);
                self.say(n, Up::Started(id, answer));
            }
            Down::Release(id) => {
                let outcome = if self.hosts[n].runs.contains_key(&id) {
                    self.host_kills(n, &id, 143, false);
                    Ok(code(143))
                } else {
                    match self.hosts[n].ended.get(&id) {
                        Some(exit) => Ok(exit.clone()),
                        None => Err("there is no such worker".to_owned()),
                    }
                };
                self.say(n, Up::Released(id, outcome));
            }
        }
    }

    fn host_starts(&mut self, n: usize, id: &WorkerId, mode: RestartMode) -> SpawnOutput {
        let pid = |process: &Process| SpawnOutput::Started {
            pid: Some(100 + process.restarts),
            started_at: None,
        };
        if let Some(process) = self.hosts[n].runs.get(id) {
            return pid(process);
        }
        if let Some(exit) = self.hosts[n].ended.get(id) {
            return SpawnOutput::Exited { exit: exit.clone() };
        }
        let before = self.started_on.insert(id.clone(), n);
        assert!(
            before.is_none_or(|before| before == n),
            "seed {}: {id} was started on two nodes",
            self.seed
        );
        if self.dice.one_in(10) {
            self.hosts[n].ended.insert(id.clone(), code(2));
            return SpawnOutput::Exited { exit: code(2) };
        }
        let process = Process {
            restarts: 0,
            mode,
            again_at: None,
        };
        let answer = pid(&process);
        self.hosts[n].runs.insert(id.clone(), process);
        answer
    }

    /// A process ends, and its holder writes that down.
    pub(super) fn host_kills(&mut self, n: usize, id: &WorkerId, status: i32, restarts: bool) {
        let now = self.now();
        let Some(process) = self.hosts[n].runs.get_mut(id) else {
            return;
        };
        if process.again_at.is_some() && restarts {
            return;
        }
        let again =
            (restarts && process.mode != RestartMode::Never).then(|| now + Duration::from_secs(2));
        let told = Told {
            worker: id.clone(),
            restarts: process.restarts,
            exit: code(status),
            next_start_at: again,
        };
        process.again_at = again;
        if again.is_none() {
            self.hosts[n].runs.remove(id);
            self.hosts[n].ended.insert(id.clone(), code(status));
        }
        let outbox = &mut self.hosts[n].outbox;
        outbox.retain(|old| old.worker != told.worker || old.restarts != told.restarts);
        outbox.push(told.clone());
        if self.hosts[n].up {
            self.say(n, Up::Exited(told));
        }
    }
}
