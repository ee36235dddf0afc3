//! A connection whose peer may be idle between requests, but not dawdle within the head of one.
//! The HTTP library knows one time for both: short, it cuts idle connections under clients that
//! are about to use them again; long, it lets anybody hold a connection with half a line.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long the head of a request may take from its first byte.
pub(crate) const HEAD_MAX: Duration = Duration::from_secs(10);
/// How long a connection may be idle. Longer than clients keep theirs.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(75);

const IDLE: u64 = 0;
const SERVING: u64 = 1;
/// Values from here on are the moment at which a head began, in milliseconds of the connection.
const HEAD: u64 = 2;

/// Where a connection is; shared by its two ends, the bytes and the service.
#[derive(Debug, Clone)]
pub(crate) struct HeadClock {
    state: Arc<AtomicU64>,
    began: Instant,
}

impl HeadClock {
    /// The clock of a new connection.
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::new(AtomicU64::new(IDLE)),
            began: Instant::now(),
        }
    }

    /// A request was read; its body is somebody else's to watch. Idle again when dropped.
    pub(crate) fn serving(&self) -> Serving {
        self.state.store(SERVING, Ordering::Relaxed);
        Serving {
            state: self.state.clone(),
            for_ever: false,
        }
    }

    fn bytes_came(&self) {
        if self.state.load(Ordering::Relaxed) == IDLE {
            let at = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - HEAD);
            self.state.store(HEAD + at, Ordering::Relaxed);
        }
    }

    /// What is left for the head under way; `None` when there is none.
    fn left(&self) -> Option<Duration> {
        let since = self.state.load(Ordering::Relaxed).checked_sub(HEAD)?;
        let until = Duration::from_millis(since) + HEAD_MAX;
        Some(until.saturating_sub(self.began.elapsed()))
    }
}

/// A request that is being served.
#[derive(Debug)]
pub(crate) struct Serving {
    state: Arc<AtomicU64>,
    for_ever: bool,
}

impl Serving {
    /// The connection became another protocol's: no head comes any more.
    pub(crate) fn for_ever(mut self) {
        self.for_ever = true;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if !self.for_ever {
            self.state.store(IDLE, Ordering::Relaxed);
        }
    }
}

/// The bytes of a connection, watched.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    inner: S,
    clock: HeadClock,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    /// Watches a connection.
    pub(crate) fn new(inner: S, clock: HeadClock) -> Self {
        Self {
            inner,
            clock,
            timer: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        if let Poll::Ready(end) = Pin::new(&mut this.inner).poll_read(cx, buf) {
            if buf.filled().len() > before {
                this.clock.bytes_came();
            }
            return Poll::Ready(end);
        }
        let Some(left) = this.clock.left() else {
            this.timer = None;
            return Poll::Pending;
        };
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(left)));
        match timer.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            // The timer may be one of an earlier head of this connection.
            Poll::Ready(()) if left > Duration::ZERO => {
                timer.as_mut().reset(Instant::now() + left);
                let _ = timer.as_mut().poll(cx);
                Poll::Pending
            }
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the head of a request came too slowly",
            ))),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    fn watched() -> (DuplexStream, Watched<DuplexStream>, HeadClock) {
        let (far, near) = duplex(1024);
        let clock = HeadClock::new();
        (far, Watched::new(near, clock.clone()), clock)
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_head_is_cut_off_and_a_drip_does_not_help() {
        let (mut far, mut near, _clock) = watched();
        let began = Instant::now();
        tokio::spawn(async move {
            while far.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
        });
        let mut piece = [0; 1];
        let end = loop {
            if let Err(error) = near.read_exact(&mut piece).await {
                break error;
            }
        };
        assert_eq!(end.kind(), io::ErrorKind::TimedOut);
        assert!(
            began.elapsed() < HEAD_MAX + Duration::from_secs(4),
            "{:?}",
            began.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn between_requests_nobody_is_slow() {
        let (mut far, mut near, clock) = watched();
        let mut piece = [0; 1];
        for _ in 0..3 {
            far.write_all(b"x").await.unwrap();
            near.read_exact(&mut piece).await.unwrap();
            let serving = clock.serving();
            assert!(
                tokio::time::timeout(HEAD_MAX * 3, near.read_exact(&mut piece))
                    .await
                    .is_err(),
                "still open while it is served"
            );
            drop(serving);
            assert!(
                tokio::time::timeout(HEAD_MAX * 3, near.read_exact(&mut piece))
                    .await
                    .is_err(),
                "still open while it is idle"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_protocol_is_left_alone() {
        let (mut far, mut near, clock) = watched();
        clock.serving().for_ever();
        far.write_all(b"x").await.unwrap();
        let mut piece = [0; 1];
        near.read_exact(&mut piece).await.unwrap();
        assert!(
            tokio::time::timeout(HEAD_MAX * 3, near.read_exact(&mut piece))
                .await
                .is_err()
        );
    }
}
