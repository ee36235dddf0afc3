//! A request body that may not dawdle: each piece has its time, and so has the whole. A sender
//! that is slower is cut off with an error; one that is quick pays nothing, not even a timer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long the next piece may take.
pub(crate) const PIECE_MAX: Duration = Duration::from_secs(15);
/// How long the whole may take.
pub(crate) const WHOLE_MAX: Duration = Duration::from_secs(120);

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

/// A body with a clock.
pub(crate) struct SlowBody<B> {
    inner: B,
    /// Told when the body was read to its end.
    read: Option<Arc<AtomicBool>>,
    /// Set at the first wait.
    whole: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> SlowBody<B> {
    /// Puts a clock on a body.
    pub(crate) fn new(inner: B) -> Self {
        Self {
            inner,
            read: None,
            whole: None,
            timer: None,
        }
    }

    /// The same, and says through `read` whether it was read to its end.
    pub(crate) fn telling(inner: B, read: Arc<AtomicBool>) -> Self
    where
        B: Body,
    {
        read.store(inner.is_end_stream(), Ordering::Relaxed);
        Self {
            read: Some(read),
            ..Self::new(inner)
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
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) {
            this.timer = None;
            if let Some(read) = &this.read
                && (frame.is_none() || this.inner.is_end_stream())
            {
                read.store(true, Ordering::Relaxed);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(SlowBodyError::Inner)));
        }
        let now = Instant::now();
        let whole = *this.whole.get_or_insert(now + WHOLE_MAX);
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(whole.min(now + PIECE_MAX))));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Some(Err(SlowBodyError::Slow)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::stream;
    use http_body_util::{BodyExt, StreamBody};
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
