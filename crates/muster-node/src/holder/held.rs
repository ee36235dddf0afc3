//! What all parts of a holder share: the worker's state, its output, its exits, and what was
//! asked for. One thread; nothing here waits.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use muster_wire::fleet::{ExitReport, WorkerIo};
use muster_wire::{Timestamp, fleet::frame::SpawnOutput};
use tokio::sync::{mpsc, oneshot, watch};

use super::boot::Boot;
use super::terminal::End;
use crate::record::{ExitRecord, Phase, StateRecord, UNTOLD_MAX, WorkerDir};
use crate::ring::{RING_BYTES, Ring};
use crate::screen::{Screen, Size};

/// Somebody wants the worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) grace: Duration,
    /// Why, where it was not a release.
    pub(crate) reason: Option<String>,
}

/// Somebody wants the worker's process ended, and the worker started again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Again {
    pub(crate) grace: Duration,
    /// Who wants it and why.
    pub(crate) reason: String,
}

/// What became of a restart, or why there was none.
pub(crate) type Restarted = Result<SpawnOutput, String>;

/// The worker is gone for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Over {
    pub(crate) exit: ExitReport,
    /// Processes that are still there after SIGKILL.
    pub(crate) stuck: Vec<u32>,
}

/// What somebody typed, and where to say how much of it was taken.
pub(crate) type Typed = (Vec<u8>, Option<oneshot::Sender<usize>>);
/// At most so many wait for the terminal; more are answered with 0 bytes.
pub(crate) const TYPED_MAX: usize = 64;

/// The output of a worker.
pub(crate) struct Output {
    pub(crate) ring: Ring,
    /// Of one with a terminal.
    pub(crate) screen: Option<Screen>,
    /// Where the output of the present process begins.
    pub(crate) run_start: u64,
}

/// An exit that the plane has not acknowledged.
struct Untold {
    record: ExitRecord,
    on_disk: bool,
    told: bool,
}

pub(crate) struct Held {
    pub(crate) dir: WorkerDir,
    pub(crate) boot: Boot,
    pub(crate) output: RefCell<Output>,
    /// Where the output ends.
    pub(crate) grown: watch::Sender<u64>,
    pub(crate) state: watch::Sender<StateRecord>,
    untold: RefCell<Vec<Untold>>,
    /// Counts exits.
    pub(crate) exits: watch::Sender<u64>,
    skipped: Cell<u64>,
    last_written: Cell<Timestamp>,
    pub(crate) wish: watch::Sender<Option<Wish>>,
    /// A restart whose old process has not ended.
    pub(crate) again: watch::Sender<Option<Again>>,
    /// Who waits for the restart that is under way, until its new process has lived through its
    /// start window.
    restarters: RefCell<Vec<oneshot::Sender<Restarted>>>,
    /// The present terminal.
    pub(crate) end: RefCell<Option<End>>,
    pub(crate) typed: mpsc::Sender<Typed>,
    pub(crate) over: watch::Sender<Option<Over>>,
    /// The worker's process is among those that SIGKILL did not end; its end is waited for.
    pub(crate) stuck: watch::Sender<Vec<u32>>,
    /// How many daemons and viewers are connected.
    pub(crate) connections: watch::Sender<usize>,
}

impl Held {
    /// Before anything was started.
    pub(crate) fn new(
        dir: WorkerDir,
        boot: Boot,
        state: StateRecord,
        typed: mpsc::Sender<Typed>,
    ) -> Rc<Self> {
        let size = Size::clamped(boot.size);
        let screen = (boot.io == WorkerIo::Pty).then(|| Screen::new(size));
        Rc::new(Self {
            dir,
            boot,
            output: RefCell::new(Output {
                ring: Ring::new(RING_BYTES),
                screen,
                run_start: 0,
            }),
            grown: watch::Sender::new(0),
            state: watch::Sender::new(state),
            untold: RefCell::new(Vec::new()),
            exits: watch::Sender::new(0),
            skipped: Cell::new(0),
            last_written: Cell::new(Timestamp::ZERO),
            wish: watch::Sender::new(None),
            again: watch::Sender::new(None),
            restarters: RefCell::new(Vec::new()),
            end: RefCell::new(None),
            typed,
            over: watch::Sender::new(None),
            stuck: watch::Sender::new(Vec::new()),
            connections: watch::Sender::new(0),
        })
    }

    /// Takes output in: the ring, the screen, and what the worker asked its terminal.
    pub(crate) fn take_output(&self, bytes: &[u8]) {
        let mut output = self.output.borrow_mut();
        output.ring.push(bytes);
        let answers = output.screen.as_mut().map(|screen| screen.paint(bytes));
        let end = output.ring.end();
        drop(output);
        if let Some(answers) = answers.filter(|answers| !answers.is_empty()) {
            // A worker that asks and does not read is not answered.
            let _ = self.typed.try_send((answers, None));
        }
        self.grown.send_replace(end);
    }

    /// The last output of the present process, as bytes.
    pub(crate) fn run_tail(&self, max: usize) -> Vec<u8> {
        let output = self.output.borrow();
        output.ring.tail_since(output.run_start, max)
    }

    /// The present size of the terminal.
    pub(crate) fn size(&self) -> Size {
        let output = self.output.borrow();
        let size = output.screen.as_ref().map(Screen::size);
        size.unwrap_or(Size::clamped(self.boot.size))
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, size: Size) -> Result<(), String> {
        if self.boot.io == WorkerIo::Pipes {
            return Err("this worker has pipes and no terminal".into());
        }
        if let Some(screen) = self.output.borrow_mut().screen.as_mut() {
            screen.resize(size);
        }
        match &*self.end.borrow() {
            Some(end) => end.resize(size).map_err(|errno| errno.to_string()),
            // Between two processes: the next one has it.
            None => Ok(()),
        }
    }

    /// Somebody wants the worker ended. The one with the least patience counts.
    pub(crate) fn wish_for(&self, wish: Wish) {
        self.wish.send_if_modified(|present| {
            let is_new = present
                .as_ref()
                .is_none_or(|former| wish.grace < former.grace);
            if is_new {
                *present = Some(wish);
            }
            is_new
        });
    }

    /// Somebody wants the worker started again. Whoever asks while that is under way gets the
    /// same answer: it is started again once.
    pub(crate) fn ask_again(&self, again: Again) -> oneshot::Receiver<Restarted> {
        let (answer, heard) = oneshot::channel();
        let is_first = self.restarters.borrow().is_empty();
        self.restarters.borrow_mut().push(answer);
        if self.state.borrow().answer.is_none() {
            self.answer_restart(&Err("it is still being started".to_owned()));
        } else if self.state.borrow().phase == Phase::Ended || self.wish.borrow().is_some() {
            self.answer_restart(&Err("it ends, or has ended, for good".to_owned()));
        } else if is_first {
            self.again.send_replace(Some(again));
        }
        heard
    }

    /// Answers whoever waits for a restart.
    pub(crate) fn answer_restart(&self, with: &Restarted) {
        for answer in self.restarters.take() {
            // A daemon that is gone hears of the worker when it is back.
            let _ = answer.send(with.clone());
        }
    }

    /// Changes the state and writes it. A disk that is full does not stop a worker: the next
    /// change is written, and whoever is connected knows.
    pub(crate) fn change(&self, change: impl FnOnce(&mut StateRecord)) {
        self.state.send_modify(change);
        if let Err(error) = self.dir.write_state(&self.state.borrow()) {
            super::complain(&format!("the worker's state was not written: {error}"));
        }
    }

    /// Answers the start, if nothing did yet.
    pub(crate) fn answer(&self, answer: SpawnOutput) {
        if self.state.borrow().answer.is_none() {
            self.change(|state| state.answer = Some(answer));
        }
    }

    /// Keeps an exit until the plane knows it: on disk, and while that cannot be, in memory.
    pub(crate) fn record(&self, exit: ExitReport, next_start_at: Option<Timestamp>) {
        let number = *self.exits.borrow();
        let mut record = ExitRecord {
            worker_id: self.boot.worker_id.clone(),
            name: self.boot.name.clone(),
            number,
            restarts: self.state.borrow().restarts,
            exit,
            next_start_at,
            written_at: Timestamp::wall_clock().max(self.last_written.get()),
        };
        self.last_written.set(record.written_at);
        self.make_room(&mut record);
        self.untold.borrow_mut().push(Untold {
            record,
            on_disk: false,
            told: false,
        });
        if let Err(error) = self.write_exits() {
            super::complain(&format!("an exit was not written, yet: {error}"));
        }
        self.exits.send_replace(number + 1);
    }

    fn make_room(&self, record: &mut ExitRecord) {
        let mut untold = self.untold.borrow_mut();
        while untold.len() >= UNTOLD_MAX {
            let oldest = untold.remove(0);
            self.dir.drop_exit(oldest.record.number);
            self.skipped.set(self.skipped.get() + 1);
        }
        let skipped = self.skipped.get();
        if skipped > 0 {
            let note = format!("{skipped} earlier exits were not kept: nobody took them");
            let reason = &mut record.exit.reason;
            *reason = Some(match reason.take() {
                Some(reason) => format!("{reason}; {note}"),
                None => note,
            });
        }
    }

    /// Writes the exits that are not on disk.
    pub(crate) fn write_exits(&self) -> io::Result<()> {
        let mut untold = self.untold.borrow_mut();
        for one in untold.iter_mut().filter(|one| !one.on_disk) {
            self.dir.write_exit(&one.record)?;
            one.on_disk = true;
            if one.told {
                self.dir.mark_told(one.record.number);
            }
        }
        untold.retain(|one| !(one.told && one.on_disk));
        Ok(())
    }

    /// The plane has acknowledged an exit.
    pub(crate) fn told(&self, number: u64) {
        let mut untold = self.untold.borrow_mut();
        for one in untold.iter_mut().filter(|one| one.record.number == number) {
            one.told = true;
        }
        untold.retain(|one| !(one.told && one.on_disk));
    }

    /// The exits from a number on which nobody acknowledged.
    pub(crate) fn untold_from(&self, number: u64) -> Vec<ExitRecord> {
        let mut untold = self.untold.borrow_mut();
        // A daemon that marked one as told may have died before it said so.
        untold.retain(|one| !one.on_disk || self.dir.is_untold(one.record.number));
        let fresh = untold
            .iter()
            .filter(|one| !one.told && one.record.number >= number);
        fresh.map(|one| one.record.clone()).collect()
    }

    /// Whether every exit is on disk.
    pub(crate) fn is_written(&self) -> bool {
        self.untold.borrow().iter().all(|one| one.on_disk)
    }
}
