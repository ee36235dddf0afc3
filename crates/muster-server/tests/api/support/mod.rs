//! A plane, a client and an agent for the tests. The agent does what its function's name says.

pub(crate) mod agent;
pub(crate) mod client;
pub(crate) mod collector;
#[path = "../../support/document.rs"]
pub(crate) mod document;
pub(crate) mod nested;
pub(crate) mod node;
pub(crate) mod plane;
pub(crate) mod raw;
pub(crate) mod receiver;

use std::future::Future;
use std::time::{Duration, Instant};

pub(crate) use agent::FakeAgent;
pub(crate) use client::{Answer, Client};
pub(crate) use node::{Daemon, Enrolled, Wire};
pub(crate) use plane::TestPlane;
pub(crate) use raw::RawAgent;
pub(crate) use receiver::Receiver;

/// Asks again and again until there is an answer, for at most 20 seconds.
pub(crate) async fn eventually<T, F>(what: &str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let began = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "waited in vain: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
