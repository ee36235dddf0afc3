//! The connection to one holder: hears of its worker, hands over what is asked, connects again
//! when it breaks, and sees to the burial when the holder is gone.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::bury::bury;
use super::core::Core;
use crate::holder::protocol::{Ask, Frame, FrameReader, Role, Tell, VERSION, write};
use crate::record::{ExitRecord, Phase, WorkerDir};
use crate::tree;

/// Something asked of a holder. Its id is given where it is sent.
pub(crate) struct Request {
    make: Box<dyn FnOnce(u64) -> Frame<Ask> + Send>,
    answer: Option<oneshot::Sender<Frame<Tell>>>,
}

/// At most so many wait for one holder; who asks more waits.
const REQUESTS_MAX: usize = 64;

impl Request {
    /// One that is answered.
    pub(crate) fn new(
        make: impl FnOnce(u64) -> Frame<Ask> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Frame<Tell>>) {
        let (answer, heard) = oneshot::channel();
        let request = Self {
            make: Box::new(make),
            answer: Some(answer),
        };
        (request, heard)
    }

    /// The plane has acknowledged an exit.
    pub(crate) fn told(number: u64) -> Self {
        Self {
            make: Box::new(move |_| Frame::Message(Ask::Told { number })),
            answer: None,
        }
    }
}

/// A connection to a holder, after the hellos.
pub(crate) struct Connection {
    pub(crate) from: FrameReader<OwnedReadHalf>,
    pub(crate) to: OwnedWriteHalf,
    /// What the holder speaks.
    version: u32,
}

/// Connects to the holder of a directory.
pub(crate) async fn connect(dir: &WorkerDir, role: Role) -> io::Result<Connection> {
    let met = async {
        let (_directory, path) = tree::stream_path(dir.path(), "sock")?;
        let (from, mut to) = UnixStream::connect(path).await?.into_split();
        let hello = Ask::Hello {
            version: VERSION,
            role,
        };
        write(&mut to, &Frame::Message(hello)).await?;
        let mut from = FrameReader::of(from);
        match from.next::<Tell>().await? {
            Some(Frame::Message(Tell::Hello { version, build })) => {
                tracing::debug!(version, build, "connected to a holder");
                Ok(Connection { from, to, version })
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no hello")),
        }
    };
    match timeout(Duration::from_secs(10), met).await {
        Ok(met) => met,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no hello")),
    }
}

/// Follows a worker until it has ended, or the supervisor is dropped.
pub(crate) async fn keep(core: Arc<Core>, worker: String) {
    let mut stop = core.stop.clone();
    tokio::select! {
        _ = stop.changed() => {}
        () = follow(&core, &worker) => {}
    }
}

async fn follow(core: &Arc<Core>, worker: &str) {
    let dir = core.dir(worker);
    let mut pause = Duration::from_millis(20);
    loop {
        if let Ok(connection) = connect(&dir, Role::Control).await {
            pause = Duration::from_millis(20);
            match talk(core, worker, connection).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(worker.id = worker, %error, "the connection to a holder broke");
                }
            }
            core.connected(worker, None);
        }
        if is_gone(&dir).await {
            return bury(core, worker).await;
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Whether the holder is gone. One that was just killed takes a moment to let go of its lock.
async fn is_gone(dir: &WorkerDir) -> bool {
    for _ in 0..10 {
        if !dir.is_held() {
            return true;
        }
        sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Speaks with a holder until its worker is over. An error is a holder that went away before.
async fn talk(core: &Core, worker: &str, connection: Connection) -> io::Result<()> {
    let Connection {
        mut from,
        mut to,
        version,
    } = connection;
    core.met(worker, version);
    let (requests, mut asked) = mpsc::channel::<Request>(REQUESTS_MAX);
    let mut waiting = HashMap::new();
    let mut next_id = 0_u64;
    let mut is_first = true;
    loop {
        tokio::select! {
            frame = from.next::<Tell>() => {
                let Some(frame) = frame? else {
                    if core.has_ended(worker) {
                        core.over(worker, Vec::new());
                        return Ok(());
                    }
                    return Err(io::ErrorKind::UnexpectedEof.into());
                };
                match frame {
                    Frame::Message(Tell::State { state }) => {
                        if let Some(message) = refusal(&state) {
                            core.refuse(worker, message);
                            return Ok(());
                        }
                        core.state(state);
                        // Known before it can be asked: whoever waits for the way finds it so.
                        if is_first {
                            is_first = false;
                            core.connected(worker, Some(requests.clone()));
                        }
                    }
                    Frame::Message(Tell::Exited { record }) => core.exited(record),
                    Frame::Message(Tell::Over { stuck, .. }) => {
                        // One without a last exit was acknowledged before: it is on disk.
                        if !core.has_ended(worker)
                            && let Some(last) = last_on_disk(&core.dir(worker))
                        {
                            core.ended_before(last);
                        }
                        core.over(worker, stuck);
                        return Ok(());
                    }
                    Frame::Message(
                        Tell::Released { id, .. }
                        | Tell::Restarted { id, .. }
                        | Tell::Refused { id, .. }
                        | Tell::Typed { id, .. }
                        | Tell::Done { id },
                    )
                    | Frame::Tail { id, .. } => {
                        let answer: Option<oneshot::Sender<Frame<Tell>>> = waiting.remove(&id);
                        if let Some(answer) = answer {
                            // Whoever asked is gone.
                            let _ = answer.send(frame);
                        }
                    }
                    Frame::Message(Tell::Hello { .. } | Tell::Closed { .. } | Tell::Other)
                    | Frame::Output { .. }
                    | Frame::Input { .. }
                    | Frame::Painted { .. }
                    | Frame::Unknown => {}
                }
            }
            request = asked.recv() => {
                let Some(request) = request else { continue };
                next_id += 1;
                if let Some(answer) = request.answer {
                    waiting.insert(next_id, answer);
                }
                write(&mut to, &(request.make)(next_id)).await?;
            }
        }
    }
}

fn last_on_disk(dir: &WorkerDir) -> Option<ExitRecord> {
    dir.read().ok()?.last().cloned()
}

fn refusal(state: &crate::record::StateRecord) -> Option<String> {
    match &state.answer {
        Some(muster_wire::fleet::frame::SpawnOutput::Refused { message, .. })
            if state.phase == Phase::Ended =>
        {
            Some(message.clone())
        }
        _ => None,
    }
}
