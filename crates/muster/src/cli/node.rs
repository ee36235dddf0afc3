//! `muster node`: this machine as a node.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::AsksNobody;

#[derive(Debug, Args)]
pub(crate) struct Node {
    #[command(subcommand)]
    pub(crate) command: NodeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Runs the daemon: keeps the link to the plane and supervises this machine's workers.
    #[command(
        after_help = "Examples:\n  muster node run\n  muster node run --plane http://10.0.0.5:8080 --token ./token --label gpu --max-workers 8"
    )]
    Run(NodeRun),
    /// Enrols this machine: hands in a one-use token, and keeps who it is from then on.
    #[command(
        after_help = "Example:\n  muster node enroll --plane http://10.0.0.5:8080 --token enr_…\n  muster node run"
    )]
    Enroll(NodeEnroll),
    /// How the node is, by its own word: works while the plane is away. Exits 0 when its link is
    /// ready, 75 when it is not, 69 when no daemon runs.
    #[command(
        after_help = "Examples:\n  muster node status\n  muster node status --json | jq .link"
    )]
    Status(NodeAsk),
    /// Gives the connections to the plane up and dials anew. Workers do not notice.
    #[command(after_help = "Example:\n  muster node reconnect")]
    Reconnect(NodeAsk),
    /// Asks the plane to drain this node: it gets no new work, and its workers are released.
    #[command(after_help = "Example:\n  muster node drain --reason 'a new disk'")]
    Drain(NodeDrain),
    /// Stops the daemon. Its workers go on, and the next daemon finds them.
    #[command(after_help = "Examples:\n  muster node stop\n  muster node stop --stop-workers")]
    Stop(NodeStop),
}

/// Where a node keeps what it knows.
#[derive(Debug, Args)]
pub(crate) struct NodeState {
    /// State directory; ~/.muster/node when nothing says otherwise.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Configuration file with a section `[node]`; else MUSTER_CONFIG, else ./muster.toml.
    #[arg(long, value_name = "FILE", env = "MUSTER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// What a node wants to be.
#[derive(Debug, Args)]
pub(crate) struct NodeWanted {
    /// The plane's address; for an enrolled node the one it was enrolled at.
    #[arg(long, value_name = "URL")]
    pub(crate) plane: Option<String>,
    /// The name that it wants; the token may be for one name alone.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// A label that placements ask for, such as gpu or zone=eu; may be given often.
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// How many workers it takes at once; 0 is without bound.
    #[arg(long, value_name = "N")]
    pub(crate) max_workers: Option<u32>,
    /// Certificates (PEM) to trust besides the public ones.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeRun {
    #[command(flatten)]
    pub(crate) state: NodeState,
    #[command(flatten)]
    pub(crate) wanted: NodeWanted,
    /// A file with an enrolment token, used when this node is not enrolled yet.
    #[arg(long = "token", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// On SIGTERM its workers are released, too. Without it they go on.
    #[arg(long)]
    pub(crate) stop_workers: bool,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}

#[derive(Debug, Args)]
pub(crate) struct NodeEnroll {
    #[command(flatten)]
    pub(crate) state: NodeState,
    #[command(flatten)]
    pub(crate) wanted: NodeWanted,
    /// The enrolment token, or - to read it from stdin. It is good once.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: String,
    /// Replaces the identity of another node or plane.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}

#[derive(Debug, Args)]
pub(crate) struct NodeAsk {
    #[command(flatten)]
    pub(crate) state: NodeState,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}

#[derive(Debug, Args)]
pub(crate) struct NodeDrain {
    #[command(flatten)]
    pub(crate) state: NodeState,
    /// Why; shown to everybody who looks.
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeStop {
    #[command(flatten)]
    pub(crate) state: NodeState,
    /// Releases its workers first.
    #[arg(long)]
    pub(crate) stop_workers: bool,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}

impl NodeCommand {
    /// Whether it names a plane with `--server` and asks none by it.
    pub(crate) fn names_a_plane_for_nothing(&self) -> bool {
        let asks = match self {
            NodeCommand::Run(NodeRun { asks, .. })
            | NodeCommand::Enroll(NodeEnroll { asks, .. })
            | NodeCommand::Status(NodeAsk { asks, .. })
            | NodeCommand::Reconnect(NodeAsk { asks, .. })
            | NodeCommand::Stop(NodeStop { asks, .. }) => asks,
            NodeCommand::Drain(_) => return false,
        };
        asks.server.is_some()
    }
}
