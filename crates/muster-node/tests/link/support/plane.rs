//! A plane whose every answer the test decides. It upgrades what connects, and hands the sockets
//! to the test by their path.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use super::daemon::{NODE, TOKEN};
use super::soon;

type Socket = WebSocketStream<TcpStream>;

pub(crate) struct Plane {
    port: u16,
    control: Mutex<mpsc::Receiver<Socket>>,
    terminal: Mutex<mpsc::Receiver<Socket>>,
    tunnel: Mutex<mpsc::Receiver<(String, Socket)>>,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Default)]
struct Shared {
    /// The status that refuses an upgrade; 0 is none.
    refuse: AtomicU16,
    /// Control sockets so far.
    controls: AtomicUsize,
}

impl Plane {
    pub(crate) async fn new() -> Self {
        Self::at(0).await
    }

    /// On a port, such as that of a plane that was killed.
    pub(crate) async fn at(port: u16) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("reuse");
        // Small, so that a peer that is not read notices soon.
        socket.set_recv_buffer_size(16 << 10).expect("a buffer");
        socket.bind(([127, 0, 0, 1], port).into()).expect("a port");
        let listener = socket.listen(64).expect("it listens");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared::default());
        let (control_in, control) = mpsc::channel(64);
        let (terminal_in, terminal) = mpsc::channel(64);
        let (tunnel_in, tunnel) = mpsc::channel(64);
        let doors = Doors {
            control: control_in,
            terminal: terminal_in,
            tunnel: tunnel_in,
            shared: shared.clone(),
        };
        let accepting = tokio::spawn(accept(listener, doors)).abort_handle();
        Self {
            port,
            control: Mutex::new(control),
            terminal: Mutex::new(terminal),
            tunnel: Mutex::new(tunnel),
            shared,
            accepting,
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Refuses upgrades with this status; 0 takes them again.
    pub(crate) fn refuse(&self, status: u16) {
        self.shared.refuse.store(status, Ordering::SeqCst);
    }

    /// Control sockets so far.
    pub(crate) fn controls(&self) -> usize {
        self.shared.controls.load(Ordering::SeqCst)
    }

    /// The next control socket, as it is.
    pub(crate) async fn raw_control(&self) -> Socket {
        let mut control = self.control.lock().await;
        soon("a control socket", control.recv())
            .await
            .expect("a plane")
    }

    /// The next control socket.
    pub(crate) async fn control(&self) -> Control {
        Control::of(self.raw_control().await)
    }

    /// The next control socket, after its registration and first inventory were answered; it goes
    /// on to answer everything.
    pub(crate) async fn ready(&self) -> Served {
        self.served(|_, _| None).await
    }

    /// The same with answers of the test's own: `None` is an empty one.
    pub(crate) async fn served(
        &self,
        answer: impl Fn(&str, &Value) -> Option<Value> + Send + 'static,
    ) -> Served {
        let mut served = Served::of(self.raw_control().await, Box::new(answer));
        served.frame("muster.inventory").await;
        served
    }

    /// The next control socket, all of whose requests are answered, with every frame of it.
    pub(crate) async fn open(&self) -> Served {
        Served::of(self.raw_control().await, Box::new(|_, _| None))
    }

    /// The next terminal socket.
    pub(crate) async fn terminal(&self) -> Control {
        let mut terminal = self.terminal.lock().await;
        Control::of(
            soon("a terminal socket", terminal.recv())
                .await
                .expect("a plane"),
        )
    }

    /// The next tunnel: its id and socket.
    pub(crate) async fn tunnel(&self) -> (String, Socket) {
        let mut tunnel = self.tunnel.lock().await;
        soon("a tunnel", tunnel.recv()).await.expect("a plane")
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct Doors {
    control: mpsc::Sender<Socket>,
    terminal: mpsc::Sender<Socket>,
    tunnel: mpsc::Sender<(String, Socket)>,
    shared: Arc<Shared>,
}

async fn accept(listener: TcpListener, doors: Doors) {
    let doors = Arc::new(doors);
    let mut upgrades = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        upgrades.spawn(upgrade(stream, doors.clone()));
    }
}

async fn upgrade(stream: TcpStream, doors: Arc<Doors>) {
    let mut path = String::new();
    let mut tunnel = String::new();
    let refuse = doors.shared.refuse.load(Ordering::SeqCst);
    #[allow(clippy::result_large_err)]
    let look = |request: &Request, response: Response| {
        path = request.uri().path().to_owned();
        let header = |name: &str| {
            let value = request.headers().get(name);
            value.map(|value| value.to_str().expect("text").to_owned())
        };
        assert_eq!(header("authorization"), Some(format!("Bearer {TOKEN}")));
        tunnel = header("x-muster-tunnel").unwrap_or_default();
        if refuse == 0 {
            return Ok(response);
        }
        let body = json!({"error": "unauthenticated", "message": "no such token", "error_category": "unauthenticated"});
        let mut refused = ErrorResponse::new(Some(body.to_string()));
        *refused.status_mut() = refuse.try_into().expect("a status");
        Err(refused)
    };
    let Ok(socket) = tokio_tungstenite::accept_hdr_async(stream, look).await else {
        return;
    };
    match path.as_str() {
        "/v1/node/ws" => {
            doors.shared.controls.fetch_add(1, Ordering::SeqCst);
            let _ = doors.control.send(socket).await;
        }
        "/v1/node/terminal/ws" => {
            let _ = doors.terminal.send(socket).await;
        }
        "/v1/node/tunnel/ws" => {
            let _ = doors.tunnel.send((tunnel, socket)).await;
        }
        other => panic!("nobody asks for {other}"),
    }
}

/// A socket that the test reads and writes itself.
pub(crate) struct Control {
    pub(crate) sink: SplitSink<Socket, Message>,
    pub(crate) stream: SplitStream<Socket>,
}

impl Control {
    pub(crate) fn of(socket: Socket) -> Self {
        let (sink, stream) = socket.split();
        Self { sink, stream }
    }

    /// The next frame; `None` when the socket has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match soon("a frame", self.stream.next()).await {
                Some(Ok(Message::Text(text))) => {
                    return Some(serde_json::from_str(&text).expect("JSON"));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(other)) => panic!("not text: {other:?}"),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// The next frame of a type; others are passed over.
    pub(crate) async fn frame(&mut self, kind: &str) -> Value {
        let found = async {
            loop {
                let next = self.next().await;
                let frame = next.unwrap_or_else(|| panic!("ended before {kind}"));
                if frame["type"] == kind {
                    return frame;
                }
            }
        };
        soon(kind, found).await
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        let sent = self.sink.send(Message::text(frame.to_string()));
        soon("it is written", sent).await.expect("an open socket");
    }

    pub(crate) async fn reply(&mut self, to: &Value, data: Value) {
        self.send(json!({"v": 1, "type": "reply", "id": to["id"], "ok": true, "data": data}))
            .await;
    }

    pub(crate) async fn refuse(&mut self, to: &Value, code: &str) {
        let message = "the plane of the test says no";
        self.send(json!({"v": 1, "type": "error", "id": to["id"], "ok": false, "code": code, "message": message}))
            .await;
    }

    /// Answers the registration.
    pub(crate) async fn register(&mut self) -> Value {
        let register = self.frame("node.register").await;
        assert_eq!(register["node_id"], NODE);
        self.reply(&register, json!({})).await;
        register
    }
}

type Answer = Box<dyn Fn(&str, &Value) -> Option<Value> + Send>;

/// A socket whose requests are all answered, until the test says otherwise.
pub(crate) struct Served {
    frames: mpsc::UnboundedReceiver<Value>,
    to: mpsc::UnboundedSender<Message>,
    answers: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Served {
    fn of(socket: Socket, answer: Answer) -> Self {
        let (seen, frames) = mpsc::unbounded_channel();
        let (to, mut from) = mpsc::unbounded_channel();
        let answers = Arc::new(AtomicBool::new(true));
        let answering = answers.clone();
        let mut control = Control::of(socket);
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    message = control.stream.next() => {
                        let Some(Ok(message)) = message else { return };
                        let Message::Text(text) = message else { continue };
                        let frame: Value = serde_json::from_str(&text).expect("JSON");
                        if frame["id"].is_string() && answering.load(Ordering::SeqCst) {
                            let kind = frame["type"].as_str().expect("a type");
                            let data = answer(kind, &frame).unwrap_or_else(|| json!({}));
                            control.reply(&frame, data).await;
                        }
                        let _ = seen.send(frame);
                    }
                    message = from.recv() => {
                        let Some(message) = message else { return };
                        if control.sink.send(message).await.is_err() { return }
                    }
                }
            }
        });
        Self {
            frames,
            to,
            answers,
            task: task.abort_handle(),
        }
    }

    /// The next frame; `None` when the socket has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        soon("a frame", self.frames.recv()).await
    }

    /// The next frame of a type.
    pub(crate) async fn frame(&mut self, kind: &str) -> Value {
        self.frame_where(kind, |_| true).await
    }

    pub(crate) async fn frame_where(&mut self, kind: &str, so: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let next = self.next().await;
                let frame = next.unwrap_or_else(|| panic!("ended before {kind}"));
                if frame["type"] == kind && so(&frame) {
                    return frame;
                }
            }
        };
        soon(kind, found).await
    }

    /// The result of an action.
    pub(crate) async fn result(&mut self, invocation: &str) -> Value {
        self.frame_where("action.result", |frame| {
            frame["invocation_id"] == invocation
        })
        .await
    }

    pub(crate) fn send(&self, frame: Value) {
        self.send_raw(Message::text(frame.to_string()));
    }

    pub(crate) fn send_raw(&self, message: Message) {
        self.to.send(message).expect("an open socket");
    }

    pub(crate) fn invoke(&self, invocation: &str, action: &str, input: Value) {
        self.send(json!({
            "v": 1, "type": "action.invoke", "invocation_id": invocation, "action": action,
            "input": input,
        }));
    }

    /// Reads on, and its socket answers pings; nothing is replied any more.
    pub(crate) fn withhold_replies(&self) {
        self.answers.store(false, Ordering::SeqCst);
    }

    /// Cuts the connection without a close.
    pub(crate) fn cut(self) {}
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
