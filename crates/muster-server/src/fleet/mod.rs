//! The plane's end of the fleet: the links of nodes, their terminals and tunnels, and the keys of
//! workers. Carries and translates; what any of it means is the engine's.

pub(crate) mod dialect;
pub(crate) mod door;
pub(crate) mod links;
pub(crate) mod notices;
pub(crate) mod routes;
pub(crate) mod session;
pub(crate) mod terminal;
pub(crate) mod tunnel;
pub(crate) mod worker;

use muster_engine::fleet::FleetSend;

use crate::app::App;
use crate::dispatch::FleetSender;
use crate::relay;
pub(crate) use links::{Command, Link, Links};

/// What the shell keeps of the fleet: connections, and where calls go. Nothing of it is stored.
#[derive(Debug, Default)]
pub struct Fleet {
    /// The control sockets of nodes.
    pub(crate) links: Links,
    /// Which workers are called through a node.
    pub(crate) routes: routes::Routes,
    /// Connections to workers that are on their way.
    pub(crate) tunnels: tunnel::Tunnels,
    /// Terminals, and who sits before them.
    pub(crate) terminals: terminal::Terminals,
}

/// Carries what the engine decided to nodes. What needs the store is done elsewhere.
pub(crate) fn sender(app: &App) -> FleetSender {
    let app = app.clone();
    Box::new(move |send| match send {
        FleetSend::RevokeKey { worker } => {
            app.fleet.terminals.worker_ended(&worker);
            let (work, ended) = (app.clone(), worker.clone());
            app.tasks.spawn(async move {
                let revoke = work.clone();
                let end = work.blocking(move |stores| worker::revoke_keys(&revoke, stores, &worker));
                if let Err(error) = end.await {
                    tracing::warn!(error = %error, "the key of an ended worker could not be revoked");
                }
                relay::worker_ended(&work, &ended).await;
            });
        }
        other => app.fleet.links.send(other),
    })
}
