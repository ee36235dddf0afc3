//! A start with a large history: a store is filled through its own interface, in big commits,
//! and a plane is started on it.

use super::gates::Gates;
use super::site::Site;

/// Measures it.
pub(crate) fn measure(_site: &mut Site, _gates: &mut Gates) -> anyhow::Result<()> {
    anyhow::bail!("not yet")
}
