//! How many bytes of bodies are in memory, all together. When there is no room, a callback
//! waits as long as its sender, all else waits five seconds and is then refused.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, SizeHint};
use muster_wire::Category;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::problem::Problem;

/// All bodies together.
pub const TOTAL_MAX: usize = 256 * 1024 * 1024;
/// Bodies up to this size are not counted one by one: what is in flight is bounded elsewhere.
pub const SMALL: usize = 64 * 1024;
/// How much of a refused body is taken so that its sender sees the answer.
const DISCARDED_MAX: usize = 256 * 1024 * 1024;
/// Permits are handed out in pieces of this size.
const PIECE: usize = 4 * 1024;

/// Who brings a body: decides how long it waits for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// A callback: its sender waits 30 seconds and comes back.
    Callback,
    /// Everything else.
    Usual,
}

impl Patience {
    fn wait(self) -> Duration {
        match self {
            Patience::Callback => Duration::from_secs(29),
            Patience::Usual => Duration::from_secs(5),
        }
    }
}

/// The room for bodies.
#[derive(Debug, Clone)]
pub struct BodyRoom(Arc<Semaphore>);

impl Default for BodyRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TOTAL_MAX / PIECE)))
    }
}

/// A body in memory; its room is given back when it is dropped.
#[derive(Debug, Default)]
pub struct Held {
    /// The bytes.
    pub bytes: Bytes,
    room: Option<OwnedSemaphorePermit>,
}

/// Why a body was not read.
#[derive(Debug)]
pub enum NotRead {
    /// It is over its limit; the first bytes are here.
    TooLarge(Bytes),
    /// It was cut short or the connection broke.
    Cut(String),
    /// There was no room for it.
    NoRoom,
    /// It came too slowly.
    Slow,
}

impl BodyRoom {
    /// Reads a whole body of at most `limit` bytes. One that is announced as larger is refused
    /// at once; what still comes of it is the connection's business.
    ///
    /// # Errors
    /// Says which bound it met.
    pub async fn read<B>(
        &self,
        mut body: B,
        limit: usize,
        patience: Patience,
    ) -> Result<Held, NotRead>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let hint = body.size_hint();
        let announced = announced(&hint);
        let mut held = Held::default();
        let end = if announced > limit as u64 {
            // Known before any of it came, except that a callback's beginning is kept.
            Err(NotRead::TooLarge(match patience {
                Patience::Callback => start_of(&mut body).await,
                Patience::Usual => Bytes::new(),
            }))
        } else {
            if announced > SMALL as u64 {
                self.grow(&mut held, announced as usize, patience).await?;
            }
            self.fill(&mut body, limit, patience, &mut held).await
        };
        if let (Err(NotRead::TooLarge(_)), Patience::Callback) = (&end, patience) {
            discard(&mut body).await;
        }
        end.map(|()| held)
    }

    async fn fill<B>(
        &self,
        body: &mut B,
        limit: usize,
        patience: Patience,
        held: &mut Held,
    ) -> Result<(), NotRead>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let mut first: Option<Bytes> = None;
        let mut all = BytesMut::new();
        let mut counted = held.counted();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| NotRead::Cut(error.to_string()))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let so_far = all.len() + first.as_ref().map_or(0, Bytes::len);
            let size = so_far + data.len();
            if size > limit {
                let mut kept = first.map_or_else(BytesMut::new, BytesMut::from);
                kept.extend_from_slice(&all);
                kept.extend_from_slice(&data);
                kept.truncate(crate::dispatch::answer::KEPT_MAX);
                return Err(NotRead::TooLarge(kept.freeze()));
            }
            if size > SMALL && size > counted {
                let more = (size - counted).max(SMALL);
                self.grow(held, more, patience).await?;
                counted += more;
            }
            match first.take() {
                None if all.is_empty() => first = Some(data),
                None => all.extend_from_slice(&data),
                Some(start) => {
                    all.reserve(start.len() + data.len());
                    all.extend_from_slice(&start);
                    all.extend_from_slice(&data);
                }
            }
        }
        held.bytes = first.unwrap_or_else(|| all.freeze());
        Ok(())
    }

    async fn grow(&self, held: &mut Held, bytes: usize, patience: Patience) -> Result<(), NotRead> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX);
        let wanted = self.0.clone().acquire_many_owned(pieces);
        let permit = tokio::time::timeout(patience.wait(), wanted)
            .await
            .map_err(|_| NotRead::NoRoom)?
            .map_err(|_| NotRead::NoRoom)?;
        match &mut held.room {
            Some(room) => room.merge(permit),
            None => held.room = Some(permit),
        }
        Ok(())
    }
}

impl Held {
    fn counted(&self) -> usize {
        self.room
            .as_ref()
            .map_or(0, |room| room.num_permits() * PIECE)
    }
}

/// The first piece of a body that will not be read.
async fn start_of<B>(body: &mut B) -> Bytes
where
    B: Body<Data = Bytes> + Unpin,
{
    let first = body
        .frame()
        .await
        .and_then(|frame| frame.ok()?.into_data().ok());
    let first = first.unwrap_or_default();
    first.slice(..first.len().min(crate::dispatch::answer::KEPT_MAX))
}

/// Takes what still comes of a body that is refused, up to a bound: a sender whose connection
/// is cut while it writes never sees the answer.
async fn discard<B>(body: &mut B)
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut taken = 0;
    while taken < DISCARDED_MAX {
        match body.frame().await {
            Some(Ok(frame)) => taken += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => return,
        }
    }
}

fn announced(hint: &SizeHint) -> u64 {
    hint.exact().unwrap_or_else(|| hint.lower())
}

impl NotRead {
    /// The answer to a request whose body was not read.
    pub fn problem(&self, limit: usize) -> Problem {
        match self {
            NotRead::TooLarge(_) => Problem::new(
                Category::TooLarge,
                format!("the body is over the limit of {limit} bytes; send less, or raise server.max_body"),
            )
            .details(serde_json::json!({ "max_bytes": limit })),
            NotRead::Cut(_) => Problem::validation("the body ended before its announced length"),
            NotRead::NoRoom => Problem::new(
                Category::Overloaded,
                "too many large bodies are on their way; try again later",
            )
            .retry_after(5),
            NotRead::Slow => Problem::validation("the body came too slowly"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    async fn read(room: &BodyRoom, size: usize, limit: usize) -> Result<Held, NotRead> {
        let body = Full::new(Bytes::from(vec![b'x'; size]));
        room.read(body, limit, Patience::Usual).await
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit_and_gives_its_room_back() {
        let room = BodyRoom::default();
        let before = room.0.available_permits();
        let held = read(&room, 100 * 1024, 100 * 1024).await.unwrap();
        assert_eq!(held.bytes.len(), 100 * 1024);
        assert!(room.0.available_permits() < before);
        drop(held);
        assert_eq!(room.0.available_permits(), before);
        assert!(matches!(
            read(&room, 11, 10).await,
            Err(NotRead::TooLarge(_))
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn without_room_the_usual_body_is_refused_after_five_seconds() {
        let room = BodyRoom::default();
        let all = u32::try_from(TOTAL_MAX / PIECE).unwrap();
        let _all = room.0.clone().acquire_many_owned(all).await.unwrap();
        assert!(matches!(
            read(&room, 100 * 1024, 1024 * 1024).await,
            Err(NotRead::NoRoom)
        ));
        assert!(read(&room, 100, 1024).await.is_ok(), "small ones pass");
    }
}
