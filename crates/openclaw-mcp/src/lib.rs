//! A fleet of MCP servers becomes tools, resources and prompts.
//!
//! Being built. From the bottom up: the bytes of a connection ([`wire`]); the processes of local
//! servers ([`launch`], [`process`], [`guard`], [`stderr`]); which protocol a server speaks ([`era`]);
//! the tools that it lists ([`listing`]) and their names ([`naming`]). [`local`] joins these to a
//! connection, [`supervisor`] keeps one alive, [`backoff`] says when to try again. Remote servers, the
//! catalogue and the bridge to an agent follow.

pub mod agent;
pub mod attached;
pub mod audit;
pub mod backoff;
pub mod bridge;
pub mod catalogue;
pub mod client;
mod clock;
pub mod connection;
pub mod describe;
pub mod dial;
pub mod era;
pub mod fleet;
pub mod guard;
pub mod inventory;
pub mod latency;
pub mod launch;
pub mod library;
pub mod limiter;
pub mod listing;
pub mod local;
pub mod memory;
pub mod naming;
pub mod param_headers;
pub mod pins;
pub mod process;
pub mod remote;
pub mod results;
pub mod schema;
pub mod server;
pub mod server_log;
pub mod shelf;
pub mod spill;
pub mod status;
pub mod stderr;
pub mod supervisor;
pub mod wire;
