//! One connection of a viewer: what comes is painted, what is typed goes out while this viewer
//! drives. Ends when it is left, closed or lost, and says which.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use muster_wire::Category;
use muster_wire::fleet::viewer::{ViewerCommand, ViewerNews};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::super::server::Stop;
use super::keys::DetachKey;
use super::screen::Screen;
use crate::cli::Attach;
use crate::client::Socket;
use crate::failure::{Failure, Outcome};
use crate::out::clean;

/// A silent connection is asked so often whether it is there.
const PING: Duration = Duration::from_secs(10);
/// Silent for so long, it is lost.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// How long a write may take.
const WRITE: Duration = Duration::from_secs(10);
/// Frames that may wait to be sent; then no more is typed.
const WAITING_MAX: usize = 64;
/// What may be typed while the keyboard is asked for.
const HELD_MAX: usize = 4096;

/// Why a connection is over.
#[derive(Debug)]
pub(super) enum Left {
    /// The key.
    Detached,
    /// The plane closed it, for good.
    Closed(String),
    /// A signal, by its name.
    Signal(&'static str),
    /// The connection broke; it may be made again.
    Lost(String),
}

/// How this viewer stands to driving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// Watches.
    Watch,
    /// Drives when nobody does.
    IfFree,
    /// Drives, or fails.
    Must,
    /// Drives, whoever does.
    Take,
}

/// A viewer, over all its connections.
pub(super) struct Viewing {
    pub(super) screen: Screen,
    /// Bytes of output that were not shown.
    pub(super) dropped: u64,
    typed: mpsc::Receiver<Vec<u8>>,
    detach: DetachKey,
    wish: Wish,
    name: String,
    driving: bool,
    /// Who drives, as it was last said.
    said: Option<(bool, Option<String>)>,
    /// Driving was asked for over this connection.
    asked: bool,
    /// Takes no keys: it was asked to, or there are none.
    only_watches: bool,
    /// Something was painted, over any connection.
    painted: bool,
    /// What was typed while nobody drove, until the keyboard is this viewer's.
    held: Vec<u8>,
    /// Who drives was said to this viewer when they typed.
    refused_by: Option<String>,
    waiting: VecDeque<Message>,
}

impl Viewing {
    pub(super) fn new(
        screen: Screen,
        typed: mpsc::Receiver<Vec<u8>>,
        detach: DetachKey,
        args: &Attach,
        name: String,
        is_terminal: bool,
    ) -> Self {
        let only_watches = args.read_only || !is_terminal || !screen.has_keys();
        let wish = match () {
            () if only_watches => Wish::Watch,
            () if args.take => Wish::Take,
            () if args.drive => Wish::Must,
            () => Wish::IfFree,
        };
        Self {
            screen,
            dropped: 0,
            typed,
            detach,
            wish,
            name,
            driving: false,
            said: None,
            asked: false,
            only_watches,
            painted: false,
            held: Vec::new(),
            refused_by: None,
            waiting: VecDeque::new(),
        }
    }

    /// Waits for the key while there is no connection; what else is typed is lost, and is said to
    /// be by the screen not changing.
    pub(super) async fn detached(&mut self) {
        while let Some(typed) = self.typed.recv().await {
            if self.detach.split(&typed).1 {
                return;
            }
        }
        std::future::pending().await
    }

    /// Shows a connection until it is over.
    pub(super) async fn until_left(&mut self, socket: Socket, stop: &mut Stop) -> Outcome<Left> {
        let (sink, mut stream) = socket.split();
        let (out, queue) = mpsc::channel(1);
        let mut writing = tokio::spawn(write(sink, queue));
        let mut resized = signal(SignalKind::window_change())?;
        let mut silent = tokio::time::interval(PING);
        let mut heard = Instant::now();
        self.driving = false;
        self.asked = false;
        self.held.clear();
        self.waiting.clear();
        let left = loop {
            tokio::select! {
                came = stream.next() => {
                    heard = Instant::now();
                    let text = match came {
                        Some(Ok(Message::Text(text))) => text,
                        Some(Ok(Message::Close(frame))) => {
                            let why = frame.map(|frame| frame.reason.to_string()).filter(|why| !why.is_empty());
                            break Ok(Left::Lost(why.unwrap_or_else(|| "the plane closed the connection".to_owned())));
                        }
                        Some(Ok(_)) => continue,
                        Some(Err(error)) => break Ok(Left::Lost(format!("the connection broke ({error})"))),
                        None => break Ok(Left::Lost("the connection ended without a word".to_owned())),
                    };
                    match self.take(&text) {
                        Ok(None) => {}
                        Ok(Some(left)) => break Ok(left),
                        Err(failure) => break Err(failure),
                    }
                }
                Some(typed) = self.typed.recv(), if self.waiting.len() < WAITING_MAX => {
                    let (keys, is_left) = self.detach.split(&typed);
                    if !keys.is_empty() {
                        self.type_in(keys);
                    }
                    if is_left {
                        break Ok(Left::Detached);
                    }
                }
                permit = out.reserve(), if !self.waiting.is_empty() => match permit {
                    Ok(permit) => {
                        if let Some(message) = self.waiting.pop_front() {
                            permit.send(message);
                        }
                    }
                    Err(_) => break Ok(Left::Lost("the connection takes nothing".to_owned())),
                },
                _ = resized.recv() => self.tell_size(),
                _ = silent.tick() => {
                    if heard.elapsed() > SILENT_MAX {
                        break Ok(Left::Lost(format!("nothing was heard for {} s", SILENT_MAX.as_secs())));
                    }
                    self.waiting.push_back(Message::Ping(Vec::new().into()));
                }
                signal = stop.next() => break Ok(Left::Signal(signal)),
            }
        };
        drop(out);
        // What was typed last, and the goodbye.
        if tokio::time::timeout(WRITE, &mut writing).await.is_err() {
            writing.abort();
        }
        left
    }

    /// Sends what was typed. Where nobody drives, the keyboard is asked for first.
    fn type_in(&mut self, keys: &[u8]) {
        if self.driving {
            return self.send(keys);
        }
        // Before the first screen nobody knows who drives.
        if self.only_watches || !self.asked {
            return;
        }
        let driver = self.said.as_ref().and_then(|(_, driver)| driver.clone());
        match driver {
            None => {
                if self.held.is_empty() {
                    self.tell(&ViewerCommand::Drive { take: false });
                }
                let room = HELD_MAX.saturating_sub(self.held.len());
                self.held.extend_from_slice(&keys[..keys.len().min(room)]);
            }
            Some(driver) => {
                if self.refused_by.as_ref() != Some(&driver) {
                    let (who, name) = (clean(&driver), &self.name);
                    self.screen.say(&format!(
                        "{who} drives: to type here, leave and muster attach {name} --take"
                    ));
                    self.refused_by = Some(driver);
                }
            }
        }
    }

    fn send(&mut self, keys: &[u8]) {
        self.tell(&ViewerCommand::Input {
            data_base64: STANDARD.encode(keys),
        });
    }

    /// Takes a frame.
    fn take(&mut self, text: &str) -> Outcome<Option<Left>> {
        // A frame that cannot be read is of a newer plane.
        let news = serde_json::from_str(text).unwrap_or(ViewerNews::Other);
        match news {
            ViewerNews::Ready {
                screen, rows, cols, ..
            } => {
                let bytes = STANDARD.decode(screen).unwrap_or_default();
                self.screen.show(&bytes)?;
                self.painted = true;
                // It comes again whenever the screen is painted anew.
                if std::mem::replace(&mut self.asked, true) {
                    return Ok(None);
                }
                match self.wish {
                    Wish::Watch => self.say_smaller(rows, cols),
                    wish => self.tell(&ViewerCommand::Drive {
                        take: wish == Wish::Take,
                    }),
                }
            }
            ViewerNews::Output { chunk, dropped, .. } => {
                self.dropped += dropped;
                self.screen.show(chunk.as_bytes())?;
            }
            ViewerNews::Driver {
                driving,
                driver,
                why,
                ..
            } => self.driver_is(driving, driver, why),
            ViewerNews::Error { code, message } => {
                let is_taken = matches!(code.as_str(), "driven_by_another" | "not_allowed");
                if is_taken && matches!(self.wish, Wish::Must | Wish::Take) {
                    let category = match code.as_str() {
                        "not_allowed" => Category::PermissionDenied,
                        _ => Category::Conflict,
                    };
                    return Err(Failure::new(category, message)
                        .hint("watch without --drive, or take over with --take"));
                }
                if is_taken {
                    self.wish = Wish::Watch;
                    self.held.clear();
                    self.only_watches |= code == "not_allowed";
                }
                // Whoever watches by hand can wait for it; a program is told.
                if code == "node_away" && !self.painted && !self.screen.has_keys() {
                    return Err(Failure::new(Category::NodeUnreachable, message));
                }
                self.screen.say(&clean(&message));
            }
            ViewerNews::Closed { code, message } => {
                let why = match message.is_empty() {
                    true => code.replace('_', " "),
                    false => message,
                };
                let comes_back = matches!(
                    code.as_str(),
                    "going_away" | "node_unreachable" | "link_lost" | "too_slow"
                );
                return Ok(Some(match comes_back {
                    true => Left::Lost(why),
                    false => Left::Closed(why),
                }));
            }
            ViewerNews::InputAck { .. } | ViewerNews::Other => {}
        }
        Ok(None)
    }

    /// Who drives is said when it is not what was wished, and when it changes.
    fn driver_is(&mut self, driving: bool, driver: Option<String>, why: Option<String>) {
        let was = std::mem::replace(&mut self.driving, driving);
        let held = match driving || driver.is_some() {
            true => std::mem::take(&mut self.held),
            false => Vec::new(),
        };
        if driving && !was {
            self.tell_size();
            // It is not taken from others again by itself, only kept over a lost connection.
            self.wish = Wish::IfFree;
        }
        if driving && !held.is_empty() {
            self.send(&held);
        }
        if was && !driving {
            self.wish = Wish::Watch;
        }
        let now = (driving, driver.clone());
        if self.said.replace(now.clone()) == Some(now) {
            return;
        }
        let because = why
            .filter(|why| !why.is_empty())
            .map(|why| format!(" ({})", clean(&why)))
            .unwrap_or_default();
        if self.refused_by != driver {
            self.refused_by = None;
        }
        let who = driver.map(|driver| clean(&driver));
        self.screen.title(&match (driving, &who) {
            (true, _) => format!("{} · you drive", self.name),
            (false, Some(who)) => format!("{} · {who} drives", self.name),
            (false, None) => format!("{} · nobody drives", self.name),
        });
        match (driving, was, who) {
            (true, _, _) if !held.is_empty() => {
                self.screen.say("nobody drove, and you type: you drive");
            }
            (true, _, _) => self.screen.say(&format!("you drive{because}")),
            (false, true, Some(who)) => self
                .screen
                .say(&format!("{who} drives now, you watch{because}")),
            (false, _, Some(who)) => self
                .screen
                .say(&format!("{who} drives, you watch{because}")),
            (false, _, None) if !self.only_watches && self.wish == Wish::Watch => self
                .screen
                .say(&format!("nobody drives, you do when you type{because}")),
            (false, _, None) => self
                .screen
                .say(&format!("nobody drives, you watch{because}")),
        }
    }

    fn say_smaller(&self, rows: u16, cols: u16) {
        if let Some((own_rows, own_cols)) = self.screen.size()
            && (own_rows < rows || own_cols < cols)
        {
            self.screen.say(&format!(
                "its screen has {rows} rows and {cols} columns, more than yours: what does not fit looks wrong"
            ));
        }
    }

    /// The worker's terminal follows the driver's window.
    fn tell_size(&mut self) {
        if let (true, Some((rows, cols))) = (self.driving, self.screen.size()) {
            self.tell(&ViewerCommand::Resize { rows, cols });
        }
    }

    fn tell(&mut self, command: &ViewerCommand) {
        if let Ok(text) = serde_json::to_string(command) {
            self.waiting.push_back(Message::Text(text.into()));
        }
    }
}

/// Writes what is to be said, each within its time; then says goodbye.
async fn write(mut sink: SplitSink<Socket, Message>, mut queue: mpsc::Receiver<Message>) {
    while let Some(message) = queue.recv().await {
        match tokio::time::timeout(WRITE, sink.send(message)).await {
            Ok(Ok(())) => {}
            _ => return,
        }
    }
    let _ = tokio::time::timeout(WRITE, sink.close()).await;
}
