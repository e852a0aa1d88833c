//! What a tool is to an agent: a name, a description, an outcome, and who may use it.
//!
//! The agent knows tools only through this crate. Where they come from (an MCP server, a client of
//! the gateway, the program itself) it never learns.

mod name;
mod outcome;
mod policy;
mod spec;

pub use name::{BadToolName, ToolName};
pub use outcome::{Content, Details, Failure, Link, ModelText, ToolOutcome};
pub use policy::{BadPattern, Decision, Policy, Rules};
pub use spec::{Effect, ToolSpec};
