//! The gateway: callers on one side; configuration, servers, agents and sessions on the other.

pub mod socket;
pub mod state;
