//! Integration tests, in one binary to save build time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod agents;
mod editing;
mod gateway;
mod importing;
mod includes;
mod layers;
mod leaks;
mod loading;
mod oauth;
mod providers;
mod reference;
mod robust;
mod schema;
mod support;
#[cfg(feature = "watch")]
mod watching;
