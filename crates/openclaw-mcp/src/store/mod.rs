//! What outlives the program: approvals, and what is remembered of servers.

pub mod memory;
pub mod pins;
