//! Finds tools by keyword, and returns what a model sees of them (B12).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::source::Tool;
use crate::spec::ToolSpec;

/// The description of a tool that has changed and was not approved again.
const WITHHELD: &str = "The description and the schema of this tool have changed, and are withheld \
                        until the user approves them. A call asks the user.";

/// Returns what a model sees of a tool: its description, and its schema.
pub fn seen_by_model(tool: &dyn Tool) -> (&str, Arc<Map<String, Value>>) {
    let spec = tool.spec();
    match tool.is_withheld() {
        true => (WITHHELD, ToolSpec::schema(json!({ "type": "object" }))),
        false => (&spec.description, Arc::clone(&spec.input_schema)),
    }
}

/// Returns the best matches for keywords, best first: a word in the name counts more than one in the description.
pub fn best(tools: &[Arc<dyn Tool>], query: &str, limit: usize) -> Vec<Arc<dyn Tool>> {
    let words: BTreeSet<String> = words(query).collect();
    let mut scored: Vec<(u32, &Arc<dyn Tool>)> = tools
        .iter()
        .map(|tool| (score(tool.spec(), &words), tool))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by(|(a, x), (b, y)| b.cmp(a).then_with(|| x.spec().name.cmp(&y.spec().name)));
    scored.into_iter().take(limit).map(|(_, tool)| Arc::clone(tool)).collect()
}

fn score(spec: &ToolSpec, query: &BTreeSet<String>) -> u32 {
    if query.contains(spec.name.as_str()) {
        return u32::MAX;
    }
    let name: BTreeSet<String> = words(spec.name.as_str()).collect();
    let description: BTreeSet<String> = words(&spec.description).collect();
    query
        .iter()
        .map(|word| {
            let in_name = name.contains(word) || name.iter().any(|it| it.starts_with(word));
            u32::from(in_name) * 5 + u32::from(description.contains(word)) * 2
        })
        .sum()
}

/// The words of a text; whitespace-separated words are kept whole as well, to match full tool
/// names.
fn words(text: &str) -> impl Iterator<Item = String> {
    let whole = text.split_whitespace();
    let pieces = text.split(|c: char| !c.is_alphanumeric());
    whole.chain(pieces).filter(|word| word.len() > 1).map(str::to_lowercase)
}
