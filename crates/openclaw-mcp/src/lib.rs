//! A fleet of MCP servers becomes tools, resources and prompts.
//!
//! From the top down: a [`fleet`] holds the servers of all agents; what an [`agent`] sees of them is a
//! [`catalogue`] of tools, called through the [`bridge`], and a [`library`] of resources and prompts. A
//! [`server`] is kept alive by its [`supervisor`]: [`dial`] connects, [`attached`] is what is connected.
//! A [`connection`] is made by [`local`] (a process) or [`remote`] (HTTP), and its bytes are [`wire`]'s.

pub mod agent;
pub mod attached;
pub mod backoff;
pub mod bridge;
pub mod catalogue;
pub mod client;
pub mod connection;
mod crew;
#[cfg(unix)]
mod descendants;
pub mod describe;
pub mod dial;
pub mod era;
pub mod events;
pub mod fleet;
pub mod guard;
mod health;
pub mod inventory;
pub mod json;
pub mod latency;
pub mod launch;
pub mod library;
pub mod limiter;
pub mod listing;
pub mod local;
mod member;
pub mod memory;
pub mod naming;
mod notices;
pub mod param_headers;
pub mod pins;
pub mod process;
#[cfg(unix)]
mod processes;
pub mod remote;
pub mod resource_tool;
pub mod results;
pub mod server;
pub mod server_log;
pub mod shelf;
pub mod spill;
pub mod status;
pub mod stderr;
pub mod supervisor;
pub mod toolset;
mod upkeep;
pub mod wire;
