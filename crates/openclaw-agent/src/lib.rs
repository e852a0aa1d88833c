//! The loop: a message goes to a model, the tools that it asks for are called, until it has answered.
//!
//! From the top down: an [`Agent`] takes a [`Turn`]. [`history`] is what was said before, and survives;
//! [`compaction`] makes it fit. [`offer`] decides which tools a model gets to see, [`search`] finds the
//! others, [`calls`] carries calls out. The agent has never heard of MCP.

mod agent;
mod budget;
mod calls;
mod compaction;
mod event;
mod hiding;
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
mod turn;

pub use agent::{Agent, TurnError};
pub use event::{CallEnded, CallProgress, CallStarted, Event, Observer};
pub use history::{CallNote, Compacted, Record, Said};
pub use limits::Limits;
pub use near::did_you_mean;
pub use search::SEARCH_TOOL;
pub use turn::{Answer, Ended, Turn};
