//! A call to a server, and the conversion of its result.

pub mod bridge;
pub mod completion;
pub(crate) mod direct;
pub mod library;
pub(crate) mod output_schema;
pub mod permission;
pub mod resource_tool;
pub mod results;
mod skills;
pub mod spill;
