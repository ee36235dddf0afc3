//! `muster server`.

use std::path::PathBuf;

use clap::Args;

use super::AsksNobody;

#[derive(Debug, Args)]
pub(crate) struct Server {
    /// Address and port.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Data directory; ~/.muster when nothing says otherwise.
    #[arg(long, value_name = "DIR", conflicts_with = "database")]
    pub(crate) data: Option<String>,
    /// A database instead of a data directory.
    #[arg(long, value_name = "URL", hide = true)]
    pub(crate) database: Option<String>,
    /// Configuration file; else MUSTER_CONFIG, else ./muster.toml when it is there.
    #[arg(long, value_name = "FILE", env = "MUSTER_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Prints every effective value and where it came from, and ends.
    #[arg(long)]
    pub(crate) print_config: bool,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}
