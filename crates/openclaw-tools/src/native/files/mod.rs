//! File tools: `read`, `write`, `edit`, `list`.

mod change;
mod list;
mod pieces;
mod read;

pub(super) use change::{edit, write};
pub(super) use list::list;
pub(super) use read::read;

use super::reply::{OutcomeBuilder, named};
use super::workspace::PathError;
use crate::outcome::ToolFailure;

/// Converts a refusal to a reply.
fn refused(path: &str, why: &PathError) -> OutcomeBuilder {
    let words = format!("{} {why}.", named(path));
    match why {
        PathError::Outside => OutcomeBuilder::failed(ToolFailure::Denied, words),
        _ => OutcomeBuilder::error(words),
    }
}
