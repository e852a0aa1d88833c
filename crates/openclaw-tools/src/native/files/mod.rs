//! File tools: `read`, `write`, `edit`, `list`.

mod change;
mod list;
mod pieces;
mod read;

pub(super) use change::{edit, write};
pub(super) use list::list;
pub(super) use read::read;

use super::reply::{Reply, named};
use super::workspace::PathError;
use crate::outcome::Failure;

/// Converts a refusal to a reply.
fn refused(path: &str, why: &PathError) -> Reply {
    let words = format!("{} {why}.", named(path));
    match why {
        PathError::Outside => Reply::failed(Failure::Denied, words),
        _ => Reply::error(words),
    }
}
