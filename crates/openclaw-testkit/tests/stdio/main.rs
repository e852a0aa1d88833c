//! The stdio server behaves as its script says.
#![expect(clippy::unwrap_used, reason = "the helpers of tests may fail as tests do")]

mod calls;
mod lists;
mod processes;
mod versions;
