//! A call to a server, and the conversion of its result.

pub mod completion;
mod consequences;
mod direct;
pub mod library;
mod limits;
mod output_schema;
pub mod resource_tool;
pub mod results;
mod send;
mod skills;
mod tool;
