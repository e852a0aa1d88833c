//! The gateway: callers on one side; configuration, servers, agents and sessions on the other.
//!
//! A [`Gateway`] is the whole program without a front end. A front end in the same process connects
//! through [`Gateway::caller`], all others through [`socket`]. Both reach the same [`methods`].

mod agents;
mod briefing;
mod callers;
pub mod client_metadata;
mod commands;
mod connections;
mod context;
mod counted_model;
mod elicitations;
mod gateway;
mod hub;
mod lent;
mod manage;
pub mod mcp;
mod methods;
mod metrics;
mod model_choice;
mod pending_questions;
mod question_subjects;
mod questions;
mod reload;
mod runs;
mod sampling;
pub mod serve;
mod setup;
pub mod socket;
pub mod state;
mod store;
pub mod tokens;
mod turn_events;
mod turns;
mod usage;

pub use connections::free_name;
pub use gateway::Gateway;
pub use model_choice::{
    KEYED_PROVIDERS, KeyedProvider, ModelInUse, ModelOrigin, unconfigured_model,
};
pub use setup::{GatewaySetup, Prepare, StartError};
