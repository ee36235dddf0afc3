//! One control socket, from its first frame to its close. Knows sockets, deadlines and the queue;
//! what a frame means is its dialect's, what follows from it the engine's.
//!
//! A frame that asks for an answer is answered before the next one is read, and frames that ask
//! for none cost a token of a small bucket: a node that floods is not read, and nobody else
//! notices.

mod bucket;
mod end;
mod hello;
mod unreadable;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use muster_engine::event::Waiter;
use muster_engine::fleet::{FleetEvent, FleetReply};
use muster_engine::{Event, Reply};
use muster_wire::NodeId;
use muster_wire::fleet::frame::{
    NodeFrame, PlaneFrame, read_node_frame, read_node_frame_by_item, write_frame,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use self::bucket::Bucket;
pub(crate) use self::end::{End, LINGER, is_too_large, too_large};
use self::end::{broke, close, closed_by_peer, leaving};
pub(crate) use self::hello::{hello_of, plain};
use self::unreadable::{error, id_of, invalid};
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
