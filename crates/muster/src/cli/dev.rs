//! `muster dev` and the example agent it runs.

use std::path::PathBuf;

use clap::Args;

use super::AsksNobody;

#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Port of the plane, on 127.0.0.1.
    #[arg(long, default_value_t = 8080, conflicts_with = "listen")]
    pub(crate) port: u16,
    /// Address and port, instead of --port.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Data directory.
    #[arg(long, value_name = "DIR", default_value = "./.muster")]
    pub(crate) data: PathBuf,
    /// Configuration file.
    #[arg(long, value_name = "FILE", env = "MUSTER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Leaves the workers of the local node running at the end; the next start finds them.
    #[arg(long)]
    pub(crate) keep_workers: bool,
    /// A command that runs your agent.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}

#[derive(Debug, Args)]
pub(crate) struct ExampleAgent {
    /// The id it registers.
    #[arg(long, default_value = "hello")]
    pub(crate) id: String,
    /// A file whose text is the version it registers; tests change it.
    #[arg(long)]
    pub(crate) version_file: Option<PathBuf>,
}
