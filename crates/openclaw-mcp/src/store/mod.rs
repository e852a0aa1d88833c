//! State that outlives the program: approvals, and cached information about servers.

pub mod memory;
pub mod pins;
