//! The tools for files: `read`, `write`, `edit`, `list`.

mod change;
mod list;
mod pieces;
mod read;

pub(super) use change::{edit, write};
pub(super) use list::list;
pub(super) use read::read;

use super::reply::{Reply, named};
use super::workspace::Refused;
use crate::outcome::Failure;

/// Why nothing was done, in words.
fn refused(path: &str, why: &Refused) -> Reply {
    let words = format!("{} {why}.", named(path));
    match why {
        Refused::Outside => Reply::failed(Failure::Denied, words),
        _ => Reply::error(words),
    }
}
