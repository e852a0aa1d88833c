//! Bounds on the number of series. Names beyond a bound are counted together, as [`OTHER`].

/// Tools with series of their own, per server.
pub const TOOLS_PER_SERVER: usize = 50;
/// Tools with series of their own, in total.
pub const TOOLS: usize = 200;
/// Servers with series of their own.
pub const SERVERS: usize = 200;
/// Models with series of their own.
pub const MODELS: usize = 50;
/// Agents with series of their own.
pub const AGENTS: usize = 100;
/// Maximum length of a label, in characters.
pub const LABEL_CHARS: usize = 128;
/// The label of what is beyond a bound.
pub const OTHER: &str = "other";
