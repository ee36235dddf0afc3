//! The shell around the decisions: HTTP, dispatch, and the driver that runs the engine.

pub mod config;
