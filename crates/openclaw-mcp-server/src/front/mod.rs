//! The messages of a client: how they are read, bounded, answered and written. The hub and the other
//! servers are behind it.
//!
//! Tool calls may be answered past `rmcp` ([`lines::LineCalls`]): their arguments and results stay JSON
//! text. Everything else goes to `rmcp`, through a [transport](rmcp_transport) of our own. A call whose
//! client answers questions with another request (2026-07-28) waits for it ([`running`]).

pub(crate) mod connection;
mod dispatch;
pub(crate) mod events;
pub(crate) mod incoming;
pub(crate) mod lines;
pub(crate) mod memory;
pub(crate) mod outbox;
mod overlong;
pub(crate) mod reply;
mod rmcp_transport;
pub(crate) mod running;
mod segments;
pub(crate) mod typed;
