//! State that outlives the program: approvals, and cached information about servers.

pub mod identity;
pub mod memory;
pub mod pins;
pub mod trouble;
