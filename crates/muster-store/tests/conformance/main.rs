//! One suite for every store: each test runs on SQLite and on the one in memory, and they must
//! answer alike.

mod alike;
mod beside;
mod changes;
mod commits;
mod fleet;
mod fleet_rows;
mod glance;
mod hostile;
mod lists;
mod outbox;
mod payloads;
mod people;
mod reads;
mod replays;
mod restores;
mod retention;
mod support;
mod usage;

/// Makes a test for each store out of each function.
macro_rules! on_each_store {
    ($($(#[$doc:meta])* fn $name:ident($store:ident) $body:block)*) => {
        $($(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            fn claim($store: &dyn crate::support::Both) $body

            #[test]
            fn in_memory() {
                claim(&muster_store::MemoryStore::new());
            }

            #[test]
            fn on_sqlite() {
                let dir = tempfile::tempdir().unwrap();
                let options = muster_store::Options {
                    durability: muster_store::Durability::Process,
                    ..muster_store::Options::default()
                };
                claim(&muster_store::SqliteStore::open(dir.path(), options).unwrap());
            }
        })*
    };
}
pub(crate) use on_each_store;
