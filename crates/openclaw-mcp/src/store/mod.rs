//! State that outlives the program: approvals, and cached information about servers.

pub mod identity;
pub mod last_error;
pub mod memory;
pub mod pins;
