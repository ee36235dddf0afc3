//! The routes beside calling, from the caller's side: over real sockets, against a plane on
//! each store.

mod agent;
mod discovery;
mod feed;
mod hostile;
mod identity;
mod memory;
mod notes_logs;
mod streams;
mod world;

/// Runs each test against every store.
macro_rules! on_each_store {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(crate::world::World::sqlite().await).await; })*
        }
        mod in_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(crate::world::World::memory().await).await; })*
        }
    };
}
pub(crate) use on_each_store;
