//! The shell: HTTP in and out, the driver that runs the engine, and everything with a socket,
//! a clock or a thread. Decides nothing about executions and writes no SQL.

pub mod api;
pub mod app;
pub mod approvals;
pub mod auth;
pub mod bodies;
mod chores;
pub mod clock;
pub mod config;
pub mod directory;
pub mod dispatch;
pub mod driver;
pub mod duties;
pub mod feed;
pub mod fleet;
pub mod followers;
pub mod growth;
pub mod health;
pub mod identity;
mod inputs;
pub mod json;
pub mod lives;
pub mod logs;
mod mcp;
pub mod memory;
pub mod meters;
pub mod payloads;
pub mod plane;
pub mod relay;
mod secret_key;
mod slow_body;
mod slow_head;
mod tail;
pub mod telemetry;
pub mod ui;
pub mod views;
pub mod webhooks;
mod world;

pub use app::App;
pub use config::Config;
pub use plane::{Plane, Running};
