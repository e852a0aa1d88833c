//! One call: to its server and back, and what its result becomes.

pub mod bridge;
pub mod library;
pub mod resource_tool;
pub mod results;
pub mod spill;
