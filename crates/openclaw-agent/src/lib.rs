//! The agent loop: sends a message to a model and calls the tools it requests until it has
//! answered.
//!
//! From the top down: an [`Agent`] runs a [`Turn`]. [`history`] holds and stores the messages,
//! [`compaction`] makes them fit. [`offer`] decides which tools a model sees, [`search`] finds the
//! others, [`calls`] executes calls. The agent does not depend on MCP.

mod agent;
mod budget;
mod calls;
mod compaction;
mod error;
mod event;
mod history;
mod lease;
mod limits;
mod near;
mod offer;
mod prompt;
mod repetition;
mod search;
mod stream;
mod tokens;
mod traced;
mod turn;

pub use agent::Agent;
pub use calls::part_of;
pub use error::TurnError;
pub use event::{CallEnded, CallProgress, CallStarted, LoopEvent, Observer};
pub use history::{CallNote, Compacted, HistoryMessage, MessageRecord};
pub use limits::AgentLimits;
pub use near::did_you_mean;
pub use search::SEARCH_TOOL;
pub use turn::{EndReason, Turn, TurnResult};
