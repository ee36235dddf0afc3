//! Carries bytes between the plane and a port of this machine's loopback, so that a worker that
//! is an agent can be called where it has no address. Reads nothing of what it carries.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use muster_wire::fleet::frame::NodeFrame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, interval_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tracing::debug;

use crate::daemon::Node;
use crate::dial::{Dialer, Socket};

/// Where tunnels connect.
const PATH: &str = "/v1/node/tunnel/ws";
/// The header that names the tunnel.
const HEADER: &str = "x-muster-tunnel";
/// Tunnels at once; one more is answered as failed.
const TUNNELS_MAX: usize = 1024;
/// How long the local port may take to answer the dial, both addresses together.
const DIAL: Duration = Duration::from_secs(2);
/// Bytes in one message.
const CHUNK: usize = 32 << 10;
/// The largest message that is taken.
const MESSAGE_MAX: usize = 4 << 20;
/// A quiet tunnel is pinged this often.
const PING: Duration = Duration::from_secs(15);
/// One that moves nothing and whose pings are not answered for so long is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// Opens tunnels.
#[derive(Debug)]
pub(crate) struct Tunnels {
    room: Arc<Semaphore>,
    results: mpsc::Sender<NodeFrame>,
}

impl Tunnels {
    /// What could not be opened is told through `results`.
    pub(crate) fn new(results: mpsc::Sender<NodeFrame>) -> Self {
        Self {
            room: Arc::new(Semaphore::new(TUNNELS_MAX)),
            results,
        }
    }

    /// Connects a port of the loopback to the plane.
    pub(crate) fn open(&self, node: &Node, tunnel_id: String, port: u16) {
        let results = self.results.clone();
        let failed = move |tunnel_id: String, error: String| {
            debug!(tunnel.id = %tunnel_id, port, %error, "a tunnel was not opened");
            let frame = NodeFrame::TunnelFailed { tunnel_id, error };
            // A full queue is a link that is gone, and whoever waits for the tunnel knows.
            let _ = results.try_send(frame);
        };
        let Ok(permit) = self.room.clone().try_acquire_owned() else {
            return failed(tunnel_id, format!("{TUNNELS_MAX} tunnels are open"));
        };
        let dialer = node.dialer.clone();
        let token = node.identity().token;
        let connect = node.settings.timing.connect;
        tokio::spawn(async move {
            let _permit = permit;
            let local = match dial(port).await {
                Ok(local) => local,
                Err(error) => return failed(tunnel_id, error.to_string()),
            };
            let opened = tokio::time::timeout(connect, socket(&dialer, &token, &tunnel_id)).await;
            match opened {
                Ok(Ok(socket)) => carry(local, socket).await,
                Ok(Err(error)) => failed(tunnel_id, error),
                Err(_) => failed(tunnel_id, format!("no connection within {connect:?}")),
            }
        });
    }
}

async fn socket(dialer: &Dialer, token: &str, tunnel_id: &str) -> Result<Socket, String> {
    let config = WebSocketConfig::default()
        .read_buffer_size(CHUNK)
        .write_buffer_size(0)
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX));
    let headers = [(HEADER, tunnel_id)];
    let opened = dialer.socket(PATH, token, &headers, config).await;
    opened.map_err(|error| error.to_string())
}

/// Dials the loopback, and nothing else.
async fn dial(port: u16) -> io::Result<TcpStream> {
    let both = async {
        let four = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        match TcpStream::connect(four).await {
            Ok(stream) => Ok(stream),
            Err(refused) => {
                let six = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
                // What is said is about the address that nearly everybody listens on.
                TcpStream::connect(six).await.map_err(|_| refused)
            }
        }
    };
    let stream = tokio::time::timeout(DIAL, both)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in 2 s")))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// When something last moved, in milliseconds since the tunnel began.
struct Moved {
    began: Instant,
    at: AtomicU64,
}

impl Moved {
    fn now(&self) {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at.store(millis, Ordering::Relaxed);
    }
    fn ago(&self) -> Duration {
        let at = Duration::from_millis(self.at.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(at)
    }
}

/// Carries bytes both ways until both have ended, one breaks, or nothing moves.
async fn carry(local: TcpStream, socket: Socket) {
    let (read, write) = local.into_split();
    let (mut sink, stream) = socket.split();
    let moved = Moved {
        began: Instant::now(),
        at: AtomicU64::new(0),
    };
    let (up_done, up_ended) = oneshot::channel();
    let (down_done, down_ended) = oneshot::channel();
    let ended = tokio::select! {
        both = async {
            tokio::try_join!(
                up(read, &mut sink, &moved, up_done, down_ended),
                down(stream, write, &moved, down_done, up_ended),
            )
        } => both.map(|_| ()),
        () = silence(&moved) => Err(format!("nothing moved for {SILENCE:?}")),
    };
    let close = match ended {
        Ok(()) => CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        },
        Err(why) => {
            debug!(%why, "a tunnel broke");
            CloseFrame {
                code: CloseCode::Error,
                // A close has room for 123 bytes.
                reason: why.chars().take(40).collect::<String>().into(),
            }
        }
    };
    let bye = sink.send(Message::Close(Some(close)));
    let _ = tokio::time::timeout(Duration::from_secs(2), bye).await;
}

async fn silence(moved: &Moved) {
    loop {
        let left = SILENCE.saturating_sub(moved.ago());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

/// From the port to the plane. An empty message says that no more comes; then it only pings
/// until the other direction has ended.
async fn up(
    mut read: OwnedReadHalf,
    sink: &mut SplitSink<Socket, Message>,
    moved: &Moved,
    done: oneshot::Sender<()>,
    mut other: oneshot::Receiver<()>,
) -> Result<(), String> {
    let mut pings = interval_at(Instant::now() + PING, PING);
    let mut buffer = BytesMut::new();
    let mut done = Some(done);
    loop {
        buffer.reserve(CHUNK);
        let message = tokio::select! {
            read = read.read_buf(&mut buffer), if done.is_some() => {
                if read.map_err(|error| format!("the port: {error}"))? == 0 {
                    done.take().map(|done| done.send(()));
                }
                Message::Binary(buffer.split().freeze())
            }
            _ = pings.tick() => Message::Ping(Bytes::new()),
            _ = &mut other, if done.is_none() => return Ok(()),
        };
        let data = message.is_binary();
        sink.send(message)
            .await
            .map_err(|error| error.to_string())?;
        if data {
            moved.now();
        }
    }
}

/// From the plane to the port. After its end it is read on for pongs and a close, until the
/// other direction has ended.
async fn down(
    mut stream: SplitStream<Socket>,
    mut write: OwnedWriteHalf,
    moved: &Moved,
    done: oneshot::Sender<()>,
    mut other: oneshot::Receiver<()>,
) -> Result<(), String> {
    let mut done = Some(done);
    loop {
        let message = tokio::select! {
            message = stream.next() => message,
            _ = &mut other, if done.is_none() => return Ok(()),
        };
        match message {
            Some(Ok(Message::Binary(_))) if done.is_none() => {
                return Err("the plane sent more after its end".into());
            }
            Some(Ok(Message::Binary(bytes))) if bytes.is_empty() => {
                // A port that is gone already needs no end.
                let _ = write.shutdown().await;
                done.take().map(|done| done.send(()));
            }
            Some(Ok(Message::Binary(bytes))) => {
                let written = write.write_all(&bytes).await;
                written.map_err(|error| format!("the port: {error}"))?;
                moved.now();
            }
            Some(Ok(Message::Close(_))) | None => return Err("the plane closed it".into()),
            Some(Ok(_)) => moved.now(),
            Some(Err(error)) => return Err(error.to_string()),
        }
    }
}
