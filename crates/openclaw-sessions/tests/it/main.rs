//! Tests of the session store with real files and real processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod damage;
mod files;
mod full_disk;
mod leases;
mod processes;
mod store;
mod support;
