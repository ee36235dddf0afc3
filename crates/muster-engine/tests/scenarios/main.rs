//! Stories: events in, effects out, every invariant recounted after each step. No clock, no
//! sockets, no sleeps; the store is a set of maps.

mod admission;
mod approvals;
mod callbacks;
mod cancels;
mod caps;
mod circuits;
mod fleet_agents;
mod fleet_doubt;
mod fleet_liveness;
mod fleet_placement;
mod fleet_properties;
mod fleet_restarts;
mod fleet_sim;
mod fleet_truth;
mod fleet_wishes;
mod fleet_workers;
mod machine;
mod parents;
mod pauses;
mod properties;
mod recovery;
mod replay;
mod restarts;
mod rows;
mod tags;
mod waits;
mod world;
