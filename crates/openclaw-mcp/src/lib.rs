//! A fleet of MCP servers becomes tools, resources and prompts.
//!
//! Being built. Here are the pieces that stand by themselves: the bytes of a connection ([`wire`]),
//! the processes of local servers ([`process`], [`guard`], [`stderr`]), which protocol a server speaks
//! ([`era`]), the tools that it lists ([`listing`]) and their names ([`naming`]), and when to try again
//! ([`backoff`]). What joins them, a
//! supervised connection and the catalogue of its tools, follows.

pub mod backoff;
pub mod era;
pub mod guard;
pub mod listing;
pub mod local;
pub mod naming;
pub mod process;
pub mod stderr;
pub mod wire;
