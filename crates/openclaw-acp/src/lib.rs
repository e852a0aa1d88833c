//! The Agent Client Protocol (ACP, version 1) on stdin and stdout: openclaw as an agent in an editor.
//!
//! [`serve`] translates between ACP and the gateway's `Surface`. Each ACP session has its own
//! connection to the gateway, and a private fleet of the MCP servers that the editor passed: its
//! tools are lent to the gateway's session (`sessions.setExtraTools`), and their calls come back
//! over that connection. ACP types do not leave this crate.

mod agent;
mod blocks;
mod builtin;
mod calls;
mod catalog;
mod changes;
mod client;
mod commands;
mod content;
mod current_turn;
mod describe;
mod editor_tools;
mod elicit;
mod error;
mod events;
mod folders;
mod gateway;
mod history;
mod ids;
mod lending;
mod lent_calls;
mod lent_tools;
mod lines;
mod open_calls;
mod opening;
mod options;
mod outbox;
mod permission;
mod prompts;
mod publish;
mod questions;
mod request;
mod serve;
mod servers;
mod servers_command;
mod session;
mod tasks;
mod turn;
mod updates;

pub use agent::{AcpOptions, WorksIn};
pub use serve::{AcpServeError, serve};
pub use servers::ServerSetup;
