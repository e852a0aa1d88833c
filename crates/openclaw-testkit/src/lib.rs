//! Tiny real MCP servers that misbehave on command, for tests and benches.
//!
//! A test builds a [`Script`], and [`TestServer`] turns it into a command line (stdio) or a running
//! server (HTTP). [`processes`] tells whether anything is left of it afterwards, [`Recording`] what
//! the client has sent. The server itself is the binary `openclaw-test-server`; build it with
//! `cargo build -p openclaw-testkit`.
//!
//! [`Peers`] are servers that other people wrote, for what must work with more than our own.

mod client;
mod command;
mod engine;
mod http;
mod peers;
mod process;
pub mod processes;
mod recording;
mod script;
mod server;
mod stdio;

pub use client::StdioClient;
pub use command::run;
pub use peers::{FastMcp, Peer, Peers, RunningPeer};
pub use processes::KillGroup;
pub use recording::Recording;
pub use script::{
    Answer, Ask, CallScript, CatalogueScript, Cursor, Discover, DropStream, Fault, Grandchild,
    HttpScript, Junk, Odd, On, ProcessScript, ProtocolScript, RpcError, Script, StdoutScript, Tool,
    VERSIONS,
};
pub use server::{HttpServer, TestServer};
