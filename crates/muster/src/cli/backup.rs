//! `muster backup` and `restore`.

use std::path::PathBuf;

use clap::Args;

use super::AsksNobody;

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Where to, on the plane's machine; must hold no store.
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The copy.
    pub(crate) from: PathBuf,
    /// Where to; must hold no store.
    #[arg(long)]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) asks: AsksNobody,
}
