//! Keeps the terminal socket, apart from the link so that output can never hold up control: its
//! own connection, watchdog and way out. What a viewer sees is `session`'s.

mod outgoing;
mod session;
mod text;

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use muster_wire::Timestamp;
use muster_wire::fleet::terminal::{TerminalCommand, TerminalNews};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tracing::{debug, info, warn};

use crate::daemon::Node;
use crate::dial::Socket;
use crate::link::backoff::Backoff;
use crate::link::board::LinkState;
use crate::link::watchdog::{Finding, Watchdog};
use outgoing::{Out, Outgoing};
use session::{Session, Wish};

/// Where nodes connect.
const PATH: &str = "/v1/node/terminal/ws";
/// The largest frame that is taken: a paste, as base64.
const FRAME_MAX: usize = 1 << 20;
/// Viewers at once.
const SESSIONS_MAX: usize = 64;
/// Wishes of a viewer that wait; beyond, they are refused with an error.
const WISHES: usize = 64;

/// The terminal socket, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalReport {
    /// Whether it is open.
    pub open: bool,
    /// Since when.
    pub since: Timestamp,
    /// Why it is not, or was opened.
    pub reason: String,
    /// How many viewers there are.
    pub viewers: usize,
}

/// Holds the report.
#[derive(Debug)]
pub(crate) struct Shown(Mutex<TerminalReport>);

impl Shown {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(TerminalReport {
            open: false,
            since: Timestamp::wall_clock(),
            reason: "the link is not ready yet".into(),
            viewers: 0,
        }))
    }
    pub(crate) fn report(&self) -> TerminalReport {
        self.0.lock().clone()
    }
    fn set(&self, open: bool, reason: String) {
        let mut report = self.0.lock();
        if report.open != open {
            report.since = Timestamp::wall_clock();
        }
        report.open = open;
        report.reason = reason;
        report.viewers = 0;
    }
    fn viewers(&self, viewers: usize) {
        self.0.lock().viewers = viewers;
    }
}

/// Keeps the socket for as long as the link is ready. Ends when it is dropped.
pub(crate) async fn keep(node: &Node) {
    let timing = &node.settings.timing;
    let mut backoff = Backoff::new(timing.reconnect_min, timing.reconnect_max);
    let mut link = node.board.watch();
    loop {
        // A plane that does not take the node takes no terminal of it either.
        if link
            .wait_for(|state| *state == LinkState::Ready)
            .await
            .is_err()
        {
            return;
        }
        let opened = Instant::now();
        let why = tokio::select! {
            why = connect(node) => why,
            () = node.reconnect_terminal.notified() => "somebody asked for a new connection".into(),
        };
        if opened.elapsed() > timing.beat * timing.ack_beats {
            backoff.reset();
        }
        let wait = backoff.next();
        let open = node.terminal.report().open;
        node.terminal.set(false, why.clone());
        if open {
            warn!(reason = %why, next_s = wait.as_secs_f64(), "the terminal socket is closed; it is dialled again");
        } else {
            debug!(reason = %why, next_s = wait.as_secs_f64(), "the terminal socket could not be opened");
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = node.reconnect_terminal.notified() => {}
        }
    }
}

async fn connect(node: &Node) -> String {
    let timing = &node.settings.timing;
    let config = WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        .write_buffer_size(0)
        .max_message_size(Some(FRAME_MAX))
        .max_frame_size(Some(FRAME_MAX));
    let token = node.identity().token;
    let dialled = node.dialer.socket(PATH, &token, &[], config);
    let socket = match tokio::time::timeout(timing.connect, dialled).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) => return error.to_string(),
        Err(_) => return format!("no connection within {:?}", timing.connect),
    };
    info!("the terminal socket is open");
    node.terminal.set(true, "the link is ready".into());
    Lane::run(node, socket).await
}

/// One connection.
struct Lane<'a> {
    node: &'a Node,
    out: Out,
    /// By session, the way to its task.
    sessions: HashMap<String, mpsc::Sender<Wish>>,
    /// Sessions end with the connection: whoever watched opens them again.
    tasks: JoinSet<()>,
    watchdog: Watchdog,
    /// The plane answers beats on this socket.
    answers: bool,
    heard_at: Instant,
}

/// What the reading task hands on.
enum Heard {
    Command(TerminalCommand),
    /// A frame of the socket's own, or one that nobody understands.
    Sign,
}

impl Lane<'_> {
    async fn run(node: &Node, socket: Socket) -> String {
        let timing = &node.settings.timing;
        let (sink, stream) = socket.split();
        let (out, queue) = Out::new();
        let (commands, mut heard) = mpsc::channel(WISHES);
        let mut ends = JoinSet::new();
        ends.spawn(write(sink, queue, timing.write, timing.beat));
        ends.spawn(read(stream, commands));
        let now = Instant::now();
        let mut lane = Lane {
            node,
            out,
            sessions: HashMap::new(),
            tasks: JoinSet::new(),
            watchdog: Watchdog::new(timing.beat, timing.ack_beats, now),
            answers: false,
            heard_at: now,
        };
        let mut looks = interval(lane.watchdog.look_every());
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beats = interval(timing.beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = looks.tick() => {
                    if let Some(why) = lane.look() {
                        return why;
                    }
                }
                _ = beats.tick() => lane.beat(),
                Some(ended) = ends.join_next() => {
                    return ended.unwrap_or_else(|error| error.to_string());
                }
                Some(_) = lane.tasks.join_next() => lane.forget_ended(),
                Some(heard) = heard.recv() => lane.hear(heard),
            }
        }
    }

    fn look(&mut self) -> Option<String> {
        let now = Instant::now();
        match self.watchdog.look(now) {
            Finding::StoodStill(_) => Some("this machine or this process stood still".into()),
            Finding::Overdue { waited, .. } if self.answers => Some(format!(
                "the plane does not acknowledge on the terminal socket: {:.1} s",
                waited.as_secs_f64()
            )),
            Finding::Overdue { .. } | Finding::Fine => {
                let silent = now.saturating_duration_since(self.heard_at);
                (silent > self.watchdog.deadline() * 2)
                    .then(|| format!("nothing was heard for {:.1} s", silent.as_secs_f64()))
            }
        }
    }

    fn beat(&mut self) {
        let seq = self.watchdog.beat(Instant::now());
        // Without room the writer is held up, and its own bound or this beat's deadline says so.
        self.out.try_tell(TerminalNews::Beat {
            id: seq.to_string(),
        });
    }

    fn hear(&mut self, heard: Heard) {
        self.heard_at = Instant::now();
        let Heard::Command(command) = heard else {
            return;
        };
        match command {
            TerminalCommand::Ack { id } => {
                self.answers = true;
                if let Ok(seq) = id.parse() {
                    self.watchdog.acknowledged(seq, self.heard_at);
                }
            }
            TerminalCommand::Open {
                session_id,
                agent,
                mode,
            } => {
                // Whoever was told that a session ended may open one of the same id at once.
                self.forget_ended();
                if self.sessions.contains_key(&session_id) {
                    return self.error(session_id, "session_exists", "a session has this id");
                }
                if self.sessions.len() >= SESSIONS_MAX {
                    let text = format!("this node shows at most {SESSIONS_MAX} terminals at once");
                    return self.error(session_id, "too_many_sessions", &text);
                }
                let (wishes, taken) = mpsc::channel(WISHES);
                self.sessions.insert(session_id.clone(), wishes);
                let session = Session {
                    id: session_id,
                    agent,
                    mode,
                    supervisor: self.node.supervisor.clone(),
                    out: self.out.clone(),
                };
                self.tasks.spawn(session.run(taken));
                self.node.terminal.viewers(self.sessions.len());
            }
            TerminalCommand::Input {
                session_id,
                data_base64,
            } => match STANDARD.decode(data_base64) {
                Ok(bytes) => self.wish(session_id, Wish::Input(bytes)),
                Err(_) => self.error(session_id, "invalid_input", "the input is not base64"),
            },
            TerminalCommand::Resize {
                session_id,
                rows,
                cols,
            } => self.wish(session_id, Wish::Resize(rows, cols)),
            TerminalCommand::Close { session_id } => {
                // A session that takes no more wishes is ended with its way to them.
                if let Some(wishes) = self.sessions.get(&session_id)
                    && wishes.try_send(Wish::Close).is_err()
                {
                    self.sessions.remove(&session_id);
                }
            }
        }
    }

    fn wish(&mut self, session_id: String, wish: Wish) {
        let wishes = self.sessions.get(&session_id);
        match wishes.map(|wishes| wishes.try_send(wish)) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_))) => {
                let text = "the worker does not read what is typed; this was dropped";
                self.error(session_id, "input_dropped", text);
            }
            Some(Err(TrySendError::Closed(_))) | None => {
                self.error(session_id, "session_not_found", "no session has this id");
            }
        }
    }

    fn error(&self, session_id: String, code: &str, message: &str) {
        let told = self.out.try_tell(TerminalNews::Error {
            session_id,
            code: code.to_owned(),
            message: message.to_owned(),
        });
        if !told {
            debug!(
                code,
                "an error could not be told: the terminal socket takes nothing"
            );
        }
    }

    /// Forgets the sessions that take no more wishes; each is one before it says that it ended.
    fn forget_ended(&mut self) {
        self.sessions.retain(|_, wishes| !wishes.is_closed());
        self.node.terminal.viewers(self.sessions.len());
    }
}

/// Writes frames and, where there are none, pings; each within a bound.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::Receiver<Outgoing>,
    bound: Duration,
    ping: Duration,
) -> String {
    let mut pings = interval(ping);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (message, place) = tokio::select! {
            outgoing = queue.recv() => match outgoing {
                Some(outgoing) => match serde_json::to_string(&outgoing.news) {
                    Ok(text) => (Message::text(text), Some(outgoing)),
                    Err(error) => return error.to_string(),
                },
                None => return "nobody tells anything any more".into(),
            },
            _ = pings.tick() => (Message::Ping(bytes::Bytes::new()), None),
        };
        match tokio::time::timeout(bound, sink.send(message)).await {
            Ok(Ok(())) => drop(place),
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return format!("a frame could not be written within {bound:?}"),
        }
    }
}

async fn read(mut stream: SplitStream<Socket>, heard: mpsc::Sender<Heard>) -> String {
    loop {
        let sign = match stream.next().await {
            Some(Ok(Message::Text(text))) => match serde_json::from_str(text.as_str()) {
                Ok(command) => Heard::Command(command),
                Err(_) => {
                    debug!("a terminal frame that this build does not know");
                    Heard::Sign
                }
            },
            Some(Ok(Message::Close(close))) => {
                return close.map_or_else(
                    || "the plane closed the terminal socket".into(),
                    |close| format!("the plane closed the terminal socket: {}", close.reason),
                );
            }
            Some(Ok(_)) => Heard::Sign,
            Some(Err(error)) => return error.to_string(),
            None => return "the connection ended without a close".into(),
        };
        if heard.send(sign).await.is_err() {
            return "the daemon stops".into();
        }
    }
}
