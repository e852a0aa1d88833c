//! The Agent Client Protocol (ACP, version 1) on stdin and stdout: openclaw as an agent in an editor.
//!
//! [`serve`] translates between ACP and the gateway's `Surface`. Each ACP session has its own
//! connection to the gateway, and a private fleet of the MCP servers that the editor passed: its
//! tools are lent to the gateway's session (`sessions.setExtraTools`), and their calls come back
//! over that connection. ACP types do not leave this crate.

mod agent;
mod blocks;
mod calls;
mod changes;
mod commands;
mod content;
mod editor_tools;
mod elicit;
mod error;
mod events;
mod history;
mod lending;
mod lines;
mod opening;
mod options;
mod outbox;
mod permission;
mod prompts;
mod publish;
mod request;
mod serve;
mod servers;
mod session;
mod turn;
mod updates;

pub use serve::{AcpOptions, AcpServeError, WorksIn, serve};
pub use servers::ServerSetup;
