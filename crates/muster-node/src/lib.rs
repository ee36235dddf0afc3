//! The daemon of a machine: supervises worker processes through holders that outlive it, and
//! keeps an honest link to the plane. Decides nothing about the fleet.

pub use muster_wire::fleet;
