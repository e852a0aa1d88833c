//! Exposes a fleet of MCP servers as tools, resources and prompts.
//!
//! From the top down: a [`fleet`] holds the servers of all agents and each agent's view of them. A
//! [`server`] is kept alive by its supervisor; its tools, resources and prompts are its
//! [`inventory`]. A [`connection`] runs over the pipes of a [`process`] or over HTTP, using the
//! framing in [`wire`]. A [`call`] is one tool call, one resource read or one prompt. State that
//! outlives the program is in a [`store`].

pub mod call;
pub mod connection;
pub mod fleet;
pub mod inventory;
pub mod process;
pub mod server;
pub mod store;
pub mod wire;
