//! The demo server's tools. All are read-only and confined to this process.

use std::time::{Duration, SystemTime};

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam,
    Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::clock::rfc3339;
use crate::schema::read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// What to say.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Sum {
    /// The sum of both numbers.
    sum: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Now {
    /// How many minutes the clock is ahead of UTC; 0 if not given.
    #[serde(default)]
    #[schemars(range(min = -1439, max = 1439))]
    offset_minutes: i64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Count {
    /// The number to count to.
    #[schemars(range(min = 1, max = 1000))]
    to: u32,
    /// How long each number takes, in milliseconds.
    #[serde(default = "usual_pause")]
    #[schemars(range(max = 1000))]
    pause_ms: u32,
}

fn usual_pause() -> u32 {
    200
}

pub(super) fn all() -> Vec<Tool> {
    vec![
        tool::<Echo>("echo", "Echo", "Returns the text."),
        tool::<Add>("add", "Add", "Adds two numbers.").with_output_schema::<Sum>(),
        tool::<Now>("now", "Clock", "Returns the time, as 2026-07-28T12:00:00Z."),
        tool::<Count>("count", "Count", "Counts slowly, with progress. Can be cancelled."),
    ]
}

fn tool<Input: JsonSchema + 'static>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, description, JsonObject::new())
        .with_input_schema::<Input>()
        .with_title(title)
        .with_annotations(hints)
}

pub(super) async fn call(
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let outcome = match request.name.as_ref() {
        "echo" => read(&arguments).map(|Echo { text }| text_result(text)),
        "add" => read(&arguments).and_then(|Add { a, b }| add(a, b)),
        "now" => read(&arguments).and_then(|Now { offset_minutes }| now(offset_minutes)),
        "count" => match read(&arguments) {
            Ok(count) => run_count(count, &context).await,
            Err(problem) => Err(problem),
        },
        unknown => {
            let message = format!("unknown tool `{unknown}`");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    // Errors that the model can correct are results, not protocol errors.
    Ok(outcome.unwrap_or_else(|problem| CallToolResult::error(vec![ContentBlock::text(problem)])))
}

fn text_result(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn add(a: f64, b: f64) -> Result<CallToolResult, String> {
    let sum = number(a + b).ok_or("the sum is too large")?;
    let mut result = text_result(sum.to_string());
    result.structured_content = Some(json!({ "sum": sum }));
    Ok(result)
}

/// Converts a whole number to an integer. `None` if the number is not finite.
fn number(value: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return Some((value as i64).into());
    }
    Number::from_f64(value)
}

fn now(offset_minutes: i64) -> Result<CallToolResult, String> {
    if offset_minutes.abs() > 1439 {
        return Err("`offset_minutes` must be less than a day".to_owned());
    }
    Ok(text_result(rfc3339(SystemTime::now(), offset_minutes)))
}

async fn run_count(
    Count { to, pause_ms }: Count,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, String> {
    if !(1..=1000).contains(&to) || pause_ms > 1000 {
        return Err("`to` must be at least 1, and neither number above 1000".to_owned());
    }
    let token = context.meta.get_progress_token();
    for number in 1..=to {
        tokio::select! {
            () = context.ct.cancelled() => return Err(format!("cancelled at {number}")),
            () = tokio::time::sleep(Duration::from_millis(pause_ms.into())) => {}
        }
        if let Some(token) = &token {
            let progress = ProgressNotificationParam::new(token.clone(), number.into())
                .with_total(to.into())
                .with_message(number.to_string());
            // If sending fails, the result is still returned.
            let _ = context.peer.notify_progress(progress).await;
        }
    }
    Ok(text_result(format!("counted to {to}")))
}
