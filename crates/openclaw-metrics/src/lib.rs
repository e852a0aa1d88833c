//! Counts what the program does: tool calls, servers, turns, model requests (N4).
//!
//! [`Metrics`] is passed down as a handle; where it is [off](Metrics::off), nothing is counted. A
//! component looks its series up once and keeps it: counting is then a relaxed addition. The number
//! of series is [bounded](limits), whatever servers and clients name things.

mod calls;
pub mod counter;
pub mod families;
pub mod labels;
pub mod latency;
pub mod limits;
mod models;
mod names;
pub mod prometheus;
mod registry;
mod render;
mod sample;
mod server;
mod turns;

pub use calls::CallSeries;
pub use models::ModelSeries;
pub use registry::Metrics;
pub use render::Gauges;
pub use sample::{CallSample, Sample, ServerSample, ToolSample};
pub use server::{ServerInstance, ServerSeries};
pub use turns::TurnSeries;
