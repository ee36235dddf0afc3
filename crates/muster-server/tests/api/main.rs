//! The routes from the caller's side, over real sockets: each file mirrors one file of routes.

mod support;

mod agents;
mod approvals;
mod bodies;
mod callbacks;
mod cancel;
mod caps;
mod config;
mod copied;
mod dispatch;
mod execute;
mod executions;
mod faults;
mod fleet;
mod later;
mod mcp;
mod misbehaving;
mod nested;
mod nodes;
mod overview;
mod pauses;
mod queues;
mod races;
mod refusals;
mod restart;
mod restart_lane;
mod retention;
mod runs;
mod search;
mod shutdown;
mod tags;
mod traces;
mod usage;
mod webhooks;
mod workflow;
