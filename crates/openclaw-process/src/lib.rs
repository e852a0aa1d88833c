//! Child processes and their descendants, so that none is left behind: neither when a child is
//! ended, nor when this program is killed (L5).
//!
//! [`ProcessTree`] starts a child and owns it: MCP servers and the commands of the `exec` tool are
//! both started this way. The child is announced with [`Guard::plan`] before it is started, and
//! registered with [`Planned::started`] afterwards. The returned [`ProcessFamily`] finds the descendants
//! that have left the process group.

#[cfg(unix)]
mod children;
pub mod guard;
#[cfg(unix)]
mod lineage;
pub mod program;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod snapshot;
mod tree;

pub use guard::{Guard, GuardCommand, Planned, ProcessFamily, Strays};
pub use tree::{Isolation, ProcessTree, exit_words};
