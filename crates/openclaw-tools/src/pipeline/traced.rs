//! The span of a call, in the semantic conventions for generative AI and MCP.

use openclaw_trace::{Span, SpanKind};

use super::record::RecordedCall;
use crate::audit::AuditOutcome;
use crate::source::AuditName;

/// The operation, and the name of a span until its tool is known.
pub(super) const NAME: &str = "execute_tool";
/// The source of tools that are called over MCP.
const MCP: &str = "mcp";
/// The method of a tool call.
const CALL: &str = "tools/call";
/// The other requests that pass the pipeline: their method is the name of the call.
const READ: &str = "resources/read";
const PROMPT: &str = "prompts/get";

/// Describes a call that is over.
pub(super) fn describe(
    span: &Span,
    origin: AuditName<'_>,
    subject: &impl RecordedCall,
    ended: AuditOutcome,
) {
    match (origin.source, origin.name) {
        // The URI is not in the name, of which there should be few.
        (MCP, READ) => {
            span.rename(READ, SpanKind::Client);
            span.set("mcp.method.name", READ);
            span.set_text("mcp.resource.uri", origin.raw_tool);
        }
        (MCP, PROMPT) => {
            span.rename(format!("{PROMPT} {}", origin.raw_tool), SpanKind::Client);
            span.set("mcp.method.name", PROMPT);
            span.set_text("gen_ai.prompt.name", origin.raw_tool);
        }
        (MCP, _) => {
            let tool = if origin.raw_tool.is_empty() { origin.name } else { origin.raw_tool };
            span.rename(format!("{CALL} {tool}"), SpanKind::Client);
            span.set("mcp.method.name", CALL);
            span.set("gen_ai.operation.name", NAME);
            span.set_text("gen_ai.tool.name", tool);
        }
        (_, name) => {
            span.rename(format!("{NAME} {name}"), SpanKind::Internal);
            span.set("gen_ai.operation.name", NAME);
            span.set_text("gen_ai.tool.name", name);
            span.set("gen_ai.tool.type", "function");
        }
    }
    span.set_text("openclaw.mcp.server", origin.server);
    span.set_text("gen_ai.agent.name", subject.agent().unwrap_or_default());
    span.set_text("gen_ai.conversation.id", subject.session().unwrap_or_default());
    match ended {
        AuditOutcome::Ok => {}
        AuditOutcome::Error => span.fail("tool_error", ""),
        AuditOutcome::Cancelled | AuditOutcome::Failed(_) => span.fail(ended.name(), ""),
    }
}
