//! Attaches to a worker: a connection of its own for what it prints, the holder's control for
//! what is typed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::core::Core;
use super::link::{Connection, connect};
use crate::attachment::{
    AttachError, Attachment, AttachmentControl, AttachmentNews, AttachmentOutput,
};
use crate::holder::protocol::{Frame, Role, Tell};

/// At most so much news of at most 64 KiB waits for one viewer; then its holder waits, and later
/// drops output for it.
const NEWS_MAX: usize = 8;

pub(crate) async fn watch(core: &Arc<Core>, worker: &str) -> Result<Attachment, AttachError> {
    let broken = |what: String| AttachError::Broken(what);
    let seen = core.look(worker, |worker| {
        let is_open = worker.last.is_none();
        is_open.then(|| (worker.requests.subscribe(), worker.state.has_terminal()))
    });
    let Some(Some((mut requests, has_terminal))) = seen else {
        return Err(AttachError::UnknownWorker);
    };
    let met = timeout(Duration::from_secs(10), requests.wait_for(Option::is_some)).await;
    let way = met.ok().and_then(Result::ok).and_then(|way| way.clone());
    let way = way.ok_or_else(|| broken("it is not connected".into()))?;
    let connection = connect(&core.dir(worker), Role::Watch).await;
    let mut connection = connection.map_err(|error| broken(error.to_string()))?;
    let first = timeout(Duration::from_secs(10), connection.from.next::<Tell>()).await;
    let Ok(Ok(Some(Frame::Painted {
        rows,
        cols,
        offset,
        screen,
        ..
    }))) = first
    else {
        return Err(broken("it sent no screen".into()));
    };
    let (news, heard) = mpsc::channel(NEWS_MAX);
    tokio::spawn(read(connection, news));
    Ok(Attachment {
        screen,
        rows,
        cols,
        offset,
        output: AttachmentOutput::of(heard),
        control: AttachmentControl::of(way, has_terminal),
    })
}

async fn read(mut connection: Connection, news: mpsc::Sender<AttachmentNews>) {
    loop {
        let frame = tokio::select! {
            frame = connection.from.next::<Tell>() => frame,
            () = news.closed() => return,
        };
        let next = match frame {
            Ok(Some(Frame::Output { offset, bytes })) => AttachmentNews::Output { offset, bytes },
            Ok(Some(Frame::Painted {
                rows,
                cols,
                offset,
                dropped,
                screen,
            })) => AttachmentNews::Gap {
                dropped,
                rows,
                cols,
                offset,
                screen,
            },
            Ok(Some(Frame::Message(Tell::Closed { reason }))) => AttachmentNews::Closed { reason },
            Ok(Some(
                Frame::Message(_) | Frame::Input { .. } | Frame::Tail { .. } | Frame::Unknown,
            )) => continue,
            Ok(None) | Err(_) => AttachmentNews::Closed {
                reason: "the worker's holder went away".into(),
            },
        };
        let is_last = matches!(next, AttachmentNews::Closed { .. });
        if news.send(next).await.is_err() || is_last {
            return;
        }
    }
}
