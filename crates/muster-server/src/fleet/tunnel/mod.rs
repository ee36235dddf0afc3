//! Connections to workers through the links of their nodes: the plane asks for one over the
//! control socket, and the node connects it. A tunnel that could not be opened has carried
//! nothing.

mod address;
mod stream;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocket;
use dashmap::DashMap;
use muster_wire::NodeId;
use muster_wire::fleet::NodeKind;
use muster_wire::fleet::frame::PlaneFrame;
use tokio::sync::oneshot;

use super::door::Admitted;
use super::routes::Route;
use super::{Command, Fleet};
use crate::app::App;
pub(crate) use address::{carries, through, worker_of};
pub(crate) use stream::TunnelStream;

/// Tunnels that may be on their way at once, all nodes together.
const WAITING_MAX: usize = 8_192;

/// A tunnel that was asked for.
#[derive(Debug)]
struct Waiting {
    node: NodeId,
    arrives: oneshot::Sender<Result<TunnelStream, String>>,
}

/// The tunnels that were asked for and have not come yet.
#[derive(Debug, Default)]
pub(crate) struct Tunnels(DashMap<Arc<str>, Waiting>);

impl Tunnels {
    /// Whether a node was asked for this one.
    pub(crate) fn expects(&self, node: &NodeId, id: &str) -> bool {
        self.0.get(id).is_some_and(|waiting| waiting.node == *node)
    }

    /// The node connected it; `false` when nobody waits any more.
    pub(crate) fn arrived(
        &self,
        app: App,
        admitted: Admitted,
        id: &str,
        socket: WebSocket,
    ) -> bool {
        let node = &admitted.node;
        let waiting = self.0.remove_if(id, |_, waiting| waiting.node == *node);
        let over = async move { admitted.until_over(&app).await.ended() };
        let stream = TunnelStream::new(socket, over);
        waiting.is_some_and(|(_, waiting)| waiting.arrives.send(Ok(stream)).is_ok())
    }

    /// The node could not: nobody listens at the port, or it is full.
    pub(crate) fn failed(&self, node: &NodeId, id: &str, error: &str) {
        let waiting = self.0.remove_if(id, |_, waiting| waiting.node == *node);
        if let Some((_, waiting)) = waiting {
            let error: String = error.chars().take(300).collect();
            let _ = waiting.arrives.send(Err(error));
        }
    }
}

/// A tunnel that is waited for; forgotten when nobody waits any more.
struct Expected<'a> {
    tunnels: &'a Tunnels,
    id: Arc<str>,
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.tunnels.0.remove(&self.id);
    }
}

impl Fleet {
    /// Opens a connection to a port on the loopback of the node where a worker runs.
    ///
    /// # Errors
    /// When there is none within `patience`: nothing was sent then.
    pub(crate) async fn tunnel(
        &self,
        worker: &str,
        port: u16,
        patience: Duration,
    ) -> io::Result<TunnelStream> {
        let node = match self.routes.of(worker) {
            Route::Through(node) => node,
            Route::Ended => {
                return Err(refused(format!("worker {worker} has ended")));
            }
            Route::Unknown => {
                return Err(refused(format!("where worker {worker} runs is not known")));
            }
        };
        let Some(link) = self.links.of(node.as_str()) else {
            let text = format!("{node}, where worker {worker} runs, has no link to the plane now");
            return Err(io::Error::new(io::ErrorKind::NotConnected, text));
        };
        if link.kind != NodeKind::Daemon {
            let text = format!("{node} opens no tunnels");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        if self.tunnels.0.len() >= WAITING_MAX {
            return Err(refused("too many tunnels are on their way".into()));
        }
        let id: Arc<str> = muster_wire::mint("tun").into();
        let (arrives, arrived) = oneshot::channel();
        let _expected = Expected {
            tunnels: &self.tunnels,
            id: id.clone(),
        };
        self.tunnels.0.insert(
            id.clone(),
            Waiting {
                node: node.clone(),
                arrives,
            },
        );
        link.command(Command::Frame(PlaneFrame::TunnelOpen {
            tunnel_id: id.to_string(),
            port,
        }));
        let arrived = tokio::select! {
            arrived = tokio::time::timeout(patience, arrived) => arrived,
            (_, why) = link.closed() => {
                let text = format!("the link of {node} ended: {why}");
                return Err(io::Error::new(io::ErrorKind::NotConnected, text));
            }
        };
        match arrived {
            Ok(Ok(Ok(stream))) => Ok(stream),
            Ok(Ok(Err(error))) => Err(refused(format!("{node}: port {port}: {error}"))),
            Ok(Err(_)) => Err(refused("the tunnel was given up".into())),
            Err(_) => {
                let text = format!("{node} opened no tunnel within {patience:?}");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
        }
    }
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, text)
}
