//! Calls over a lane.

use std::time::Duration;

use openclaw_mcp::wire::{CallError, FastLane, Limits, ToolCall};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use serde_json::Value;
use serde_json::value::RawValue;

/// Enough for a busy machine.
pub(crate) const LIMITS: Limits =
    Limits { timeout: Duration::from_secs(120), cap: Duration::from_secs(300) };

pub(crate) fn client() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("test", "0"))
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// Calls a tool with these arguments and members of `_meta`.
pub(crate) async fn call_tool(
    lane: &FastLane,
    (tool, arguments, meta): (&str, &str, &str),
    limits: Limits,
) -> Result<Value, CallError> {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    let call = ToolCall { tool, arguments: &arguments, meta, more: "", headers: &[], trace: None };
    let result = lane.call_tool(call, limits).await?;
    Ok(serde_json::from_str(result.get()).unwrap())
}
