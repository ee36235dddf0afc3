//! A node for the tests: a real socket and a script. [`Wire`] is the socket alone; [`Daemon`]
//! answers on it as our daemon would, until it is told otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use muster_engine::fleet::event::Enrolment;
use muster_engine::fleet::{FleetEvent, FleetReply};
use muster_engine::{Event, Reply};
use muster_server::auth::KeyText;
use muster_store::annex::KeyRecord;
use muster_wire::fleet::NodeKind;
use muster_wire::fleet::frame::roster_digest;
use muster_wire::{NodeId, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async_with_config};

use super::TestPlane;

/// A node that the plane knows, with its token.
#[derive(Clone)]
pub(crate) struct Enrolled {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) address: String,
    pub(crate) labels: Vec<String>,
    pub(crate) max: u32,
    /// The actions that its daemon offers.
    pub(crate) actions: &'static [&'static str],
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A socket of a node. Pings are answered while it is read.
pub(crate) struct Wire(pub(crate) Socket);

impl Enrolled {
    /// Enrols a node of our daemon.
    pub(crate) async fn new(plane: &TestPlane, name: &str, labels: &[&str], max: u32) -> Self {
        Self::of_kind(plane, name, labels, max, NodeKind::Daemon).await
    }

    pub(crate) async fn of_kind(
        plane: &TestPlane,
        name: &str,
        labels: &[&str],
        max: u32,
        kind: NodeKind,
    ) -> Self {
        let id = muster_wire::mint("node");
        let app = &plane.running.app;
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let enrolment = |waiter| {
            Event::Fleet(Box::new(FleetEvent::Enrolled(Box::new(Enrolment {
                waiter,
                id: NodeId::trusted(id.as_str()),
                name: name.into(),
                kind,
                labels: labels.iter().map(|label| label.as_str().into()).collect(),
                max_workers: max,
                principal: "owner".into(),
            }))))
        };
        match app.driver.ask(enrolment).await.unwrap() {
            Reply::Fleet(reply) => assert!(matches!(*reply, FleetReply::Enrolled(_)), "{reply:?}"),
            other => panic!("{other:?}"),
        }
        let key = KeyText::mint().unwrap();
        let record = KeyRecord {
            id: muster_wire::mint("key"),
            prefix: key.prefix(),
            hash: key.hash(),
            name: name.to_owned(),
            scopes: vec![format!("node:{id}")],
            principal: "owner".into(),
            created_at: Timestamp::wall_clock(),
            used_at: None,
            revoked_at: None,
            expires_at: None,
            detail: None,
        };
        app.auth.ring.add(&*app.stores.annex, &record).unwrap();
        Self {
            id,
            name: name.to_owned(),
            actions: &["spawn", "release", "restart"],
            token: key.expose().to_owned(),
            address: plane.running.address.to_string(),
            labels,
            max,
        }
    }

    /// The same node at a plane that was started again.
    pub(crate) fn at(&self, plane: &TestPlane) -> Self {
        Self {
            address: plane.running.address.to_string(),
            ..self.clone()
        }
    }

    /// Opens one of a node's sockets.
    pub(crate) async fn open(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Wire, tungstenite::Error> {
        let mut request = format!("ws://{}{path}", self.address)
            .into_client_request()
            .unwrap();
        let bearer = format!("Bearer {}", self.token);
        request
            .headers_mut()
            .insert("authorization", bearer.parse().unwrap());
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let config = WebSocketConfig::default().write_buffer_size(0);
        // Small, so that a node that does not read is soon noticed.
        let tcp = TcpSocket::new_v4().unwrap();
        tcp.set_recv_buffer_size(64 * 1024).unwrap();
        let tcp = tcp.connect(self.address.parse().unwrap()).await?;
        tcp.set_nodelay(true)?;
        let tcp = MaybeTlsStream::Plain(tcp);
        let (socket, _) = client_async_with_config(request, tcp, Some(config)).await?;
        Ok(Wire(socket))
    }

    /// The first frame of our daemon.
    pub(crate) fn register(&self, epoch: &str) -> Value {
        let mut capabilities = vec![json!({
            "name": "muster:link-v1", "kind": "capacity",
            "metadata": {"epoch": epoch, "beat_ms": 5000, "pid": 4711, "host": "box"},
        })];
        let action = |name: &&str| json!({"name": name, "kind": "action"});
        capabilities.extend(self.actions.iter().map(action));
        json!({
            "v": 1, "type": "node.register", "id": muster_wire::mint("reg"),
            "name": self.name, "node_id": self.id,
            "provider": {"name": "muster", "instance_id": muster_wire::mint("link")},
            "capabilities": capabilities,
            "max_agents": self.max, "tags": self.labels, "version": "muster/0.1.0",
            "resume_cursor": null,
        })
    }

    /// Opens the control socket and registers.
    pub(crate) async fn connect(&self) -> Wire {
        let mut wire = self.open("/v1/node/ws", &[]).await.unwrap();
        wire.say(&self.register("e1")).await;
        let reply = wire.hear("reply").await;
        assert_eq!(reply["ok"], true, "{reply}");
        wire
    }
}

impl Wire {
    pub(crate) async fn say(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next text frame; `None` when the plane closed, with its close.
    pub(crate) async fn next(&mut self) -> Result<Value, Option<(u16, String)>> {
        let next = async {
            loop {
                match self.0.next().await {
                    Some(Ok(Message::Text(text))) => {
                        return Ok(serde_json::from_str(text.as_str()).unwrap());
                    }
                    Some(Ok(Message::Close(frame))) => {
                        let said = frame.map(|f| (u16::from(f.code), f.reason.to_string()));
                        return Err(said);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Err(None),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), next)
            .await
            .expect("nothing came within 20 s")
    }

    /// The next frame of a type; others are passed over.
    pub(crate) async fn hear(&mut self, kind: &str) -> Value {
        loop {
            let frame = self
                .next()
                .await
                .unwrap_or_else(|close| panic!("closed before {kind}: {close:?}"));
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// Reads on until the plane closes.
    pub(crate) async fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            if let Err(close) = self.next().await {
                return close;
            }
        }
    }
}

/// What a scripted daemon does, changeable while it runs.
#[derive(Default)]
pub(crate) struct Script {
    /// Say nothing: no beats, no answers; the socket stays open and is read.
    pub(crate) silent: AtomicBool,
    /// Do not answer starts.
    pub(crate) no_starts: AtomicBool,
    /// What a start is answered; started, when there is nothing.
    pub(crate) start: Mutex<Option<Value>>,
    /// Living workers: id and name.
    pub(crate) workers: Mutex<BTreeMap<String, String>>,
    /// Every start as it came.
    pub(crate) started: Mutex<Vec<Value>>,
    /// Every release as it came.
    pub(crate) released: Mutex<Vec<Value>>,
    /// Every restart as it came.
    pub(crate) restarted: Mutex<Vec<Value>>,
    /// Do not answer restarts.
    pub(crate) no_restarts: AtomicBool,
    /// Beats sent.
    pub(crate) beats: AtomicU64,
    /// Tunnels that were opened.
    pub(crate) tunnels: AtomicU64,
    /// Where ports of this machine lead to, when not to themselves.
    pub(crate) ports: Mutex<BTreeMap<u16, u16>>,
}

/// A daemon that beats, tells its inventory, starts and releases as it is told.
pub(crate) struct Daemon {
    pub(crate) node: Enrolled,
    pub(crate) script: Arc<Script>,
    pub(crate) say: mpsc::UnboundedSender<Value>,
    task: JoinHandle<Option<(u16, String)>>,
}

impl Daemon {
    pub(crate) async fn start(node: &Enrolled) -> Self {
        Self::with(node, Arc::default()).await
    }

    /// Connects with workers that it has already.
    pub(crate) async fn with(node: &Enrolled, script: Arc<Script>) -> Self {
        let wire = node.connect().await;
        let (say, wishes) = mpsc::unbounded_channel();
        let task = tokio::spawn(run(node.clone(), wire, script.clone(), wishes));
        Self {
            node: node.clone(),
            script,
            say,
            task,
        }
    }

    /// The same daemon on a new connection.
    pub(crate) async fn again(&self) -> Self {
        Self::with(&self.node, self.script.clone()).await
    }

    /// Cuts the connection without a word.
    pub(crate) fn cut(&self) {
        self.task.abort();
    }

    /// Waits for the close of its connection.
    pub(crate) async fn ended(mut self) -> Option<(u16, String)> {
        tokio::time::timeout(Duration::from_secs(20), &mut self.task)
            .await
            .expect("its connection was not closed")
            .unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    node: Enrolled,
    mut wire: Wire,
    script: Arc<Script>,
    mut wishes: mpsc::UnboundedReceiver<Value>,
) -> Option<(u16, String)> {
    let inventory = |script: &Script| {
        let workers: Vec<Value> = script
            .workers
            .lock()
            .iter()
            .map(|(id, name)| json!({"worker_id": id, "name": name, "state": "running", "pid": 77}))
            .collect();
        json!({"v": 1, "type": "muster.inventory", "id": muster_wire::mint("inv"), "workers": workers})
    };
    wire.say(&inventory(&script)).await;
    let mut beat = tokio::time::interval(Duration::from_millis(100));
    let mut seq = 0u64;
    loop {
        tokio::select! {
            _ = beat.tick() => {
                if script.silent.load(Ordering::Relaxed) {
                    continue;
                }
                seq += 1;
                script.beats.fetch_add(1, Ordering::Relaxed);
                let workers = script.workers.lock().clone();
                let digest = roster_digest(workers.keys().map(String::as_str));
                wire.say(&json!({
                    "v": 1, "type": "muster.beat", "id": format!("beat_{seq}"), "seq": seq,
                    "count": workers.len(), "digest": digest, "load": 0.25,
                })).await;
            }
            Some(frame) = wishes.recv() => {
                let frame = if frame == json!("inventory") { inventory(&script) } else { frame };
                wire.say(&frame).await;
            }
            frame = wire.next() => {
                let frame = match frame {
                    Ok(frame) => frame,
                    Err(close) => return close,
                };
                if script.silent.load(Ordering::Relaxed) {
                    continue;
                }
                if frame["type"] == "muster.ask" {
                    wire.say(&json!({"v": 1, "type": "reply", "id": frame["id"]})).await;
                }
                if frame["type"] == "muster.tunnel.open" {
                    let id = frame["tunnel_id"].as_str().unwrap().to_owned();
                    let port = u16::try_from(frame["port"].as_u64().unwrap()).unwrap();
                    let port = script.ports.lock().get(&port).copied().unwrap_or(port);
                    match TcpStream::connect(("127.0.0.1", port)).await {
                        Ok(local) => {
                            script.tunnels.fetch_add(1, Ordering::Relaxed);
                            tokio::spawn(tunnel(node.clone(), id, local));
                        }
                        Err(error) => {
                            wire.say(&json!({"v": 1, "type": "muster.tunnel.failed",
                                             "tunnel_id": id, "error": error.to_string()})).await;
                        }
                    }
                }
                if frame["type"] != "action.invoke" {
                    continue;
                }
                let input = &frame["input"];
                let id = input["worker_id"].as_str().unwrap().to_owned();
                let output = if frame["action"] == "spawn" {
                    script.started.lock().push(input.clone());
                    if script.no_starts.load(Ordering::Relaxed) {
                        continue;
                    }
                    let said = script.start.lock().clone();
                    said.unwrap_or_else(|| {
                        let name = input["name"].as_str().unwrap().to_owned();
                        script.workers.lock().insert(id, name);
                        json!({"outcome": "started", "pid": 4242,
                               "started_at": Timestamp::wall_clock().0})
                    })
                } else if frame["action"] == "restart" {
                    let restarts = script.restarted.lock().len();
                    script.restarted.lock().push(input.clone());
                    if script.no_restarts.load(Ordering::Relaxed) {
                        continue;
                    }
                    let now = Timestamp::wall_clock().0;
                    let exit = json!({"code": null, "signal": 15, "at": now, "output": "bye",
                                      "reason": input["reason"]});
                    wire.say(&json!({
                        "v": 1, "type": "muster.exited", "id": format!("exit:{id}:{restarts}"),
                        "worker_id": id, "name": "", "restarts": restarts, "exit": exit,
                        "next_start_at": now,
                    })).await;
                    json!({"restarts": restarts + 1, "outcome": "started", "pid": 4343, "started_at": now})
                } else {
                    script.released.lock().push(input.clone());
                    script.workers.lock().remove(&id);
                    json!({"code": null, "signal": 15, "at": Timestamp::wall_clock().0, "output": "bye"})
                };
                wire.say(&json!({
                    "v": 1, "type": "action.result",
                    "invocation_id": frame["invocation_id"], "output": output,
                })).await;
            }
        }
    }
}

/// Carries bytes between a local port and the plane, as our daemon does.
async fn tunnel(node: Enrolled, id: String, local: TcpStream) {
    let headers = [("x-muster-tunnel", id.as_str())];
    let Ok(Wire(socket)) = node.open("/v1/node/tunnel/ws", &headers).await else {
        return;
    };
    let (mut sink, mut stream) = socket.split();
    let (mut read, mut write) = local.into_split();
    let up = async {
        let mut buffer = vec![0u8; 32 * 1024];
        loop {
            let n = read.read(&mut buffer).await.unwrap_or(0);
            let piece = Message::binary(buffer[..n].to_vec());
            if sink.send(piece).await.is_err() || n == 0 {
                return;
            }
        }
    };
    let down = async {
        while let Some(Ok(message)) = stream.next().await {
            match message {
                Message::Binary(bytes) if bytes.is_empty() => {
                    let _ = write.shutdown().await;
                }
                Message::Binary(bytes) => match write.write_all(&bytes).await {
                    Ok(()) => {}
                    Err(_) => return,
                },
                Message::Close(_) => return,
                _ => {}
            }
        }
    };
    tokio::join!(up, down);
}
