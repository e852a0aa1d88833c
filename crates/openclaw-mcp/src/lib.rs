//! Exposes a fleet of MCP servers as tools, resources and prompts.
//!
//! From the top down: a [`fleet`] holds the servers of all agents and each agent's view of them. A
//! [`server`] is kept alive by its supervisor; its tools, resources and prompts are its
//! [`inventory`]. A [`call`] is one tool call, one resource read or one prompt. State that outlives
//! the program is in a [`store`]. One connection to a server is `openclaw-mcp-client`.

pub mod call;
pub mod fleet;
pub mod inventory;
pub mod server;
pub mod store;
