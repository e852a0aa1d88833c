//! MCP servers, for the protocol, the shell and chats: which ones run (`servers`, `connections`,
//! `logins`), what they offer and calls of that, and how all of it is managed (`requests`, `manage`).

mod arguments;
mod call;
mod complete;
mod connections;
mod find;
mod gather;
mod lists;
mod logins;
mod manage;
mod outcome;
mod problem;
mod progress;
mod refresh;
mod requests;
mod server_list;
mod servers;
mod state_text;

pub use arguments::fit_texts;
pub(crate) use call::{DirectCaller, prompt_for_model};
pub use connections::free_name;
pub use gather::unknown_server;
pub(crate) use manage::{ManageTool, McpChatCommand, NAME as MANAGE_TOOL};
pub use problem::{Problem, ProblemKind};
pub(crate) use progress::{MAX_TOKEN, with_progress};
pub(crate) use requests::{ServerRequest, logs};
pub use server_list::{ListedServer, status_rows};
pub(crate) use servers::McpServers;
pub use state_text::{expiry, retrying, summary};
