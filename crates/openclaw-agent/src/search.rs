//! A tool that searches for tools, when there are too many to offer all of them (B12).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use openclaw_content::{Source, Text, Untrusted, label};
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::search::{best, seen_by_model};
use openclaw_tools::{
    ApprovalRule, AuditName, Content, Executed, Tool, ToolCall, ToolEffect, ToolFailure, ToolName,
    ToolOutcome, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Name of the search tool.
pub const SEARCH_TOOL: &str = "tool_search";
/// Default number of results.
const USUAL: usize = 8;
/// Maximum number of results.
const MOST: usize = 25;
/// Length limit of the index, in bytes.
const INDEX_CHARS: usize = 24_000;

/// Searches tools by keyword. Found tools can be called from the next round on.
#[derive(Debug)]
pub(crate) struct ToolSearch {
    spec: ToolSpec,
    validator: LazyValidator,
    tools: Vec<Arc<dyn Tool>>,
    found: Mutex<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
}

impl ToolSearch {
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let spec = ToolSpec {
            #[allow(clippy::expect_used, reason = "a constant that a test checks")]
            name: ToolName::new(SEARCH_TOOL).expect("valid tool name"),
            label: "Tool search".to_owned(),
            description:
                "Finds tools by keyword and loads their full descriptions. Search before you say \
                          that something cannot be done; then call the tools found by name."
                    .to_owned(),
            input_schema: ToolSpec::schema(json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "Keywords for what the tool does" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MOST },
                },
                "required": ["query"],
                "additionalProperties": false,
            })),
            effect: ToolEffect::ReadOnly,
        };
        let validator = LazyValidator::new(Arc::clone(&spec.input_schema));
        Self { spec, validator, tools, found: Mutex::default() }
    }

    /// Takes the names found in this round.
    pub(crate) fn take_found(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answer(&self, call: ToolCall<'_>) -> ToolOutcome {
        let arguments = serde_json::from_value(Value::Object(call.arguments.members()));
        let Ok(Arguments { query, limit }) = arguments else {
            let mut outcome = ToolOutcome::failure("Expected `query` and an optional `limit`.");
            outcome.details.failure = Some(ToolFailure::InvalidArguments);
            return outcome;
        };
        let best = best(&self.tools, &query, limit.unwrap_or(USUAL).clamp(1, MOST));
        if best.is_empty() {
            return ours("No tool matches these keywords. Try others.");
        }
        let names = best.iter().map(|tool| tool.spec().name.to_string());
        self.found.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
        let listed = best.iter().map(|tool| {
            let (description, schema) = seen_by_model(&**tool);
            json!({ "name": tool.spec().name.as_str(), "description": description,
                    "inputSchema": *schema })
        });
        let listed: Vec<_> = listed.collect();
        let text = serde_json::to_string_pretty(&listed).unwrap_or_default();
        // Descriptions are written by the servers.
        match label(Untrusted::new(text), Source::other("tool descriptions")) {
            Ok((text, findings)) => {
                let mut outcome = ours("These tools can be called now:");
                outcome.details.untrusted = true;
                outcome.details.findings = findings;
                outcome.content.push(Content::Text(text));
                outcome
            }
            Err(_) => {
                ToolOutcome::failure("The tools cannot be shown: no random numbers are available.")
            }
        }
    }
}

impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> AuditName<'_> {
        AuditName { name: SEARCH_TOOL, source: "openclaw", ..AuditName::default() }
    }

    fn rule(&self, _: &openclaw_tools::Arguments<'_>) -> ApprovalRule {
        ApprovalRule::Never
    }

    fn validator(&self) -> &LazyValidator {
        &self.validator
    }

    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        Box::pin(std::future::ready(Executed::Done(self.answer(call))))
    }
}

fn ours(words: &str) -> ToolOutcome {
    let content = vec![Content::Text(Text::ours(words))];
    ToolOutcome { content, is_error: false, details: Default::default() }
}

/// Lists the tools that can be searched for, by name only. Descriptions are written by the servers
/// and must not appear unlabelled in the system prompt.
pub(crate) fn index(tools: &[Arc<dyn Tool>]) -> String {
    let mut text = format!(
        "There are {} more tools. Call `{SEARCH_TOOL}` to load one before you use it:",
        tools.len()
    );
    for (nth, tool) in tools.iter().enumerate() {
        if text.len() > INDEX_CHARS {
            text.push_str(&format!("\n… and {} more", tools.len() - nth));
            break;
        }
        text.push_str("\n- ");
        text.push_str(tool.spec().name.as_str());
    }
    text
}
