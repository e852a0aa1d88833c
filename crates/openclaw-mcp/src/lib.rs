//! A fleet of MCP servers becomes tools, resources and prompts.
//!
//! From the top down: a [`fleet`] holds the servers of all agents and each agent's view of them. A [`server`] is kept
//! alive by its supervisor; what it offers is its [`inventory`]. A [`connection`] leads to it, over the pipes of a
//! [`process`] or over HTTP, and the bytes are [`wire`]'s. A [`call`] is one tool call, or one resource or prompt that is
//! read. What outlives the program is in a [`store`].

pub mod call;
pub mod connection;
pub mod fleet;
pub mod inventory;
pub mod process;
pub mod server;
pub mod store;
pub mod wire;
