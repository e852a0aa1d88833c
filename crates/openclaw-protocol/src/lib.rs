//! Gateway protocol 4: frames, methods and events as types, and the WebSocket client.
//!
//! Types that the published schema defines have its shapes; our own extensions (`mcp.*`, `metrics.sample`,
//! `sessions.setExtraTools`, `sessions.title`, `approvals.*`, `config.reload`, `gateway.stop`) follow the same style. Unknown
//! fields are ignored: the other side may be newer.

pub mod agent_event;
pub mod agents;
pub mod approvals;
mod attachment;
pub mod chat;
pub mod client;
pub mod config;
pub mod connect;
mod error;
mod event;
mod fields;
pub mod frame;
pub mod health;
pub mod keys;
pub mod logs;
pub mod mcp;
mod method;
pub mod metrics;
pub mod models;
mod payload;
mod principal;
pub mod runs;
pub mod sessions;
mod settled;
pub mod socket;
mod surface;
pub mod tools;

pub use client::{Connect, PublishingNode};
pub use error::{ErrorCode, ErrorShape, detail};
pub use event::{Event, EventPayload, EventReceiver, EventSender, Received, Shutdown, Tick, names};
pub use method::{Method, Request, Response, Rpc, Scope, params_of, rpc};
pub use principal::{AccessToken, Principal};
pub use settled::servers_settled;
pub use surface::{RequestError, Surface, ask, ask_in};

/// The protocol version that this crate implements.
pub const PROTOCOL_VERSION: u32 = 4;
