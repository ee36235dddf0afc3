//! One control socket, from its first frame to its close. Knows sockets, deadlines and the queue;
//! what a frame means is its dialect's, what follows from it the engine's.
//!
//! A frame that asks for an answer is answered before the next one is read, and frames that ask
//! for none cost a token of a small bucket: a node that floods is not read, and nobody else
//! notices.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use muster_engine::event::Waiter;
use muster_engine::fleet::event::Hello;
use muster_engine::fleet::{FleetEvent, FleetReply};
use muster_engine::{Event, Reply};
use muster_wire::NodeId;
use muster_wire::fleet::frame::{
    NodeFrame, PlaneFrame, read_node_frame, read_node_frame_by_item, write_frame,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::dialect::{Dialect, Introduction};
use super::door::Admitted;
use super::{Command, Link};
use crate::app::App;

/// The largest frame of a control socket.
pub(crate) const FRAME_MAX: usize = 1024 * 1024;
/// A node that does not say who it is for so long is sent away.
const REGISTER_MAX: Duration = Duration::from_secs(10);
/// A node that takes nothing for so long is gone.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// How long a close in good order may take.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// How long a socket that cannot be read stays open for its close to be read.
pub(crate) const LINGER: Duration = Duration::from_millis(500);
/// Frames without an answer that are taken at once, and how fast there are more.
const TOKENS: f64 = 200.0;
const TOKENS_PER_SECOND: f64 = 100.0;

/// Why a session ended: a code for the peer and words for people.
#[derive(Debug, Clone)]
pub(crate) struct End {
    code: Option<u16>,
    why: Arc<str>,
}

impl End {
    /// The socket is gone: nobody can be told.
    pub(crate) fn gone(why: impl Into<Arc<str>>) -> Self {
        Self {
            code: None,
            why: why.into(),
        }
    }

    /// Closed by us, and said so.
    pub(crate) fn close(code: u16, why: impl Into<Arc<str>>) -> Self {
        Self {
            code: Some(code),
            why: why.into(),
        }
    }
}

/// What a dialect reaches while it takes a frame.
pub(crate) struct Here<'a> {
    /// The plane.
    pub(crate) app: &'a App,
    /// The link.
    pub(crate) link: &'a Arc<Link>,
}

impl Here<'_> {
    /// Tells the engine, when its lane has room; until then the socket is not read.
    ///
    /// # Errors
    /// When nobody decides here any more.
    pub(crate) async fn tell(&self, event: FleetEvent) -> Result<(), End> {
        let told = self.app.driver.tell_in_turn(wrap(event)).await;
        told.map_err(|gone| End::close(close_code::AWAY, gone.to_string()))
    }

    /// Asks the engine and waits for its answer.
    ///
    /// # Errors
    /// When nobody decides here any more.
    pub(crate) async fn ask(
        &self,
        make: impl FnOnce(Waiter) -> FleetEvent,
    ) -> Result<FleetReply, End> {
        ask(self.app, make).await
    }

    /// Answers a request of the node, if it awaits one.
    pub(crate) async fn reply(&self, id: Option<String>, data: Value) {
        if let Some(id) = id {
            let ok = true;
            self.link.answer(PlaneFrame::Reply { id, ok, data }).await;
        }
    }

    /// Refuses a request of the node. One without an id gets one that it cannot know.
    pub(crate) async fn refuse(&self, id: Option<String>, code: &str, message: &str) {
        self.link.answer(error(id, code, message)).await;
    }
}

fn wrap(event: FleetEvent) -> Event {
    Event::Fleet(Box::new(event))
}

async fn ask(app: &App, make: impl FnOnce(Waiter) -> FleetEvent) -> Result<FleetReply, End> {
    match app.driver.ask(|waiter| wrap(make(waiter))).await {
        Ok(Reply::Fleet(reply)) => Ok(*reply),
        Ok(other) => {
            tracing::error!(reply = ?other, "a node's frame was answered with something else");
            Err(End::close(close_code::ERROR, "a fault of the plane"))
        }
        Err(gone) => Err(End::close(close_code::AWAY, gone.to_string())),
    }
}

fn error(id: Option<String>, code: &str, message: &str) -> PlaneFrame {
    PlaneFrame::Error {
        id: id.unwrap_or_else(|| muster_wire::mint("err")),
        ok: false,
        code: code.to_owned(),
        message: message.to_owned(),
    }
}

/// Serves a control socket until it ends.
pub(crate) async fn serve(
    app: App,
    admitted: Admitted,
    plane_url: Arc<str>,
    mut socket: WebSocket,
) {
    let node = &admitted.node;
    let end = match introduce(&app, node, &mut socket).await {
        Ok(introduction) => open(&app, &admitted, plane_url, introduction, &mut socket).await,
        Err(end) => end,
    };
    tracing::debug!(node.id = %node, reason = %end.why, "a node's socket ended");
    if let Some(code) = end.code {
        close(socket, code, &end.why).await;
    }
}

/// Waits for the first frame, which says who it is.
async fn introduce(app: &App, node: &NodeId, socket: &mut WebSocket) -> Result<Introduction, End> {
    let late = || End::close(close_code::POLICY, "no node.register within 10 s");
    let until = Instant::now() + REGISTER_MAX;
    loop {
        let message = tokio::select! {
            message = tokio::time::timeout_at(until, socket.recv()) => message.map_err(|_| late())?,
            () = app.stop.cancelled() => return Err(leaving()),
        };
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Binary(_))) => Utf8Bytes::default(),
            Some(Ok(Message::Close(_))) | None => {
                return Err(End::gone("it left before it registered"));
            }
            Some(Err(error)) => return Err(broke(&error, FRAME_MAX)),
        };
        let refusal = match read_node_frame(&text) {
            Ok(NodeFrame::Register { node_id, id, .. }) if node_id != node.as_str() => {
                let message = "this token belongs to another node_id";
                let _ = say(socket, &error(id, "node_id_mismatch", message)).await;
                return Err(End::close(close_code::POLICY, message));
            }
            Ok(register @ NodeFrame::Register { .. }) => match Introduction::read(register) {
                Ok(introduction) => return Ok(introduction),
                Err((id, message)) => error(id, "invalid_message", &message),
            },
            Ok(_) => error(
                id_of(&text),
                "not_registered",
                "the first frame is node.register",
            ),
            Err(why) => invalid(&text, &why),
        };
        say(socket, &refusal).await?;
    }
}

/// Asks the engine to take the link and, when it does, carries its frames until it ends.
async fn open(
    app: &App,
    admitted: &Admitted,
    plane_url: Arc<str>,
    introduction: Introduction,
    socket: &mut WebSocket,
) -> End {
    let (node, kind) = (admitted.node.clone(), introduction.kind());
    let (link, commands) = app.fleet.links.open(node, kind, plane_url);
    let opened = Opened {
        app,
        link: link.clone(),
        why: "its session was dropped".into(),
        refused: false,
    };
    let hello = |waiter| FleetEvent::LinkOpened(Box::new(introduction.hello(app, waiter, &link)));
    let answer = ask(app, hello).await;
    let refused = matches!(&answer, Ok(answer) if !matches!(answer, FleetReply::LinkTaken));
    let end = match answer {
        Ok(FleetReply::LinkTaken) => {
            app.fleet.links.taken(&link);
            let reply = introduction.registered(app);
            match say(socket, &reply).await {
                Ok(()) => tokio::select! {
                    biased;
                    why = admitted.until_over(app) => End::close(close_code::POLICY, why.ended()),
                    end = carry(app, &link, introduction.into_dialect(), socket, commands) => end,
                },
                Err(end) => end,
            }
        }
        Ok(FleetReply::LinkRefused { code, message }) => {
            let _ = say(socket, &error(introduction.id(), code, &message)).await;
            match code {
                // The word by which a node knows that it need not come back.
                "superseded" => End::close(close_code::NORMAL, code),
                _ => End::close(close_code::POLICY, message),
            }
        }
        Ok(_) => {
            let message = "no such node is enrolled here";
            let _ = say(socket, &error(introduction.id(), "node_not_found", message)).await;
            End::close(close_code::POLICY, message)
        }
        Err(end) => end,
    };
    opened.ended(&end, refused);
    end
}

/// A link that is open for the engine, for as long as this lives.
struct Opened<'a> {
    app: &'a App,
    link: Arc<Link>,
    why: Arc<str>,
    /// The engine never took it.
    refused: bool,
}

impl Opened<'_> {
    fn ended(mut self, end: &End, refused: bool) {
        self.why = end.why.clone();
        self.refused = refused;
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.app.fleet.links.ended(&self.link, &self.why);
        if self.refused {
            return;
        }
        self.app.driver.tell(wrap(FleetEvent::LinkClosed {
            node: self.link.node.clone(),
            link: self.link.id,
            why: self.why.clone(),
        }));
    }
}

/// Reads and writes at once; the first of the two that ends, ends both.
async fn carry(
    app: &App,
    link: &Arc<Link>,
    dialect: Dialect,
    socket: &mut WebSocket,
    commands: mpsc::Receiver<Command>,
) -> End {
    let (mut sink, mut stream) = socket.split();
    let here = Here { app, link };
    let end = tokio::select! {
        biased;
        (code, why) = link.closed() => End::close(code, why),
        () = app.stop.cancelled() => leaving(),
        end = write(&here, &dialect, &mut sink, commands) => end,
        end = read(&here, &dialect, &mut stream) => end,
    };
    end
}

async fn read(here: &Here<'_>, dialect: &Dialect, stream: &mut SplitStream<&mut WebSocket>) -> End {
    let restored = here.app.driver.restored();
    let mut bucket = Bucket::new();
    loop {
        let message = match timeout(dialect.idle_max(), stream.next()).await {
            Ok(message) => message,
            Err(_) => {
                let idle = dialect.idle_max();
                return End::close(
                    close_code::POLICY,
                    format!("nothing was heard for {idle:?}"),
                );
            }
        };
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                bucket.take().await;
                continue;
            }
            Some(Ok(Message::Binary(_))) => Utf8Bytes::default(),
            Some(Ok(Message::Close(frame))) => return End::gone(closed_by_peer(frame)),
            Some(Err(error)) => return broke(&error, FRAME_MAX),
            None => return End::gone("the connection ended without a close"),
        };
        if here.app.driver.restored() != restored {
            // The engine was rebuilt and knows no link that was open before.
            return End::close(
                close_code::AGAIN,
                "the plane's engine was rebuilt: come back",
            );
        }
        let (frame, unread) = match read_node_frame_by_item(&text) {
            Ok(read) => read,
            Err(why) => {
                bucket.take().await;
                here.link.answer(invalid(&text, &why)).await;
                continue;
            }
        };
        drop(text);
        if !dialect.awaits_engine(&frame) {
            bucket.take().await;
        }
        if let Err(end) = dialect.take(here, frame, unread).await {
            return end;
        }
    }
}

async fn write(
    here: &Here<'_>,
    dialect: &Dialect,
    sink: &mut SplitSink<&mut WebSocket, Message>,
    mut commands: mpsc::Receiver<Command>,
) -> End {
    while let Some(command) = commands.recv().await {
        let Some(frame) = dialect.put(here, command).await else {
            continue;
        };
        let text = Message::Text(write_frame(&frame).into());
        match timeout(WRITE_MAX, sink.send(text)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return End::gone(format!("the connection broke: {error}")),
            Err(_) => return End::gone(format!("it took nothing for {WRITE_MAX:?}")),
        }
    }
    End::close(close_code::NORMAL, "closed")
}

/// Writes one frame before there is a queue.
async fn say(socket: &mut WebSocket, frame: &PlaneFrame) -> Result<(), End> {
    let text = Message::Text(write_frame(frame).into());
    match timeout(WRITE_MAX, socket.send(text)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(End::gone(format!("the connection broke: {error}"))),
        Err(_) => Err(End::gone(format!("it took nothing for {WRITE_MAX:?}"))),
    }
}

/// The end of a socket that cannot be read any more. Who sent too much at once is told so.
fn broke(error: &axum::Error, most: usize) -> End {
    if is_too_large(error) {
        return End::close(close_code::SIZE, too_large(most));
    }
    End::gone(format!("the connection broke: {error}"))
}

/// Whether a frame was larger than it may be.
pub(crate) fn is_too_large(error: &axum::Error) -> bool {
    // The library's own error lies under axum's, which has no words of its own.
    error.to_string().contains("too long")
}

/// What is said to whoever sent too much at once.
pub(crate) fn too_large(most: usize) -> String {
    format!("a frame here has at most {} KiB", most / 1024)
}

fn leaving() -> End {
    End::close(close_code::AWAY, "the control plane is shutting down")
}

/// The answer to a frame that cannot be read: where the fault is, never what was there.
fn invalid(text: &str, why: &serde_json::Error) -> PlaneFrame {
    let message = if text.is_empty() {
        "frames are JSON text".to_owned()
    } else {
        format!("the frame cannot be read: {}", wrong(text, why))
    };
    error(id_of(text), "invalid_message", &message)
}

/// What is wrong with a frame, without what it says. A value of a known shape that does not fit
/// has no place that the parser knows.
fn wrong(text: &str, why: &serde_json::Error) -> String {
    #[derive(serde::Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        _kind: String,
    }
    if why.is_syntax() || why.is_eof() {
        return format!("no JSON at line {}, column {}", why.line(), why.column());
    }
    if serde_json::from_str::<Typed>(text).is_err() {
        return "it is no object with a text \"type\"".into();
    }
    let said = why.to_string();
    // Names of fields are ours; what was found is not repeated.
    match said.split_once("missing field `") {
        Some((_, rest)) => {
            let field = rest.split('`').next().unwrap_or_default();
            format!("the field {field:?} is missing")
        }
        None => match said.rsplit_once(", expected ") {
            Some((_, expected)) => {
                let expected = expected.split(" at line").next().unwrap_or_default();
                format!("a field has another type than its own, which is {expected}")
            }
            None => "a field has another type than its own".into(),
        },
    }
}

/// The id of a frame that is otherwise unreadable.
fn id_of(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Envelope {
        id: Option<String>,
    }
    let envelope: Option<Envelope> = serde_json::from_str(text).ok();
    envelope
        .and_then(|envelope| envelope.id)
        .filter(|id| id.len() <= 256)
}

fn closed_by_peer(frame: Option<CloseFrame>) -> String {
    match frame {
        Some(frame) if !frame.reason.is_empty() => {
            let reason: String = frame.reason.chars().take(120).collect();
            format!("the node closed it: {} {reason:?}", frame.code)
        }
        Some(frame) => format!("the node closed it: {}", frame.code),
        None => "the node closed it".into(),
    }
}

async fn close(mut socket: WebSocket, code: u16, why: &str) {
    // A close frame has room for 123 bytes of text.
    let end = (0..=why.len().min(120))
        .rev()
        .find(|at| why.is_char_boundary(*at));
    let frame = CloseFrame {
        code,
        reason: Utf8Bytes::from(&why[..end.unwrap_or(0)]),
    };
    let said = async {
        socket.send(Message::Close(Some(frame))).await?;
        loop {
            match socket.recv().await {
                Some(Ok(Message::Close(_))) | None => break,
                Some(Ok(_)) => {}
                // What it sent too much of stays unread: it has a moment to read why.
                Some(Err(_)) => {
                    tokio::time::sleep(LINGER).await;
                    break;
                }
            }
        }
        Ok::<_, axum::Error>(())
    };
    let _ = timeout(CLOSE_MAX, said).await;
}

/// How many frames that ask for no answer may still be taken now.
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn new() -> Self {
        Self {
            tokens: TOKENS,
            at: Instant::now(),
        }
    }

    /// Takes a token; waits for one when there is none.
    async fn take(&mut self) {
        let now = Instant::now();
        let grown = now.duration_since(self.at).as_secs_f64() * TOKENS_PER_SECOND;
        self.tokens = (self.tokens + grown).min(TOKENS);
        self.at = now;
        if self.tokens < 1.0 {
            let wait = (1.0 - self.tokens) / TOKENS_PER_SECOND;
            tokio::time::sleep(Duration::from_secs_f64(wait)).await;
        }
        self.tokens -= 1.0;
    }
}

/// Text of a node as it may be kept: bounded, and without what a terminal would act on.
pub(crate) fn plain(text: &str, most: usize) -> Arc<str> {
    let fine = |c: &char| !c.is_control();
    text.chars()
        .filter(fine)
        .take(most)
        .collect::<String>()
        .into()
}

/// The event of a first frame, with what every dialect shares.
pub(crate) fn hello_of(waiter: Waiter, link: &Link, register: &NodeFrame) -> Hello {
    let NodeFrame::Register {
        name,
        capabilities,
        max_agents,
        tags,
        version,
        ..
    } = register
    else {
        unreachable!("only a register introduces a node");
    };
    let cut = |text: &str| plain(text, 256);
    Hello {
        waiter,
        node: link.node.clone(),
        link: link.id,
        name: cut(name),
        kind: link.kind,
        labels: tags
            .iter()
            .map(|tag| plain(tag, 128))
            .filter(|tag| !tag.is_empty())
            .take(64)
            .collect(),
        max_workers: *max_agents,
        capabilities: capabilities
            .iter()
            .take(256)
            .map(|capability| cut(&capability.name))
            .collect(),
        version: cut(version),
        host: None,
        epoch: None,
        beat_interval: Duration::from_secs(12),
        proves: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_taken_no_faster_than_the_bucket_fills() {
        let mut bucket = Bucket::new();
        let began = Instant::now();
        for _ in 0..TOKENS as u32 {
            bucket.take().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..100 {
            bucket.take().await;
        }
        let took = began.elapsed().as_secs_f64();
        assert!((0.9..1.2).contains(&took), "{took}");
    }

    #[test]
    fn an_unreadable_frame_is_answered_with_its_id_and_without_its_text() {
        let text = r#"{"v":1,"type":"muster.beat","id":"beat_7","seq":"canary"}"#;
        let why = read_node_frame(text).unwrap_err();
        let PlaneFrame::Error {
            id, code, message, ..
        } = invalid(text, &why)
        else {
            panic!("no error");
        };
        assert_eq!((id.as_str(), code.as_str()), ("beat_7", "invalid_message"));
        assert!(!message.contains("canary"));
        assert!(message.contains("another type"), "{message}");
        for (text, says) in [
            (r#"{"type":"muster.beat","id":"b"}"#, "\"seq\" is missing"),
            ("{", "no JSON at line 1, column 1"),
            ("[]", "no object with a text"),
            ("{}", "no object with a text"),
            (r#"{"type":7}"#, "no object with a text"),
        ] {
            let PlaneFrame::Error { message, .. } =
                invalid(text, &read_node_frame(text).unwrap_err())
            else {
                panic!("no error");
            };
            assert!(message.contains(says), "{text}: {message}");
            assert!(!message.contains("line 0"), "{text}: {message}");
        }
        assert_eq!(id_of("nonsense"), None);
    }
}
