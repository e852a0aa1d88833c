//! Listings and calls of an agent's MCP servers, shared by the protocol, the `/mcp` commands and
//! the command line.

mod arguments;
mod call;
mod complete;
mod find;
mod gather;
mod lists;
mod outcome;
mod problem;
mod refresh;
mod server_list;
mod state_text;

pub use arguments::fit_texts;
pub(crate) use call::prompt_for_model;
pub use call::{DirectCaller, call, prompt, read};
pub use complete::complete;
pub use find::{changed, find, known};
pub(crate) use gather::unknown;
pub use gather::{GatheredServers, WaitFor, gather, server, unknown_server, words};
pub use lists::{ToolsWanted, one_tool, prompts, resources, servers, tools};
pub(crate) use lists::{known_anywhere, servers_as};
pub use outcome::outcome;
pub use problem::{Problem, ProblemKind};
pub use refresh::{not_refreshed, refreshed};
pub use server_list::{ListStyle, server_list, status_rows};
pub use state_text::{expiry, retrying, summary};
