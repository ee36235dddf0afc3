//! The control sockets that are open: how the rest of the plane reaches a node. A link's queue is
//! bounded; a node that does not read is sent away, and nobody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use muster_engine::fleet::event::LinkId;
use muster_engine::fleet::{FleetSend, WorkerRow};
use muster_wire::fleet::NodeKind;
use muster_wire::fleet::frame::PlaneFrame;
use muster_wire::{NodeId, WorkerId};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What may wait to be written to one node. When it is full, the link is closed.
pub(crate) const QUEUE_MAX: usize = 1_024;

/// Something that is to be told to a node.
#[derive(Debug)]
pub(crate) enum Command {
    /// A frame as it is.
    Frame(PlaneFrame),
    /// Start a worker. Its spec is opened, and its key made, when its turn has come.
    Start(Box<WorkerRow>),
    /// End a worker.
    Release {
        /// Which.
        worker: WorkerId,
        /// Its name, by which a broker knows it.
        name: Arc<str>,
        /// How long between SIGTERM and SIGKILL.
        grace: Option<Duration>,
    },
    /// End a worker's process and start it again. Only our daemon knows how.
    Restart {
        /// Which.
        worker: WorkerId,
        /// How long between SIGTERM and SIGKILL.
        grace: Option<Duration>,
        /// Who wants it and why.
        reason: Arc<str>,
    },
    /// Are you there?
    Ask,
}

/// One control socket.
#[derive(Debug)]
pub(crate) struct Link {
    /// Newer ones have greater numbers.
    pub(crate) id: LinkId,
    /// Whose.
    pub(crate) node: NodeId,
    /// What speaks there.
    pub(crate) kind: NodeKind,
    /// The plane's address as that node reaches it.
    pub(crate) plane_url: Arc<str>,
    queue: mpsc::Sender<Command>,
    closing: CancellationToken,
    close: Mutex<Option<(u16, Arc<str>)>>,
}

impl Link {
    /// Queues a command, in order with all others. A link whose queue is full is closed.
    pub(crate) fn command(&self, command: Command) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.queue.try_send(command) {
            self.close(1008, "the node does not read: its queue is full".into());
        }
    }

    /// Queues a frame, and waits for room: for answers to what the node itself sent, so that it
    /// is not read on before they have found their place.
    pub(crate) async fn answer(&self, frame: PlaneFrame) {
        let _ = self.queue.send(Command::Frame(frame)).await;
    }

    /// Asks the session to close, with a code and words. The first one counts.
    pub(crate) fn close(&self, code: u16, why: Arc<str>) {
        self.close.lock().get_or_insert((code, why));
        self.closing.cancel();
    }

    /// Waits until somebody wants it closed.
    pub(super) async fn closed(&self) -> (u16, Arc<str>) {
        self.closing.cancelled().await;
        let close = self.close.lock().clone();
        close.unwrap_or((1000, "closed".into()))
    }

    /// Whether somebody wants it closed.
    #[cfg(test)]
    fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }
}

/// All control sockets.
#[derive(Debug, Default)]
pub(crate) struct Links {
    last: AtomicU64,
    by_id: DashMap<LinkId, Arc<Link>>,
    /// The newest one that was taken, of each node.
    by_node: DashMap<NodeId, Arc<Link>>,
}

impl Links {
    /// A new link, reachable by its number at once: what the engine sends in the commit that
    /// takes it must find it.
    pub(super) fn open(
        &self,
        node: NodeId,
        kind: NodeKind,
        plane_url: Arc<str>,
    ) -> (Arc<Link>, mpsc::Receiver<Command>) {
        let (queue, commands) = mpsc::channel(QUEUE_MAX);
        let link = Arc::new(Link {
            id: LinkId(self.last.fetch_add(1, Ordering::Relaxed) + 1),
            node,
            kind,
            plane_url,
            queue,
            closing: CancellationToken::new(),
            close: Mutex::new(None),
        });
        self.by_id.insert(link.id, link.clone());
        (link, commands)
    }

    /// It was taken: from now on it is its node's, unless a newer one is.
    pub(super) fn taken(&self, link: &Arc<Link>) {
        let mut current = self
            .by_node
            .entry(link.node.clone())
            .or_insert_with(|| link.clone());
        if current.id < link.id {
            *current = link.clone();
        }
    }

    /// It is over.
    pub(super) fn ended(&self, link: &Link, why: &Arc<str>) {
        // Whoever waits for something over it learns of its end.
        link.close(1000, why.clone());
        self.by_id.remove(&link.id);
        self.by_node
            .remove_if(&link.node, |_, current| current.id == link.id);
    }

    /// The link of a node.
    pub(crate) fn of(&self, node: &str) -> Option<Arc<Link>> {
        self.by_node.get(node).map(|link| link.value().clone())
    }

    /// How many were opened since the start.
    pub(crate) fn opened(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Carries what the engine decided to the link that it named. One that is gone has told the
    /// engine so, or is about to.
    pub(crate) fn send(&self, send: FleetSend) {
        let (link, command) = match send {
            FleetSend::Start { link, worker, .. } => (link, Command::Start(worker)),
            FleetSend::Release {
                link,
                worker,
                name,
                grace,
                ..
            } => (
                link,
                Command::Release {
                    worker,
                    name,
                    grace,
                },
            ),
            FleetSend::Restart {
                link,
                worker,
                grace,
                reason,
                ..
            } => (
                link,
                Command::Restart {
                    worker,
                    grace,
                    reason,
                },
            ),
            FleetSend::Ask { link, .. } => (link, Command::Ask),
            FleetSend::Close { link, why, .. } => {
                let Some(link) = self.by_id.get(&link).map(|link| link.value().clone()) else {
                    return;
                };
                // The broker's word for it.
                let newer = self
                    .by_id
                    .iter()
                    .any(|other| other.node == link.node && other.id > link.id);
                link.close(1000, if newer { "superseded".into() } else { why });
                return;
            }
            FleetSend::RevokeKey { .. } => return,
        };
        if let Some(link) = self.by_id.get(&link) {
            link.command(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(links: &Links) -> (Arc<Link>, mpsc::Receiver<Command>) {
        links.open(
            NodeId::trusted("node_1"),
            NodeKind::Daemon,
            "http://h".into(),
        )
    }

    #[test]
    fn the_newest_link_is_its_node_s_whatever_ends_first() {
        let links = Links::default();
        let (old, _old) = open(&links);
        let (new, _new) = open(&links);
        links.taken(&new);
        links.taken(&old);
        assert_eq!(links.of("node_1").unwrap().id, new.id);
        links.ended(&old, &"x".into());
        assert_eq!(links.of("node_1").unwrap().id, new.id);
        links.ended(&new, &"x".into());
        assert!(links.of("node_1").is_none() && links.len() == 0);
    }

    #[test]
    fn a_node_that_does_not_read_is_sent_away_and_nobody_waits() {
        let links = Links::default();
        let (link, _commands) = open(&links);
        for _ in 0..=QUEUE_MAX {
            link.command(Command::Ask);
        }
        assert!(link.is_closing());
    }
}
