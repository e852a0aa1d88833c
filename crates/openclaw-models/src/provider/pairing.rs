//! Pairs every call with one result and every result with one call. In a truncated or interrupted
//! conversation they are not paired, and providers reject all of it.

use std::sync::Arc;

use crate::message::{Message, Part, ToolResult, ToolUse};

/// Returns the conversation with a note for every missing result, and without results that belong to
/// no call.
pub(super) fn paired(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut paired = Vec::with_capacity(messages.len());
    let mut rest = messages.iter().peekable();
    while let Some(message) = rest.next() {
        match &**message {
            Message::Tool { .. } => {}
            Message::Assistant { tool_uses, .. } if !tool_uses.is_empty() => {
                paired.push(message.clone());
                let mut results = Vec::new();
                while let Some(found) = rest.next_if(|next| matches!(***next, Message::Tool { .. }))
                {
                    if let Message::Tool { results: found } = &**found {
                        results.extend(found);
                    }
                }
                let results = tool_uses.iter().map(|call| result_of(call, &results)).collect();
                paired.push(Arc::new(Message::Tool { results }));
            }
            _ => paired.push(message.clone()),
        }
    }
    paired
}

fn result_of(call: &ToolUse, results: &[&ToolResult]) -> ToolResult {
    let found = results.iter().find(|result| result.id == call.id);
    found.map_or_else(
        || ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            parts: vec![Part::ours("There is no result: the call was interrupted.")],
            is_error: true,
        },
        |result| (*result).clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> ToolUse {
        ToolUse { id: id.into(), name: "add".into(), arguments: "{}".into() }
    }

    fn result(id: &str) -> ToolResult {
        ToolResult { id: id.into(), name: "add".into(), parts: Vec::new(), is_error: false }
    }

    fn calls(ids: &[&str]) -> Message {
        Message::Assistant {
            text: String::new(),
            reasoning: None,
            tool_uses: ids.iter().map(|id| call(id)).collect(),
            parts: Vec::new(),
        }
    }

    #[test]
    fn missing_results_are_added_and_orphans_are_dropped() {
        let orphan = Message::Tool { results: vec![result("0")] };
        let one = Message::Tool { results: vec![result("b"), result("x")] };
        let other = Message::Tool { results: vec![result("a")] };
        let cut = [orphan, calls(&["a", "b", "c"]), one, other, Message::user("hi"), calls(&["d"])];
        let whole = paired(&cut.map(Arc::new));
        let ids: Vec<Vec<(&str, bool)>> = whole
            .iter()
            .filter_map(|message| match &**message {
                Message::Tool { results } => {
                    Some(results.iter().map(|one| (one.id.as_str(), one.is_error)).collect())
                }
                _ => None,
            })
            .collect();
        assert_eq!(ids, [vec![("a", false), ("b", false), ("c", true)], vec![("d", true)]]);
        assert_eq!(whole.len(), 5);
        assert_eq!(paired(&whole), whole);
    }
}
