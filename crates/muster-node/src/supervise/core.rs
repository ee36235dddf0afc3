//! What a daemon knows of its workers: one entry each, the exits that wait, and who is told.
//! Bookkeeping under one lock that is never held across an await.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use muster_wire::Timestamp;
use muster_wire::fleet::ExitReport;
use muster_wire::fleet::frame::{NodeFrame, SpawnOutput, WorkerReport};
use tokio::sync::{mpsc, watch};

use super::WorkerNews;
use super::link::Request;
use crate::record::{ExitRecord, Kept, Phase, StateRecord, UNTOLD_MAX, WorkerDir};
use crate::settings::Settings;

/// The way to a holder, while there is one.
pub(crate) type Requests = Option<mpsc::Sender<Request>>;

/// One worker.
pub(crate) struct Worker {
    pub(crate) state: StateRecord,
    /// Its last exit, after which nothing follows.
    pub(crate) last: Option<ExitRecord>,
    pub(crate) answer: watch::Sender<Option<SpawnOutput>>,
    pub(crate) requests: watch::Sender<Requests>,
    /// The version that its holder speaks; 0 before it was met.
    pub(crate) speaks: u32,
    /// Its end.
    pub(crate) over: watch::Sender<Option<Over>>,
}

/// A worker has ended for good.
#[derive(Debug, Clone)]
pub(crate) struct Over {
    pub(crate) exit: ExitReport,
    /// Its processes that are there all the same, after SIGKILL.
    pub(crate) stuck: Vec<u32>,
}

impl Worker {
    /// As it was found or is about to be.
    pub(crate) fn new(state: StateRecord, last: Option<ExitRecord>) -> Self {
        let exit = last.as_ref().map(|record| record.exit.clone());
        let answer = state.answer.clone();
        let answer = answer.or(exit.clone().map(|exit| SpawnOutput::Exited { exit }));
        Self {
            state,
            last,
            answer: watch::Sender::new(answer),
            requests: watch::Sender::new(None),
            speaks: 0,
            over: watch::Sender::new(exit.map(Over::cleanly)),
        }
    }
}

impl Over {
    fn cleanly(exit: ExitReport) -> Self {
        Self {
            exit,
            stuck: Vec::new(),
        }
    }
}

/// Oldest first; those of one worker in their order.
type OutboxKey = (Timestamp, String, u64);

struct Books {
    workers: HashMap<String, Worker>,
    outbox: BTreeMap<OutboxKey, ExitRecord>,
}

pub(crate) struct Core {
    /// Where the directories of workers are.
    pub(crate) workers_dir: PathBuf,
    pub(crate) epoch: String,
    pub(crate) settings: Settings,
    books: Mutex<Books>,
    news: mpsc::Sender<WorkerNews>,
    /// Closed when the supervisor is dropped: its tasks end.
    pub(crate) stop: watch::Receiver<()>,
}

/// Whether a start is the first of its worker.
pub(crate) enum Admission {
    /// It is known: this is answered when its first start is.
    Known(watch::Receiver<Option<SpawnOutput>>),
    /// It is to be begun.
    New(watch::Receiver<Option<SpawnOutput>>),
    /// There is no room.
    Full(String),
}

impl Core {
    pub(crate) fn new(
        workers_dir: PathBuf,
        epoch: String,
        settings: Settings,
        news: mpsc::Sender<WorkerNews>,
        stop: watch::Receiver<()>,
    ) -> Self {
        let books = Books {
            workers: HashMap::new(),
            outbox: BTreeMap::new(),
        };
        Self {
            workers_dir,
            epoch,
            settings,
            books: Mutex::new(books),
            news,
            stop,
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // Nothing that holds it panics in between two changes that belong together.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of a worker.
    pub(crate) fn dir(&self, worker: &str) -> WorkerDir {
        WorkerDir::at(self.workers_dir.join(worker))
    }

    /// Looks at one worker.
    pub(crate) fn look<T>(&self, worker: &str, at: impl FnOnce(&Worker) -> T) -> Option<T> {
        self.books().workers.get(worker).map(at)
    }

    /// Takes a worker in that was found on disk.
    pub(crate) fn adopt(&self, worker: Worker) {
        let mut books = self.books();
        books.workers.insert(worker.state.worker_id.clone(), worker);
    }

    /// Decides about a start: known, new or no room.
    pub(crate) fn admit(&self, state: StateRecord) -> Admission {
        let mut books = self.books();
        if let Some(worker) = books.workers.get(&state.worker_id) {
            return Admission::Known(worker.answer.subscribe());
        }
        let running = books
            .workers
            .values()
            .filter(|one| one.last.is_none())
            .count();
        let max = self.settings.workers_max as usize;
        if max > 0 && running >= max {
            return Admission::Full(format!(
                "this node runs {running} workers and takes {max}: release one, or raise its bound"
            ));
        }
        let waiting = books.outbox.len();
        if waiting >= self.settings.outbox_max {
            return Admission::Full(format!(
                "{waiting} exits on this node wait for the plane to acknowledge them: it starts \
                 no more workers until some are"
            ));
        }
        let id = state.worker_id.clone();
        let worker = Worker::new(state, None);
        let answer = worker.answer.subscribe();
        books.workers.insert(id, worker);
        Admission::New(answer)
    }

    /// A start came to nothing: the worker never was.
    pub(crate) fn refuse(&self, worker: &str, message: String) {
        let dir = self.dir(worker);
        if let Err(error) = dir.remove() {
            tracing::debug!(worker.id = worker, %error, "the directory of a refused worker stays");
        }
        if let Some(worker) = self.books().workers.remove(worker) {
            let exit = ExitReport {
                reason: Some(message.clone()),
                ..ExitReport::default()
            };
            let refused = SpawnOutput::Refused {
                message,
                full: false,
            };
            worker.answer.send_replace(Some(refused));
            worker.over.send_replace(Some(Over::cleanly(exit)));
        }
    }

    /// The holder is reached, or no longer.
    pub(crate) fn connected(&self, worker: &str, requests: Requests) {
        self.look(worker, |worker| worker.requests.send_replace(requests));
    }

    /// The holder was met, and speaks this version.
    pub(crate) fn met(&self, worker: &str, version: u32) {
        if let Some(worker) = self.books().workers.get_mut(worker) {
            worker.speaks = version;
        }
    }

    /// The holder tells how its worker is.
    pub(crate) fn state(&self, state: StateRecord) {
        let mut changed = None;
        if let Some(worker) = self.books().workers.get_mut(&state.worker_id) {
            let report = state.report();
            if worker.state.report() != report && state.phase != Phase::Ended {
                changed = Some(report);
            }
            if state.answer.is_some() && worker.answer.borrow().is_none() {
                worker.answer.send_replace(state.answer.clone());
            }
            worker.state = state;
        }
        if let Some(report) = changed {
            self.tell(WorkerNews::Changed(report));
        }
    }

    /// An exit waits for the plane. Once is enough.
    pub(crate) fn exited(&self, record: ExitRecord) {
        let key = (record.written_at, record.worker_id.clone(), record.number);
        let id = record.id();
        {
            let mut books = self.books();
            if books.outbox.contains_key(&key) {
                return;
            }
            if let Some(worker) = books.workers.get_mut(&record.worker_id)
                && record.is_final()
            {
                worker.last = Some(record.clone());
                worker.state.phase = Phase::Ended;
                worker.state.process = None;
            }
            make_room(&mut books.outbox, &record.worker_id);
            books.outbox.insert(key, record);
        }
        self.tell(WorkerNews::Exited(id));
    }

    /// An end that was told before: only this daemon has to learn of it.
    pub(crate) fn ended_before(&self, record: ExitRecord) {
        if let Some(worker) = self.books().workers.get_mut(&record.worker_id) {
            worker.state.phase = Phase::Ended;
            worker.state.process = None;
            worker.last = Some(record);
        }
    }

    /// Whether the last exit of a worker is known.
    pub(crate) fn has_ended(&self, worker: &str) -> bool {
        self.look(worker, |worker| worker.last.is_some()) == Some(true)
    }

    /// A worker has ended for good; everything of it is gone, but for those that are stuck.
    pub(crate) fn over(&self, worker: &str, stuck: Vec<u32>) {
        if !stuck.is_empty() {
            tracing::error!(
                worker.id = worker,
                ?stuck,
                "processes are left after SIGKILL"
            );
        }
        self.look(worker, |worker| {
            worker.requests.send_replace(None);
            if let Some(record) = &worker.last {
                let exit = record.exit.clone();
                if worker.answer.borrow().is_none() {
                    let answer = SpawnOutput::Exited { exit: exit.clone() };
                    worker.answer.send_replace(Some(answer));
                }
                worker.over.send_replace(Some(Over { exit, stuck }));
            }
        });
        self.forget_old();
    }

    /// Takes in the exits that wait on disk.
    pub(crate) fn take_in(&self, kept: Kept) {
        for record in kept.untold {
            self.exited(record);
        }
    }

    fn tell(&self, news: WorkerNews) {
        if let Err(error) = self.news.try_send(news) {
            // The roster and the outbox have it all the same.
            tracing::debug!(%error, "news of a worker was not taken");
        }
    }

    /// Every worker that has not ended.
    pub(crate) fn roster(&self) -> Vec<WorkerReport> {
        let books = self.books();
        let is_open =
            |worker: &&Worker| worker.last.is_none() && worker.state.phase != Phase::Ended;
        let open = books.workers.values().filter(is_open);
        let mut roster: Vec<_> = open.map(|worker| worker.state.report()).collect();
        roster.sort_by(|a, b| a.worker_id.cmp(&b.worker_id));
        roster
    }

    /// What the plane has not acknowledged.
    pub(crate) fn outbox(&self) -> Vec<NodeFrame> {
        self.books()
            .outbox
            .values()
            .map(ExitRecord::frame)
            .collect()
    }

    /// The plane has acknowledged an exit.
    pub(crate) fn acknowledged(&self, id: &str) {
        let requests = {
            let mut books = self.books();
            let Some((worker, number)) = ExitRecord::parse_id(id) else {
                return;
            };
            let mut keys = books.outbox.keys();
            let key = keys.find(|key| key.2 == number && key.1 == worker).cloned();
            let Some(key) = key else { return };
            books.outbox.remove(&key);
            let (_, worker, number) = key;
            self.dir(&worker).mark_told(number);
            let worker = books.workers.get(&worker);
            worker
                .and_then(|worker| worker.requests.borrow().clone())
                .map(|to| (to, number))
        };
        if let Some((requests, number)) = requests {
            // A holder that is not told keeps it until it is connected to again, and then sends
            // what is not marked on disk.
            let _ = requests.try_send(Request::told(number));
        }
        self.forget_old();
    }

    /// Forgets workers that ended long ago, or beyond the number that is kept. Never one of
    /// whose end the plane does not know.
    pub(crate) fn forget_old(&self) {
        let mut books = self.books();
        let waiting: std::collections::HashSet<String> = books
            .outbox
            .values()
            .map(|one| one.worker_id.clone())
            .collect();
        let mut ended: Vec<(Timestamp, String)> = books
            .workers
            .iter()
            .filter(|(id, worker)| !waiting.contains(*id) && worker.over.borrow().is_some())
            .filter_map(|(id, worker)| Some((worker.last.as_ref()?.written_at, id.clone())))
            .collect();
        ended.sort();
        let over = ended.len().saturating_sub(self.settings.ended_max);
        let now = Timestamp::wall_clock();
        for (place, (at, id)) in ended.into_iter().enumerate() {
            if place >= over && now.since(at) < self.settings.ended_keep {
                continue;
            }
            books.workers.remove(&id);
            if let Err(error) = self.dir(&id).remove() {
                tracing::warn!(worker.id = id, %error, "an ended worker's directory stays");
            }
        }
    }
}

fn make_room(outbox: &mut BTreeMap<OutboxKey, ExitRecord>, worker: &str) {
    let of_worker = outbox
        .iter()
        .filter(|(_, record)| record.worker_id == worker);
    let keys: Vec<OutboxKey> = of_worker.map(|(key, _)| key.clone()).collect();
    let over = (keys.len() + 1).saturating_sub(UNTOLD_MAX);
    for key in keys.into_iter().take(over) {
        // The holder has made the same room on disk, and the newest says how many are missing.
        outbox.remove(&key);
    }
}
