//! Serves daemons and viewers over the holder's socket. A connection that controls never carries
//! output; one that watches carries nothing else, follows the ring at its own pace, and is
//! repainted when the ring has overtaken it. Nobody's slowness reaches the worker.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use muster_wire::fleet::ExitReport;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::held::{Again, Held, Over, Restarted, Wish};
use super::protocol::{Ask, CHUNK_MAX, Frame, FrameReader, Role, Tell, VERSION, write};
use crate::ring::RING_BYTES;
use crate::screen::Size;

/// At most so many connections; the next is closed at once.
const CONNECTIONS_MAX: usize = 64;
/// Answers to one daemon that wait to be written; a daemon that does not read is not asked for
/// more.
const REPLIES_MAX: usize = 64;

/// Accepts connections, for ever.
pub(crate) async fn serve(held: Rc<Held>, listener: UnixListener) {
    let own = rustix::process::geteuid().as_raw();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let is_own = stream
                    .peer_cred()
                    .is_ok_and(|peer| peer.uid() == own || peer.uid() == 0);
                if is_own && *held.connections.borrow() < CONNECTIONS_MAX {
                    held.connections.send_modify(|count| *count += 1);
                    spawn_local(connection(held.clone(), stream));
                }
            }
            // Out of descriptors, perhaps; it passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn connection(held: Rc<Held>, stream: UnixStream) {
    // An error is a daemon that went away: it comes again, or another.
    let _ = converse(&held, stream).await;
    held.connections.send_modify(|count| *count -= 1);
}

async fn converse(held: &Rc<Held>, stream: UnixStream) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let mut from = FrameReader::of(from);
    let first = timeout(Duration::from_secs(5), from.next::<Ask>()).await??;
    let Some(Frame::Message(Ask::Hello { role, .. })) = first else {
        return Ok(());
    };
    let build = env!("CARGO_PKG_VERSION").to_owned();
    let hello = Tell::Hello {
        version: VERSION,
        build,
    };
    write(&mut to, &Frame::Message(hello)).await?;
    match role {
        Role::Control => {
            let (replies, waiting) = mpsc::channel(REPLIES_MAX);
            tokio::select! {
                told = tell(held, to, waiting) => told,
                heard = hear(held, from, replies) => heard,
            }
        }
        Role::Watch => tokio::select! {
            shown = show(held, to) => shown,
            left = leave(from) => left,
        },
    }
}

/// Writes the state, the exits and the answers, as they come.
async fn tell(
    held: &Held,
    mut to: OwnedWriteHalf,
    mut replies: mpsc::Receiver<Frame<Tell>>,
) -> io::Result<()> {
    let mut state = held.state.subscribe();
    let mut exits = held.exits.subscribe();
    state.mark_changed();
    exits.mark_changed();
    let mut over = held.over.subscribe();
    over.mark_changed();
    let mut next_exit = 0;
    loop {
        tokio::select! {
            biased;
            // The exits before the state: whoever sees the end has seen why.
            _ = exits.changed() => {
                for record in held.untold_from(next_exit) {
                    next_exit = record.number + 1;
                    write(&mut to, &Frame::Message(Tell::Exited { record })).await?;
                }
            }
            _ = state.changed() => {
                let state = state.borrow_and_update().clone();
                write(&mut to, &Frame::Message(Tell::State { state })).await?;
            }
            _ = over.changed() => {
                let over = over.borrow_and_update().clone();
                if let Some(Over { exit, stuck }) = over {
                    write(&mut to, &Frame::Message(Tell::Over { exit, stuck })).await?;
                }
            }
            reply = replies.recv() => match reply {
                Some(reply) => write(&mut to, &reply).await?,
                None => return Ok(()),
            },
        }
    }
}

/// Reads what a daemon asks and sees to it.
async fn hear(
    held: &Rc<Held>,
    mut from: FrameReader<OwnedReadHalf>,
    replies: mpsc::Sender<Frame<Tell>>,
) -> io::Result<()> {
    while let Some(frame) = from.next::<Ask>().await? {
        match frame {
            Frame::Message(Ask::Release { id, grace_ms }) => {
                let grace = grace_ms.map_or(held.boot.stop_grace, Duration::from_millis);
                held.wish_for(Wish {
                    grace,
                    reason: None,
                });
                spawn_local(answer_release(held.clone(), id, replies.clone()));
            }
            Frame::Message(Ask::Restart {
                id,
                grace_ms,
                reason,
            }) => {
                let grace = grace_ms.map_or(held.boot.stop_grace, Duration::from_millis);
                let reason = reason.unwrap_or_else(|| "restarted by hand".to_owned());
                let answer = held.ask_again(Again { grace, reason });
                spawn_local(answer_restart(held.clone(), id, answer, replies.clone()));
            }
            Frame::Message(Ask::Tail { id }) => {
                let (_, bytes) = held.output.borrow().ring.from(0, RING_BYTES);
                // Nobody is there any more to read it: the connection ends.
                let _ = replies.send(Frame::Tail { id, bytes }).await;
            }
            Frame::Message(Ask::Resize { id, rows, cols }) => {
                let reply = match held.resize(Size::clamped((rows, cols))) {
                    Ok(()) => Tell::Done { id },
                    Err(message) => Tell::Refused { id, message },
                };
                let _ = replies.send(Frame::Message(reply)).await;
            }
            Frame::Message(Ask::Told { number }) => held.told(number),
            Frame::Input { id, bytes } => {
                let (written, heard) = oneshot::channel();
                // A full queue drops the sender: 0 bytes.
                let _ = held.typed.try_send((bytes, Some(written)));
                let replies = replies.clone();
                spawn_local(async move {
                    let bytes = heard.await.unwrap_or(0) as u64;
                    let _ = replies
                        .send(Frame::Message(Tell::Typed { id, bytes }))
                        .await;
                });
            }
            Frame::Message(Ask::Hello { .. } | Ask::Other)
            | Frame::Output { .. }
            | Frame::Painted { .. }
            | Frame::Tail { .. }
            | Frame::Unknown => {}
        }
    }
    Ok(())
}

async fn answer_release(held: Rc<Held>, id: u64, replies: mpsc::Sender<Frame<Tell>>) {
    let (mut over, mut stuck) = (held.over.subscribe(), held.stuck.subscribe());
    let over = tokio::select! {
        over = over.wait_for(Option::is_some) => over.ok().and_then(|over| over.clone()),
        _ = stuck.wait_for(|stuck| !stuck.is_empty()) => None,
    };
    let reply = match over {
        Some(Over { exit, stuck }) if stuck.is_empty() => Tell::Released { id, exit },
        Some(Over { stuck, .. }) => refused(id, &stuck),
        None => refused(id, &held.stuck.borrow()),
    };
    // A daemon that is gone asks again.
    let _ = replies.send(Frame::Message(reply)).await;
}

async fn answer_restart(
    held: Rc<Held>,
    id: u64,
    answer: oneshot::Receiver<Restarted>,
    replies: mpsc::Sender<Frame<Tell>>,
) {
    let mut stuck = held.stuck.subscribe();
    let reply = tokio::select! {
        biased;
        answer = answer => match answer {
            Ok(Ok(output)) => Tell::Restarted { id, output },
            Ok(Err(message)) => Tell::Refused { id, message },
            // The holder ends; so does this connection.
            Err(_) => return,
        },
        _ = stuck.wait_for(|stuck| !stuck.is_empty()) => refused(id, &held.stuck.borrow()),
    };
    // A daemon that is gone hears of the worker when it is back.
    let _ = replies.send(Frame::Message(reply)).await;
}

fn refused(id: u64, stuck: &[u32]) -> Tell {
    let message = format!(
        "these processes of it are still there after SIGKILL: {stuck:?}; they wait in the kernel, \
         most often for a disk or a network file system"
    );
    Tell::Refused { id, message }
}

/// Writes the screen and then what follows it. Only this connection waits for its reader.
async fn show(held: &Held, mut to: OwnedWriteHalf) -> io::Result<()> {
    let mut grown = held.grown.subscribe();
    let mut over = held.over.subscribe();
    let mut place = {
        let (frame, place) = painted(held, None);
        to.write_all(&frame.encode()).await?;
        place
    };
    loop {
        let (start, end) = {
            let output = held.output.borrow();
            (output.ring.start(), output.ring.end())
        };
        if start > place {
            let (frame, next) = painted(held, Some(place));
            to.write_all(&frame.encode()).await?;
            place = next;
        } else if end > place {
            let (offset, bytes) = held.output.borrow().ring.from(place, CHUNK_MAX);
            place = offset + bytes.len() as u64;
            let frame: Frame<Tell> = Frame::Output { offset, bytes };
            to.write_all(&frame.encode()).await?;
        } else if let Some(over) = over.borrow().as_ref() {
            let reason = closing_words(over);
            let last = Frame::Message(Tell::Closed { reason });
            return to.write_all(&last.encode()).await;
        } else {
            tokio::select! {
                _ = grown.changed() => {}
                _ = over.changed() => {}
            }
        }
    }
}

/// The screen as it is, and the place in the output that it shows. With pipes what is kept of
/// the output follows instead.
fn painted(held: &Held, missed_from: Option<u64>) -> (Frame<Tell>, u64) {
    let output = held.output.borrow();
    let size = held.size();
    let (screen, offset) = match &output.screen {
        Some(screen) => (screen.repaint(), output.ring.end()),
        None => (Vec::new(), output.ring.start()),
    };
    let frame = Frame::Painted {
        rows: size.rows,
        cols: size.cols,
        offset,
        dropped: missed_from.map_or(0, |from| offset.saturating_sub(from)),
        screen,
    };
    (frame, offset)
}

fn closing_words(over: &Over) -> String {
    let ExitReport {
        code,
        signal,
        reason,
        ..
    } = &over.exit;
    match (code, signal, reason) {
        (Some(code), _, _) => format!("the worker exited with code {code}"),
        (None, Some(signal), _) => format!("the worker was ended by signal {signal}"),
        (None, None, Some(reason)) => format!("the worker ended: {reason}"),
        (None, None, None) => "the worker ended".to_owned(),
    }
}

/// Waits until a viewer has gone.
async fn leave(mut from: FrameReader<OwnedReadHalf>) -> io::Result<()> {
    while from.next::<Ask>().await?.is_some() {}
    Ok(())
}
