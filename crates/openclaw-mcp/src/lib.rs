//! A fleet of MCP servers becomes tools, resources and prompts.
//!
//! Being built. Here are the pieces that stand by themselves: the bytes of a connection ([`wire`]),
//! the processes of local servers ([`launch`], [`process`], [`guard`], [`stderr`]), which protocol a server speaks
//! ([`era`]), the tools that it lists ([`listing`]) and their names ([`naming`]), and when to try again
//! ([`backoff`]). [`local`] joins them to
//! a connection; its supervision, remote servers and the catalogue of tools follow.

pub mod backoff;
pub mod era;
pub mod guard;
pub mod launch;
pub mod listing;
pub mod local;
pub mod naming;
pub mod process;
pub mod stderr;
pub mod wire;
