//! Every route of the OpenAPI document against hostile input: a clear error in the one shape,
//! nothing written for what was refused, and a plane that goes on.

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod canary;
mod paths;
mod routes;
mod slow;
