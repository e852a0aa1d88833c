//! Exposes a fleet of MCP servers as tools, resources and prompts.
//!
//! From the top down, where nothing uses what is above it: a [`fleet`] holds the servers of all agents
//! and each agent's view of them. A [`call`] is one tool call, one resource read or one prompt; it uses
//! an entry of an agent's [`catalogue`] and the [`services`] of all calls. A [`server`] is kept alive by
//! its supervisor. State that outlives the program is in a [`store`]. What a server offers is its
//! [`inventory`]. One connection to a server is `openclaw-mcp-client`.

pub mod call;
pub mod catalogue;
pub mod fleet;
pub mod inventory;
pub mod server;
pub mod services;
pub mod store;
