//! `POST /mcp`: tools for language models over streamable HTTP, without sessions. Calls go
//! through the same admission as on every other lane; only the spelling of questions and
//! answers lives here. The one module that knows the protocol's library.
//!
//! | file | noun |
//! |---|---|
//! | `envelope.rs` | a JSON-RPC message as bytes: what is malformed, and a tool's arguments as they came |
//! | `door.rs` | who asks, the library's service, errors in the protocol's form |
//! | `server.rs` | what the library asks of a server |
//! | `catalog.rs`, `argument.rs`, `output.rs` | the tools: names, arguments, what they give, in one place each |
//! | `shape.rs`, `answer.rs` | executions and runs as tools show them; results and tool errors |
//! | the others | one tool, or two that are alike |

mod answer;
mod argument;
mod cancel;
mod catalog;
mod discover;
mod door;
mod envelope;
mod execute;
mod output;
mod progress;
mod runs;
mod server;
mod shape;
mod wait;
mod why;

pub(crate) use door::routes;
