//! Traces as a collector and an MCP server see them. The collector decodes them with the types of
//! the OpenTelemetry project.

#![cfg(target_os = "linux")]
#![allow(clippy::needless_pass_by_value, reason = "values are made where they are passed")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "these are tests")]

mod collector;
#[path = "../common/mod.rs"]
mod common;
mod context;
#[path = "../acp/editor.rs"]
#[allow(dead_code, reason = "the tests of ACP use the rest")]
mod editor;
mod logs;
mod outages;
mod outside;
mod trees;
