//! Messages that are commands: executed without a model (M1, B15).
//!
//! A command is a short form of a method, and has its scope ([`ChatCommand::method`]).

mod absent;
mod command;
mod execute;
mod list;
mod model;

pub(crate) use command::ChatCommand;
pub(crate) use execute::{CommandRun, ParsedMessage};
pub(crate) use list::list;
