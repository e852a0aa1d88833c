//! The gateway: callers on one side; configuration, servers, agents and sessions on the other.
//!
//! A [`Gateway`] is the whole program without a front end. A front end in the same process connects
//! through [`Gateway::caller`], all others through [`socket`]. Both reach the same [`methods`].

mod agents;
mod approvals;
mod briefing;
mod callers;
pub mod client_metadata;
mod clock;
mod commands;
mod configuration;
mod counted_model;
mod elicitations;
mod gateway;
mod host;
mod hub;
mod lent;
pub mod mcp;
mod methods;
mod metrics;
mod model_choice;
mod pending_requests;
mod resource_cache;
mod runs;
mod sampling;
pub mod serve;
mod sessions;
mod setup;
pub mod socket;
pub mod state;
mod store;
mod surface;
pub mod tokens;
mod turn_events;
mod turns;

pub use gateway::Gateway;
pub use model_choice::{
    KEYED_PROVIDERS, KeyedProvider, ModelInUse, ModelOrigin, unconfigured_model,
};
pub use setup::{GatewaySetup, Prepare, ServeError, StartError};
