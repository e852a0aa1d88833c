//! What a tool is to an agent: a name, a description, an outcome, and who may use it.
//!
//! The agent knows tools only through this crate. Where they come from (an MCP server, a client of
//! the gateway, the program itself) it never learns.

pub mod address;
mod approval;
mod media;
mod name;
#[cfg(feature = "native")]
pub mod native;
mod outcome;
mod policy;
pub mod schema;
mod set;
mod spec;

pub use approval::{Answer, Approval, Approver, Nobody, Question, Standing, Why};
pub use media::{MediaKind, NotPassed, check_media, image_type};
pub use name::{BadToolName, ToolName};
pub use outcome::{Blob, Content, Details, Failure, Link, ToolOutcome};
pub use policy::{BadPattern, Decision, Policy, Rules};
pub use set::{NoTools, Tool, ToolCall, ToolSet, Toolbox};
pub use spec::{Effect, ToolSpec};
