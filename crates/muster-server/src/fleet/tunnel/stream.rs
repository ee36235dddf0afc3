//! A tunnel as bytes: binary messages in both directions, and an empty one is the end of its
//! direction. What is not written yet holds the writer up, and what is not read the node.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::ws::{Message, WebSocket};
use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of one message that we write.
const CHUNK: usize = 64 * 1024;

/// The plane's end of a tunnel.
pub struct TunnelStream {
    socket: WebSocket,
    /// Read from the socket, and not yet by whoever reads here.
    unread: Bytes,
    read_ended: bool,
    write_ended: bool,
}

impl TunnelStream {
    pub(super) fn new(socket: WebSocket) -> Self {
        Self {
            socket,
            unread: Bytes::new(),
            read_ended: false,
            write_ended: false,
        }
    }
}

fn broke(error: axum::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

impl AsyncRead for TunnelStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if !this.unread.is_empty() {
                let n = this.unread.len().min(buf.remaining());
                buf.put_slice(&this.unread.split_to(n));
                return Poll::Ready(Ok(()));
            }
            if this.read_ended {
                return Poll::Ready(Ok(()));
            }
            match ready!(Pin::new(&mut this.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) if bytes.is_empty() => this.read_ended = true,
                Some(Ok(Message::Binary(bytes))) => this.unread = bytes,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Text(_))) => {
                    let text = "a tunnel carries binary messages";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                Some(Ok(Message::Close(_))) | None => {
                    let text = "the node ended the tunnel before its worker had";
                    let kind = io::ErrorKind::ConnectionReset;
                    return Poll::Ready(Err(io::Error::new(kind, text)));
                }
                Some(Err(error)) => return Poll::Ready(Err(broke(error))),
            }
        }
    }
}

impl AsyncWrite for TunnelStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.write_ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if bytes.is_empty() {
            // An empty message would be the end.
            return Poll::Ready(Ok(0));
        }
        let mut socket = Pin::new(&mut self.socket);
        ready!(socket.as_mut().poll_ready(cx)).map_err(broke)?;
        let n = bytes.len().min(CHUNK);
        let message = Message::Binary(Bytes::copy_from_slice(&bytes[..n]));
        socket.start_send(message).map_err(broke)?;
        Poll::Ready(Ok(n))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(broke)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.write_ended {
            let mut socket = Pin::new(&mut self.socket);
            ready!(socket.as_mut().poll_ready(cx)).map_err(broke)?;
            let end = Message::Binary(Bytes::new());
            socket.start_send(end).map_err(broke)?;
            self.write_ended = true;
        }
        self.poll_flush(cx)
    }
}
