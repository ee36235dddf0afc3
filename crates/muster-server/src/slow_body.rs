//! A request body that may not dawdle: each piece has its time, and so has the whole. A sender
//! that is slower is cut off with an error; one that is quick pays nothing, not even a timer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

/// How long the next piece may take.
pub(crate) const PIECE_MAX: Duration = Duration::from_secs(15);
/// How long the whole may take.
pub(crate) const WHOLE_MAX: Duration = Duration::from_secs(120);
/// How long what comes after the answer is still taken, and how long its next piece may take.
const DISCARD_MAX: Duration = Duration::from_secs(30);
const DISCARD_PIECE_MAX: Duration = Duration::from_secs(1);

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SlowBodyError<E> {
    /// It came too slowly.
    #[error("the body came too slowly")]
    Slow,
    /// The connection failed.
    #[error(transparent)]
    Inner(E),
}

/// What is left of a connection's body when nobody reads it any more.
pub(crate) struct Rest<B> {
    /// Whether the body was read to its end.
    read: AtomicBool,
    left: Mutex<Option<B>>,
}

impl<B> Default for Rest<B> {
    fn default() -> Self {
        Self {
            read: AtomicBool::new(true),
            left: Mutex::new(None),
        }
    }
}

impl<B> Rest<B> {
    /// Whether the body was read to its end.
    pub(crate) fn is_read(&self) -> bool {
        self.read.load(Ordering::Relaxed)
    }

    /// The body that was left unread, unless it was given up for coming too slowly.
    pub(crate) fn take(&self) -> Option<B> {
        self.left.lock().take()
    }
}

/// A body with a clock.
pub(crate) struct SlowBody<B> {
    /// Absent after it was given up.
    inner: Option<B>,
    /// Told what became of the body.
    rest: Option<Arc<Rest<B>>>,
    /// Set at the first wait.
    whole: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> SlowBody<B> {
    /// Puts a clock on a body.
    pub(crate) fn new(inner: B) -> Self {
        Self {
            inner: Some(inner),
            rest: None,
            whole: None,
            timer: None,
        }
    }

    /// The same, and says through `rest` whether it was read to its end.
    pub(crate) fn telling(inner: B, rest: Arc<Rest<B>>) -> Self
    where
        B: Body,
    {
        rest.read.store(inner.is_end_stream(), Ordering::Relaxed);
        *rest.left.lock() = None;
        let mut body = Self::new(inner);
        body.rest = Some(rest);
        body
    }
}

impl<B> Drop for SlowBody<B> {
    fn drop(&mut self) {
        if let Some(rest) = &self.rest
            && !rest.is_read()
        {
            *rest.left.lock() = self.inner.take();
        }
    }
}

impl<B: Body + Unpin> Body for SlowBody<B> {
    type Data = B::Data;
    type Error = SlowBodyError<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        let Some(inner) = &mut this.inner else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = Pin::new(&mut *inner).poll_frame(cx) {
            this.timer = None;
            if let Some(rest) = &this.rest
                && (frame.is_none() || inner.is_end_stream())
            {
                rest.read.store(true, Ordering::Relaxed);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(SlowBodyError::Inner)));
        }
        let now = Instant::now();
        let whole = *this.whole.get_or_insert(now + WHOLE_MAX);
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(whole.min(now + PIECE_MAX))));
        ready!(timer.as_mut().poll(cx));
        this.inner = None;
        Poll::Ready(Some(Err(SlowBodyError::Slow)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner
            .as_ref()
            .map_or_else(SizeHint::default, Body::size_hint)
    }
}

/// Takes what still comes of a body that was answered without it, for a while: a sender whose
/// connection is cut while it writes never sees the answer.
pub(crate) async fn discard<B: Body + Unpin>(mut body: B) {
    let until = Instant::now() + DISCARD_MAX;
    loop {
        let piece = until.min(Instant::now() + DISCARD_PIECE_MAX);
        match tokio::time::timeout_at(piece, body.frame()).await {
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(_)) | None) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::stream;
    use http_body_util::StreamBody;
    use std::convert::Infallible;

    fn drip(
        every: Duration,
        pieces: u32,
    ) -> SlowBody<impl Body<Data = Bytes, Error = Infallible> + Unpin> {
        let pieces = stream::unfold(0, move |n| async move {
            if n == pieces {
                return None;
            }
            tokio::time::sleep(every).await;
            Some((Ok(Frame::data(Bytes::from_static(b"x"))), n + 1))
        });
        SlowBody::new(StreamBody::new(Box::pin(pieces)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_does_not_come_ends_the_body() {
        assert!(drip(PIECE_MAX / 2, 3).collect().await.is_ok());
        assert!(
            drip(PIECE_MAX + Duration::from_secs(1), 1)
                .collect()
                .await
                .is_err()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_steady_drip_ends_with_the_whole_s_time() {
        let start = Instant::now();
        assert!(drip(PIECE_MAX / 3, 1_000).collect().await.is_err());
        assert!(start.elapsed() <= WHOLE_MAX + PIECE_MAX);
    }
}
