//! Stories: events in, effects out, every invariant recounted after each step. No clock, no
//! sockets, no sleeps; the store is a set of maps.

mod admission;
mod callbacks;
mod cancels;
mod properties;
mod recovery;
mod restarts;
mod rows;
mod world;
