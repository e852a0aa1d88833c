//! What is told about an agent's MCP servers, and what they answer: the same to callers, in commands, and
//! in the shell.

mod arguments;
mod call;
mod gather;
mod lists;
mod outcome;
mod problem;
mod refresh;
mod shown;

pub use arguments::fit_texts;
pub use call::{Hand, call, changed, find, known, prompt, read};
pub(crate) use gather::unknown;
pub use gather::{Gathered, Patience, gather, server, unknown_server, words};
pub use lists::{ToolsWanted, one_tool, prompts, resources, servers, tools};
pub(crate) use lists::{known_anywhere, servers_as};
pub use outcome::outcome;
pub use problem::{Problem, ProblemKind};
pub use refresh::{not_refreshed, refreshed};
pub use shown::{auth, state, telling_line, with_try};
