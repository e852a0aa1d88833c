//! State that outlives the program: approvals, cached information about servers, large results.

pub mod identity;
pub mod memory;
pub mod pins;
pub mod spill;
