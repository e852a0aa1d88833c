//! Gateway protocol 4: frames, methods and events as types, and the WebSocket client.
//!
//! What the published schema defines has its shapes; what is ours alone (`mcp.*`,
//! `sessions.setExtraTools`, `approvals.*`, `config.reload`) is written in the same style. What callers
//! send is read strictly; what a gateway answers may hold more than we know.

pub mod agents;
pub mod approvals;
pub mod chat;
pub mod client;
pub mod config;
pub mod connect;
mod error;
mod event;
pub mod frame;
pub mod health;
pub mod keys;
pub mod mcp;
mod method;
mod number;
pub mod sessions;
pub mod socket;
mod surface;
pub mod tools;

pub use error::{ErrorCode, ErrorShape, detail};
pub use event::{Event, EventReceiver, EventSender, Received, Shutdown, Tick, names};
pub use method::{Method, Request, Response, Rpc, Scope, rpc};
pub use surface::{AskError, Surface, ask, params_of};

/// The version that is spoken here.
pub const PROTOCOL_VERSION: u32 = 4;
