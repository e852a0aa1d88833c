//! Checks results against the output schema that a tool declares (T13), as the TypeScript SDK does.
//!
//! A result that violates it is still shown: the outcome is an error that says so, followed by what
//! the server returned.

use openclaw_content::Text;
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{Content, ToolFailure, ToolOutcome};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::results::named;
use openclaw_mcp_client::wire::json::Json;

/// How a result violates the output schema of its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputViolation {
    /// It has no structured content.
    Missing,
    /// Its structured content does not match the schema. The text quotes the server.
    Mismatch(String),
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow, default, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isError")]
    is_error: Option<&'a RawValue>,
}

/// Checks a result. An error needs no structured content. A schema that cannot be used checks
/// nothing.
pub(crate) fn check(result: &Json, schema: &LazyValidator) -> Option<OutputViolation> {
    // Anything else is reported as an invalid response.
    let result: CallResult<'_> = serde_json::from_str(result.get()).ok()?;
    let Some(structured) = result.structured else {
        let is_error = result.is_error.is_some_and(|flag| flag.get() == "true");
        return (!is_error).then_some(OutputViolation::Missing);
    };
    if schema.plainly_fits(structured) {
        return None;
    }
    let validator = schema.get().ok()?;
    let violations = validator.check_result(structured).err()?;
    Some(OutputViolation::Mismatch(violations.to_string()))
}

impl OutputViolation {
    /// Makes an outcome an error that says how it violates the schema.
    pub(crate) fn report(self, outcome: &mut ToolOutcome) {
        let details = &mut outcome.details;
        if details.failure.is_some() {
            return;
        }
        let server = details.server.as_deref().unwrap_or_default();
        let tool = &details.tool;
        let named = named(server);
        let (words, violations) = match self {
            Self::Missing => (
                format!(
                    "{named} declares an output schema for this tool, but returned no structured content."
                ),
                "it has no structured content".to_owned(),
            ),
            Self::Mismatch(violations) => (
                format!(
                    "{named} returned structured content that does not match the tool's output schema."
                ),
                violations,
            ),
        };
        let tool = tool.as_deref().unwrap_or_default();
        tracing::warn!(server, tool, %violations, "result does not match the output schema");
        details.failure = Some(ToolFailure::InvalidResponse);
        details.violations = Some(violations.into());
        outcome.is_error = true;
        let words = format!("{words} What it returned may be wrong or incomplete:");
        outcome.content.insert(0, Content::Text(Text::ours(words)));
    }
}
