//! The command as a process: what it prints, how it ends, what survives it. Asks the plane
//! through the command's own client, so both ends are tested.

mod acts;
mod dev;
mod server;
mod support;
mod trouble;
