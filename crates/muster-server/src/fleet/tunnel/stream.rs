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
    /// Done when the node's token is no longer taken, with words.
    over: Over,
    cut: Option<&'static str>,
}

/// The end of what let the node connect it.
type Over = Pin<Box<dyn Future<Output = &'static str> + Send>>;

impl TunnelStream {
    pub(super) fn new(
        socket: WebSocket,
        over: impl Future<Output = &'static str> + Send + 'static,
    ) -> Self {
        Self {
            socket,
            unread: Bytes::new(),
            read_ended: false,
            write_ended: false,
            over: Box::pin(over),
            cut: None,
        }
    }

    /// Fails when the node may carry nothing any more.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.cut.is_none()
            && let Poll::Ready(why) = self.over.as_mut().poll(cx)
        {
            self.cut = Some(why);
        }
        let cut = |why| Err(io::Error::new(io::ErrorKind::ConnectionReset, why));
        self.cut.map_or(Ok(()), cut)
    }
}

impl std::fmt::Debug for TunnelStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TunnelStream").finish_non_exhaustive()
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
        if let Err(cut) = this.check(cx) {
            return Poll::Ready(Err(cut));
        }
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
        if self.write_ended || self.cut.is_some() {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::Router;
    use axum::extract::ws::WebSocketUpgrade;
    use axum::routing::get;
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_tungstenite::tungstenite::Message as Theirs;

    use super::*;

    /// A plane's end on a real socket, whose bytes `work` has; the node's end.
    async fn tunnel<F>(
        work: impl Fn(TunnelStream) -> F + Clone + Send + Sync + 'static,
    ) -> tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let route = get(move |upgrade: WebSocketUpgrade| async move {
            upgrade
                .on_upgrade(move |socket| work(TunnelStream::new(socket, std::future::pending())))
        });
        let service = Router::new().route("/", route);
        tokio::spawn(async move { axum::serve(listener, service).await });
        let (socket, _) = tokio_tungstenite::connect_async(format!("ws://{address}/"))
            .await
            .unwrap();
        socket
    }

    /// 32 MiB one way, then its end, and only then as much back: each direction ends for itself.
    #[tokio::test]
    async fn each_direction_ends_for_itself_and_large_bodies_go_through() {
        const SIZE: usize = 32 << 20;
        let mut node = tunnel(|mut stream| async move {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.unwrap();
            assert_eq!(all.len(), SIZE);
            assert!(all.iter().enumerate().all(|(at, byte)| *byte == at as u8));
            stream.write_all(&all).await.unwrap();
            stream.shutdown().await.unwrap();
            // The node closes once both ends are there.
            tokio::time::sleep(Duration::from_secs(30)).await;
        })
        .await;
        let body: Vec<u8> = (0..SIZE).map(|at| at as u8).collect();
        for piece in body.chunks(48 * 1024) {
            node.send(Theirs::binary(piece.to_vec())).await.unwrap();
        }
        node.send(Theirs::binary(Vec::new())).await.unwrap();
        let mut back = Vec::new();
        loop {
            match node.next().await.unwrap().unwrap() {
                Theirs::Binary(piece) if piece.is_empty() => break,
                Theirs::Binary(piece) => back.extend_from_slice(&piece),
                _ => {}
            }
        }
        assert_eq!(back.len(), SIZE);
        assert!(back == body);
    }

    /// A tunnel that is cut is an error, not an end: half an answer must not pass for a whole one.
    #[tokio::test]
    async fn a_tunnel_that_is_cut_is_no_end() {
        let (told, heard) = tokio::sync::oneshot::channel();
        let told = std::sync::Arc::new(parking_lot::Mutex::new(Some(told)));
        let mut node = tunnel(move |mut stream| {
            let told = told.clone();
            async move {
                let mut all = Vec::new();
                let end = stream.read_to_end(&mut all).await;
                let told = told.lock().take();
                let _ = told.map(|told| told.send((all, end.map_err(|e| e.kind()))));
            }
        })
        .await;
        node.send(Theirs::binary(b"half".to_vec())).await.unwrap();
        drop(node);
        let (all, end) = heard.await.unwrap();
        assert_eq!(all, b"half");
        assert_eq!(end, Err(io::ErrorKind::ConnectionReset));
    }

    /// Who does not read holds the other up: what waits in between is bounded.
    #[tokio::test]
    async fn a_reader_that_stops_holds_the_writer_up() {
        let mut node = tunnel(|mut stream| async move {
            let piece = vec![1u8; 64 * 1024];
            let mut written = 0usize;
            let writing = async {
                loop {
                    stream.write_all(&piece).await.unwrap();
                    written += piece.len();
                }
            };
            let _ = tokio::time::timeout(Duration::from_secs(2), writing).await;
            assert!(written < 32 << 20, "{written}");
            stream.shutdown().await.unwrap();
            tokio::time::sleep(Duration::from_secs(30)).await;
        })
        .await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let mut read = 0;
        loop {
            match node.next().await.unwrap().unwrap() {
                Theirs::Binary(piece) if piece.is_empty() => break,
                Theirs::Binary(piece) => read += piece.len(),
                _ => {}
            }
        }
        assert!(read > 0);
    }
}
