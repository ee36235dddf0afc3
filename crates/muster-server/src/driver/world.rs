//! Where the effects of a commit go. The driver's thread calls these and must never wait in
//! them.

use std::time::Duration;

use muster_engine::event::InstanceKey;
use muster_engine::{Notice, Send};
use muster_wire::Timestamp;

/// The outside of the driver.
pub(crate) trait World: std::marker::Send + Sync + 'static {
    /// The newest receipt of a beat.
    fn receipt(&self, key: &InstanceKey) -> Option<(Timestamp, Option<Duration>)>;
    /// Takes what polls and checks read; comes before replies, so that who was answered reads
    /// what they wrote.
    fn publish(&self, notices: &[Notice]);
    /// Starts what leaves the process.
    fn send(&self, sends: Vec<Send>);
    /// Does something small soon, elsewhere than on the driver's thread.
    fn spawn(&self, work: Box<dyn FnOnce() + std::marker::Send>);
    /// Tells streams; comes last.
    fn announce(&self, notices: Vec<Notice>);
    /// A commit of so many events and writes took so long.
    fn committed(&self, events: usize, writes: usize, took: Duration);
    /// How long the oldest event of a batch had waited.
    fn waited(&self, oldest: Duration);
}
