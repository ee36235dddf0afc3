//! A person before a worker's terminal: paints, passes on what they type while they drive, and
//! says why it ends. Their session at the node is opened anew when they begin or cease to drive,
//! when output was lost, and when the node was away; each time the screen is painted again.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_engine::Event;
use muster_engine::fleet::FleetEvent;
use muster_wire::fleet::terminal::{TerminalCommand, TerminalMode};
use muster_wire::fleet::viewer::{ViewerCommand, ViewerNews};
use muster_wire::{NodeId, WorkerId};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::feed::{Feed, Item};
use super::filter::Filter;
use super::lane::Lane;
use super::room::{DrivenBy, Seat};
use super::snapshot::{Belief, believed, said};
use crate::app::App;
use crate::auth::Credential;
use crate::fleet::session::{self, is_too_large};

const PING_EVERY: Duration = Duration::from_secs(15);
/// Without a pong for so long the viewer is gone.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// A viewer that takes nothing for so long is gone.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// How long a node that is away is waited for.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// A node that has painted nothing for so long is said to be away.
const PAINT_MAX: Duration = Duration::from_secs(2);
/// How soon the screen is painted anew after output was lost.
const REPAINT_AFTER: Duration = Duration::from_millis(250);
/// The largest frame of a viewer: a paste, as base64.
pub(crate) const FRAME_MAX: usize = 256 * 1024;
/// The largest piece of input.
const INPUT_MAX: usize = 64 * 1024;

/// Who watches what.
pub(crate) struct Viewer {
    /// The worker.
    pub(crate) worker: WorkerId,
    /// What its node knows it by: its id, or its name at a broker.
    pub(crate) agent: Arc<str>,
    /// Its node.
    pub(crate) node: NodeId,
    /// The node's name, for people.
    pub(crate) node_name: Arc<str>,
    /// Who watches.
    pub(crate) principal: Arc<str>,
    /// What they showed, or what their ticket was asked for with: they stay as long as it is
    /// taken.
    pub(crate) credential: Credential,
}

/// Why it ended: a word and a sentence; `None` when nobody is there to be told.
type Ended = Option<(String, String)>;

/// How long a node is waited for that has the last output of a worker that has ended, and says
/// so itself.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves a viewer until they, the worker or its node leave.
pub(crate) async fn serve(app: App, viewer: Viewer, mut socket: WebSocket) {
    let _held = viewer.credential.hold();
    let mut session = Session {
        seat: Seat::take(&app.fleet, &viewer.worker, viewer.principal.clone()),
        app: &app,
        viewer: &viewer,
        feed: Arc::default(),
        filter: Filter::default(),
        socket: &mut socket,
        heard: Instant::now(),
        over: None,
        too_large: false,
    };
    if crate::api::fleet::end_of(&app, &viewer.worker)
        .await
        .is_some()
    {
        // It ended between the look that let the viewer in and the seat.
        session.over = Some(Instant::now());
    }
    let ended = tokio::select! {
        biased;
        why = viewer.credential.until_over(&app.auth.ring, &app.clock) => {
            Some(("unauthenticated".into(), why.ended().into()))
        }
        ended = session.run() => ended,
    };
    let too_large = session.too_large;
    drop(session);
    if too_large {
        let frame = CloseFrame {
            code: close_code::SIZE,
            reason: session::too_large(FRAME_MAX).into(),
        };
        let close = socket.send(Message::Close(Some(frame)));
        let _ = timeout(Duration::from_secs(2), close).await;
        tokio::time::sleep(session::LINGER).await;
    }
    if let Some((code, message)) = ended {
        let closed = ViewerNews::Closed { code, message };
        if say(&mut socket, &closed).await.is_ok() {
            let frame = CloseFrame {
                code: close_code::NORMAL,
                reason: Utf8Bytes::from_static("the session is over"),
            };
            let _ = timeout(
                Duration::from_secs(2),
                socket.send(Message::Close(Some(frame))),
            )
            .await;
        }
    }
}

async fn say(socket: &mut WebSocket, news: &ViewerNews) -> Result<(), ()> {
    let text = serde_json::to_string(news).unwrap_or_default();
    match timeout(WRITE_MAX, socket.send(Message::Text(text.into()))).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(()),
    }
}

struct Session<'a> {
    app: &'a App,
    viewer: &'a Viewer,
    seat: Seat,
    feed: Arc<Feed>,
    filter: Filter,
    socket: &'a mut WebSocket,
    heard: Instant,
    /// Until when the node of a worker that has ended may still tell its last output.
    over: Option<Instant>,
    /// They sent more at once than they may.
    too_large: bool,
}

/// What comes after a session at the node.
enum Next {
    /// Another one.
    Reopen,
    /// The node's socket is gone.
    Away,
    /// Nothing.
    End(Ended),
}

impl Session<'_> {
    async fn run(&mut self) -> Ended {
        loop {
            if self.over.is_some_and(|over| over <= Instant::now()) {
                return self.exited().await;
            }
            let lane = match self.lane().await {
                Ok(lane) => lane,
                Err(ended) => return ended,
            };
            let id = muster_wire::mint("term");
            let mode = if self.seat.drives() {
                TerminalMode::Drive
            } else {
                TerminalMode::View
            };
            lane.open(&id, &self.viewer.agent, mode, self.feed.clone());
            let next = self.watch(&lane, &id, mode).await;
            lane.end(&id);
            match next {
                // Where no other socket of the node is open, that is said next.
                Next::Reopen | Next::Away => {}
                Next::End(ended) => return ended,
            }
        }
    }

    /// The worker has ended, and its node had its time to say so.
    async fn exited(&mut self) -> Ended {
        let how = crate::api::fleet::end_of(self.app, &self.viewer.worker).await;
        let message = how.unwrap_or_else(|| "it has ended".into());
        Some(("agent_exited".into(), message))
    }

    /// Notes that the worker has ended, once.
    fn note_end(&mut self) {
        if self.seat.is_over() {
            self.over.get_or_insert_with(|| Instant::now() + LAST_WORDS);
        }
    }

    /// The node's socket; waits for one that is away.
    async fn lane(&mut self) -> Result<Arc<Lane>, Ended> {
        let mut opened = self.app.fleet.terminals.opened.subscribe();
        let until = Instant::now() + AWAY_MAX;
        let mut told = false;
        loop {
            if let Some(lane) = self.app.fleet.terminals.lane(&self.viewer.node) {
                return Ok(lane);
            }
            self.note_end();
            if self.over.is_some() {
                // Nobody has last words who is away.
                return Err(self.exited().await);
            }
            if !std::mem::replace(&mut told, true) {
                self.tell_away("its terminal socket is not open").await?;
            }
            tokio::select! {
                _ = opened.changed() => {}
                () = self.seat.changed() => {}
                () = tokio::time::sleep_until(until) => {
                    let node = &self.viewer.node_name;
                    let link = match self.app.fleet.links.of(self.viewer.node.as_str()) {
                        Some(_) => "its link is open, its terminal socket is not",
                        None => "it has no link to the plane",
                    };
                    let message = format!("{node} was waited for {AWAY_MAX:?}: {link}");
                    return Err(Some(("node_unreachable".into(), message)));
                }
                () = self.app.stop.cancelled() => return Err(leaving()),
                command = self.socket.recv() => match self.heard(command) {
                    Ok(None) => {}
                    Ok(Some(command)) => self.wish(command, None).await?,
                    Err(()) => return Err(None),
                },
            }
        }
    }

    /// Says that the node is away and waited for, with what is believed of it.
    async fn tell_away(&mut self, seen: &str) -> Result<(), Ended> {
        let seen = said(self.app, &self.viewer.node, seen).await;
        self.say_away(&seen).await
    }

    async fn say_away(&mut self, seen: &str) -> Result<(), Ended> {
        let error = ViewerNews::Error {
            code: "node_away".into(),
            message: format!("{} is away and waited for: {seen}", self.viewer.node_name),
        };
        say(self.socket, &error).await.map_err(|()| None)
    }

    /// One session at the node.
    async fn watch(&mut self, lane: &Lane, id: &str, mode: TerminalMode) -> Next {
        let mut ping = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut repaint: Option<Instant> = None;
        self.note_end();
        // An open socket is no proof of somebody behind it.
        let away = believed(self.app, &self.viewer.node).await;
        let mut painted_by = Some(Instant::now() + PAINT_MAX);
        if let Some(belief) = away.filter(Belief::is_away).filter(|_| self.over.is_none()) {
            painted_by = None;
            if let Err(ended) = self.say_away(&belief.sentence).await {
                return Next::End(ended);
            }
        }
        loop {
            let far = Instant::now() + Duration::from_secs(3600);
            tokio::select! {
                biased;
                () = self.app.stop.cancelled() => return Next::End(leaving()),
                () = self.seat.changed() => {
                    self.note_end();
                    if self.tell_seating().await.is_err() {
                        return Next::End(None);
                    }
                    if self.seat.drives() != (mode == TerminalMode::Drive) {
                        return Next::Reopen;
                    }
                }
                () = lane.closed() => return Next::Away,
                command = self.socket.recv() => match self.heard(command) {
                    Ok(None) => {}
                    Ok(Some(command)) => {
                        if let Err(ended) = self.wish(command, Some((lane, id))).await {
                            return Next::End(ended);
                        }
                    }
                    Err(()) => return Next::End(None),
                },
                _ = ping.tick() => {
                    if self.heard.elapsed() > SILENCE_MAX {
                        return Next::End(None);
                    }
                    let ping = Message::Ping(bytes::Bytes::new());
                    if !matches!(timeout(WRITE_MAX, self.socket.send(ping)).await, Ok(Ok(()))) {
                        return Next::End(None);
                    }
                }
                () = tokio::time::sleep_until(repaint.unwrap_or(far)), if repaint.is_some() => {
                    return Next::Reopen;
                }
                () = tokio::time::sleep_until(self.over.unwrap_or(far)), if self.over.is_some() => {
                    return Next::End(self.exited().await);
                }
                () = tokio::time::sleep_until(painted_by.unwrap_or(far)), if painted_by.is_some() => {
                    painted_by = None;
                    let seen = format!("it has painted nothing within {PAINT_MAX:?}");
                    if let Err(ended) = self.tell_away(&seen).await {
                        return Next::End(ended);
                    }
                }
                item = self.feed.next() => {
                    painted_by = None;
                    if matches!(item, Item::Output { dropped: 1.., .. }) {
                        repaint.get_or_insert(Instant::now() + REPAINT_AFTER);
                    }
                    match self.show(item).await {
                        Ok(()) => {}
                        Err(ended) => return Next::End(ended),
                    }
                }
            }
        }
    }

    /// A message of the viewer; `Err` when they left.
    fn heard(
        &mut self,
        message: Option<Result<Message, axum::Error>>,
    ) -> Result<Option<ViewerCommand>, ()> {
        self.heard = Instant::now();
        match message {
            Some(Ok(Message::Text(text))) => Ok(Some(
                serde_json::from_str(&text).unwrap_or(ViewerCommand::Other),
            )),
            Some(Err(error)) => {
                self.too_large = is_too_large(&error);
                Err(())
            }
            Some(Ok(Message::Close(_))) | None => Err(()),
            Some(Ok(_)) => Ok(None),
        }
    }

    /// Does what the viewer wants. `Err` when the session is over.
    async fn wish(
        &mut self,
        command: ViewerCommand,
        at: Option<(&Lane, &str)>,
    ) -> Result<(), Ended> {
        let refused = match command {
            ViewerCommand::Input { data_base64 } => self.type_in(data_base64, at),
            ViewerCommand::Resize { rows, cols } => {
                // The terminal follows its driver's window; the others see what there is.
                if let Some((lane, id)) = at.filter(|_| self.seat.drives()) {
                    lane.command(TerminalCommand::Resize {
                        session_id: id.to_owned(),
                        rows: rows.clamp(1, 1_000),
                        cols: cols.clamp(1, 1_000),
                    });
                }
                Ok(())
            }
            ViewerCommand::Drive { take } => self.drive(take).await,
            ViewerCommand::Watch {} => {
                if self.seat.watch() {
                    self.told(None, false).await;
                }
                Ok(())
            }
            ViewerCommand::Other => Err(("invalid_message", "this frame is not known".to_owned())),
        };
        if let Err((code, message)) = refused {
            let code = code.to_owned();
            let error = ViewerNews::Error { code, message };
            say(self.socket, &error).await.map_err(|()| None)?;
        }
        Ok(())
    }

    fn type_in(
        &self,
        data_base64: String,
        at: Option<(&Lane, &str)>,
    ) -> Result<(), (&'static str, String)> {
        if !self.seat.drives() {
            let text = "you watch; ask for the keyboard with terminal.drive";
            return Err(("not_driving", text.into()));
        }
        // The length first: nothing is decoded that is too long in any case.
        let fits = data_base64.len() <= INPUT_MAX.div_ceil(3) * 4
            && STANDARD
                .decode(&data_base64)
                .is_ok_and(|bytes| bytes.len() <= INPUT_MAX);
        if !fits {
            let text = format!("input is base64 of at most {INPUT_MAX} bytes");
            return Err(("invalid_input", text));
        }
        let Some((lane, id)) = at else {
            let text = format!("{} is away: nothing was typed", self.viewer.node_name);
            return Err(("node_away", text));
        };
        lane.command(TerminalCommand::Input {
            session_id: id.to_owned(),
            data_base64,
        });
        Ok(())
    }

    async fn drive(&mut self, take: bool) -> Result<(), (&'static str, String)> {
        let (drove, before) = (self.seat.drives(), self.seat.driver());
        if let Err(DrivenBy(driver)) = self.seat.drive(take) {
            let text = format!("{driver} drives, and was told that you ask; take it to force it");
            return Err(("driven_by_another", text));
        }
        if !drove {
            let principal = self.viewer.principal.clone();
            self.told(Some(principal), before.is_some()).await;
        }
        Ok(())
    }

    /// Writes who took or gave back the keyboard into the audit log and the event stream.
    async fn told(&mut self, driver: Option<Arc<str>>, took: bool) {
        let action = match (&driver, took) {
            (Some(_), false) => "worker.driven",
            (Some(_), true) => "worker.driver_taken",
            (None, _) => "worker.undriven",
        };
        let who = &self.viewer.principal;
        let text = match (&driver, took) {
            (Some(_), false) => format!("{who} drives its terminal"),
            (Some(_), true) => format!("{who} took the keyboard of its terminal"),
            (None, _) => format!("{who} gave the keyboard of its terminal back"),
        };
        let driven = FleetEvent::WorkerDriven {
            worker: self.viewer.worker.clone(),
            driver,
            text: text.into(),
        };
        let (now, by) = (self.app.clock.now(), who.clone());
        let object = self.viewer.worker.to_string();
        let written = self
            .app
            .blocking(move |stores| {
                crate::api::fleet::audit(stores, now, &by, action, &object, String::new())
            })
            .await;
        if written.is_err() {
            tracing::warn!(worker.id = %self.viewer.worker, "who drives could not be written into the audit log");
        }
        self.app.driver.tell(Event::Fleet(Box::new(driven)));
    }

    async fn tell_seating(&mut self) -> Result<(), ()> {
        let seating = self.seat.seating();
        let news = ViewerNews::Driver {
            driving: self.seat.drives(),
            driver: seating.driver.map(|(_, name)| name.to_string()),
            viewers: seating.viewers,
            why: seating.why.map(|why| why.to_string()),
        };
        say(self.socket, &news).await
    }

    async fn show(&mut self, item: Item) -> Result<(), Ended> {
        let news = match item {
            Item::Ready {
                screen,
                rows,
                cols,
                offset,
            } => {
                self.filter = Filter::default();
                let screen = self.filter.pass(&String::from_utf8_lossy(&screen));
                self.filter = Filter::default();
                let ready = ViewerNews::Ready {
                    screen: STANDARD.encode(screen),
                    rows,
                    cols,
                    offset,
                };
                say(self.socket, &ready).await.map_err(|()| None)?;
                return self.tell_seating().await.map_err(|()| None);
            }
            Item::Output {
                chunk,
                offset,
                dropped,
            } => {
                if dropped > 0 {
                    // A sequence that was cut by the gap is never completed.
                    self.filter = Filter::default();
                }
                ViewerNews::Output {
                    chunk: self.filter.pass(&chunk),
                    offset,
                    dropped,
                }
            }
            Item::InputAck(bytes_written) => ViewerNews::InputAck { bytes_written },
            Item::Error { code, message } => ViewerNews::Error { code, message },
            Item::Closed { code, message } => return Err(Some((code, message))),
        };
        say(self.socket, &news).await.map_err(|()| None)
    }
}

fn leaving() -> Ended {
    Some((
        "going_away".into(),
        "the control plane is shutting down".into(),
    ))
}
