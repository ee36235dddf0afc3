//! Who sits before a terminal: any number who watch, and at most one who drives. A hand-over is
//! explicit: the driver gives the keyboard back, or somebody takes it and the driver is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use muster_wire::WorkerId;
use tokio::sync::watch;

/// Who watches and who drives, with the last change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seating {
    /// The driver's seat and name.
    pub(super) driver: Option<(u64, Arc<str>)>,
    /// How many watch, the driver among them.
    pub(super) viewers: u32,
    /// Why it changed.
    pub(super) why: Option<Arc<str>>,
    /// The worker has ended for good.
    pub(super) over: bool,
    /// What those who sit there are called.
    names: Vec<Arc<str>>,
}

impl Seating {
    /// A name that nobody else here has: `ada`, and while she is there `ada #2`.
    fn name_for(&self, principal: &Arc<str>) -> Arc<str> {
        let is_free = |name: &Arc<str>| !self.names.contains(name);
        let numbered = (2_u32..).map(|number| format!("{principal} #{number}").into());
        std::iter::once(principal.clone())
            .chain(numbered)
            .find(is_free)
            .unwrap_or_else(|| principal.clone())
    }
}

/// All rooms in which somebody sits.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    last: AtomicU64,
    rooms: DashMap<WorkerId, watch::Sender<Seating>>,
}

impl Rooms {
    /// A worker has ended for good: whoever sits there is told.
    pub(super) fn over(&self, worker: &WorkerId) {
        if let Some(room) = self.rooms.get(worker) {
            room.send_modify(|seating| seating.over = true);
        }
    }
}

/// A viewer's place. Dropping it leaves the room, and the keyboard.
pub(super) struct Seat {
    rooms: Arc<super::super::Fleet>,
    worker: WorkerId,
    id: u64,
    name: Arc<str>,
    changes: watch::Receiver<Seating>,
}

/// Somebody else drives.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DrivenBy(pub(super) Arc<str>);

impl Seat {
    /// Sits down before a worker's terminal, under a name of its own.
    pub(super) fn take(
        fleet: &Arc<super::super::Fleet>,
        worker: &WorkerId,
        principal: Arc<str>,
    ) -> Self {
        let rooms = &fleet.terminals.rooms;
        let id = rooms.last.fetch_add(1, Ordering::Relaxed) + 1;
        let room = rooms
            .rooms
            .entry(worker.clone())
            .or_insert_with(|| watch::Sender::new(Seating::default()));
        // Under the entry's lock, so that the last who leaves does not close it in between.
        let changes = room.subscribe();
        let mut name = principal;
        room.send_modify(|seating| {
            name = seating.name_for(&name);
            seating.names.push(name.clone());
            seating.viewers += 1;
            seating.why = Some(format!("{name} watches").into());
        });
        drop(room);
        Self {
            rooms: fleet.clone(),
            worker: worker.clone(),
            id,
            name,
            changes,
        }
    }

    /// Whether it is this viewer who drives.
    pub(super) fn drives(&self) -> bool {
        let seating = self.changes.borrow();
        seating
            .driver
            .as_ref()
            .is_some_and(|(id, _)| *id == self.id)
    }

    /// Who drives.
    pub(super) fn driver(&self) -> Option<Arc<str>> {
        let seating = self.changes.borrow();
        seating.driver.as_ref().map(|(_, name)| name.clone())
    }

    /// Who sits there now; seen from now on.
    pub(super) fn seating(&mut self) -> Seating {
        self.changes.borrow_and_update().clone()
    }

    /// Whether the worker has ended for good.
    pub(super) fn is_over(&self) -> bool {
        self.changes.borrow().over
    }

    /// Waits until it changed.
    pub(super) async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Takes the keyboard; that of another only with `take`.
    ///
    /// # Errors
    /// When somebody else drives: they are told that it is wanted.
    pub(super) fn drive(&self, take: bool) -> Result<(), DrivenBy> {
        let mut refused = None;
        self.change(|seating| {
            let why = match &seating.driver {
                Some((id, _)) if *id == self.id => return false,
                Some((_, driver)) if !take => {
                    refused = Some(DrivenBy(driver.clone()));
                    format!("{} asks for the keyboard", self.name)
                }
                Some((_, driver)) => {
                    let why = format!("{} took the keyboard from {driver}", self.name);
                    seating.driver = Some((self.id, self.name.clone()));
                    why
                }
                None => {
                    seating.driver = Some((self.id, self.name.clone()));
                    format!("{} drives", self.name)
                }
            };
            seating.why = Some(why.into());
            true
        });
        refused.map_or(Ok(()), Err)
    }

    /// Gives the keyboard back; whether it had it.
    pub(super) fn watch(&self) -> bool {
        let mut had = false;
        self.change(|seating| {
            had = seating
                .driver
                .as_ref()
                .is_some_and(|(id, _)| *id == self.id);
            if had {
                seating.driver = None;
                seating.why = Some(format!("{} gave the keyboard back", self.name).into());
            }
            had
        });
        had
    }

    fn change(&self, change: impl FnOnce(&mut Seating) -> bool) {
        if let Some(room) = self.rooms.terminals.rooms.rooms.get(&self.worker) {
            room.send_if_modified(change);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.change(|seating| {
            seating.viewers = seating.viewers.saturating_sub(1);
            seating.names.retain(|name| *name != self.name);
            let drove = seating
                .driver
                .as_ref()
                .is_some_and(|(id, _)| *id == self.id);
            if drove {
                seating.driver = None;
            }
            seating.why = Some(format!("{} left", self.name).into());
            true
        });
        let rooms = &self.rooms.terminals.rooms.rooms;
        rooms.remove_if(&self.worker, |_, room| room.borrow().viewers == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_drives_by_explicit_hand_over_and_everybody_is_told() {
        let fleet = Arc::new(super::super::super::Fleet::default());
        let worker = WorkerId::trusted("wrk_1");
        let ada = Seat::take(&fleet, &worker, "ada".into());
        let mut bob = Seat::take(&fleet, &worker, "bob".into());
        assert_eq!(bob.seating().viewers, 2);
        ada.drive(false).unwrap();
        assert!(ada.drives() && !bob.drives());
        bob.changed().await;
        assert_eq!(bob.seating().why.as_deref(), Some("ada drives"));
        assert_eq!(bob.drive(false), Err(DrivenBy("ada".into())));
        assert!(ada.drives());
        bob.drive(true).unwrap();
        assert!(!ada.drives() && bob.drives());
        assert!(!ada.watch() && bob.watch());
        assert!(bob.seating().driver.is_none());
        ada.drive(false).unwrap();
        drop(ada);
        assert!(bob.seating().driver.is_none());
        assert_eq!(bob.seating().viewers, 1);
        let second = Seat::take(&fleet, &worker, "bob".into());
        let third = Seat::take(&fleet, &worker, "bob".into());
        third.drive(false).unwrap();
        assert_eq!(bob.seating().why.as_deref(), Some("bob #3 drives"));
        drop((second, third));
        let again = Seat::take(&fleet, &worker, "bob".into());
        assert_eq!(&*again.name, "bob #2");
        drop((bob, again));
        assert!(fleet.terminals.rooms.rooms.is_empty());
    }
}
