//! Tiny real MCP servers that misbehave on command, for tests and benches.
//!
//! A test builds a [`Script`], and [`TestServer`] turns it into a command line (stdio) or a running
//! server (HTTP). [`processes`] finds processes that are left afterwards, [`Recording`] contains the
//! messages that the client has sent. The server itself is the binary `openclaw-test-server`; build it
//! with `cargo build -p openclaw-testkit`.
//!
//! [`ModelServer`] is a model provider. [`Peers`] are third-party servers, for tests of interoperability. [`oauth`] has a browser for the
//! pages of authorization servers, and an authorization server that misbehaves on command.

pub mod bench;
mod client;
mod command;
mod engine;
mod hostile_file;
mod http;
mod model_server;
pub mod oauth;
mod peers;
mod process;
pub mod processes;
mod recording;
mod script;
mod server;
mod stdio;

pub use client::StdioClient;
pub use command::run;
pub use hostile_file::{HOSTILE_FILE, assert_is_external_file};
pub use model_server::{ModelServer, Piece};
pub use peers::{
    AcpSchema, FastMcp, GatewaySchema, OAuthPeer, OidcOptions, Peer, Peers, RunningPeer,
};
pub use processes::KillGroup;
pub use recording::Recording;
pub use script::{
    Answer, Ask, CallScript, CatalogueScript, Cursor, Discover, DropStream, Endless, Fault,
    Grandchild, HttpScript, Junk, Odd, On, ProcessScript, ProtocolScript, RequestFlood, RpcError,
    Script, Skill, StdoutScript, TaskScript, Tool, VERSIONS,
};
pub use server::{HttpServer, TestServer};
