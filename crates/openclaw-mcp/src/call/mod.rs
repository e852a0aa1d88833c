//! A call to a server, and the conversion of its result.

pub mod bridge;
pub mod library;
mod permission;
pub mod resource_tool;
pub mod results;
pub mod spill;
