//! Whole turns, with a scripted model and tools made of closures.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod approvals;
mod calls;
mod cancelling;
mod compaction;
mod limits;
mod migration;
mod models;
mod pictures;
mod searching;
mod sessions;
mod support;
