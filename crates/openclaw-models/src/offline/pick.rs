//! Selects the tool that is meant, and fills in its arguments.
//!
//! Tool names are interpreted as a language model would. This routes nothing: the call takes the same
//! pipeline as every call.

use std::sync::Arc;

use serde_json::{Map, Number, Value};

use crate::model::ToolOffer;

/// Returns the first tool whose name is or ends in one of these words.
pub(super) fn ending_in<'t>(tools: &'t [Arc<ToolOffer>], words: &[&str]) -> Option<&'t ToolOffer> {
    let exact = tools.iter().find(|tool| words.contains(&tool.name.as_str()));
    let ends = |tool: &&Arc<ToolOffer>| words.contains(&last_word(&tool.name));
    exact.or_else(|| tools.iter().find(ends)).map(|tool| &**tool)
}

fn last_word(name: &str) -> &str {
    let is_border = |c: char| !c.is_ascii_alphanumeric();
    name.trim_end_matches(is_border).rsplit(is_border).next().unwrap_or(name)
}

/// Whether a property has one of these types.
fn is_of_type(property: &Value, kinds: &[&str]) -> bool {
    match property.get("type") {
        Some(Value::String(kind)) => kinds.contains(&kind.as_str()),
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).any(|kind| kinds.contains(&kind))
        }
        _ => false,
    }
}

fn properties(tool: &ToolOffer) -> impl Iterator<Item = (&String, &Value)> {
    tool.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Returns arguments with these numbers in the first numeric properties; none if there are too few.
pub(super) fn with_numbers(tool: &ToolOffer, numbers: &[f64]) -> Option<String> {
    let takers = properties(tool).filter(|(_, about)| is_of_type(about, &["number", "integer"]));
    let filled: Map<String, Value> =
        takers.zip(numbers).map(|((name, _), number)| (name.clone(), written(*number))).collect();
    (filled.len() == numbers.len()).then(|| Value::Object(filled).to_string())
}

/// Writes whole numbers as integers, for properties of type `integer`.
fn written(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

/// Returns arguments with this text in the property with one of these names, or else in the first
/// string property.
pub(super) fn with_text(tool: &ToolOffer, names: &[&str], text: &str) -> Option<String> {
    let takers: Vec<&String> = properties(tool)
        .filter(|(_, about)| is_of_type(about, &["string"]))
        .map(|(name, _)| name)
        .collect();
    let named = takers.iter().find(|name| names.contains(&name.as_str()));
    let name = named.or_else(|| takers.first())?;
    let filled = Map::from_iter([((*name).clone(), Value::from(text))]);
    Some(Value::Object(filled).to_string())
}

/// Whether the tool requires this property.
pub(super) fn requires(tool: &ToolOffer, property: &str) -> bool {
    let required = tool.schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|name| name == property))
}
