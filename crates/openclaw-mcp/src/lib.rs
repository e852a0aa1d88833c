//! A fleet of MCP servers becomes tools, resources and prompts.
//!
//! Being built: names of tools ([`naming`]), when to try again ([`backoff`]), and the processes of
//! local servers ([`process`], [`guard`]) are here; connections follow.

pub mod backoff;
pub mod guard;
pub mod naming;
pub mod process;
pub mod wire;
