//! Assembles the calls of an answer from their fragments.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::message::{Message, Thought, ToolUse};

/// The most calls in one answer; further ones are ignored.
const MAX_CALLS: usize = 128;

/// The calls received so far.
pub(super) struct ReceivedCalls {
    calls: Vec<Call>,
    /// Ids of earlier calls of the conversation.
    taken: HashSet<String>,
    /// Makes an id from a tool's name and a number.
    id: fn(&str, usize) -> String,
    /// Their size in bytes.
    pub(super) bytes: usize,
}

#[derive(Default)]
struct Call {
    number: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    signature: String,
}

impl Call {
    fn len(&self) -> usize {
        self.id.len() + self.name.len() + self.arguments.len() + self.signature.len()
    }
}

impl ReceivedCalls {
    pub(super) fn new(messages: &[Arc<Message>], id: fn(&str, usize) -> String) -> Self {
        let ids = messages.iter().flat_map(|message| match &**message {
            Message::Assistant { tool_uses, .. } => tool_uses.as_slice(),
            _ => &[],
        });
        let taken = ids.map(|call| call.id.clone()).collect();
        Self { calls: Vec::new(), taken, id, bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a complete call.
    pub(super) fn whole(&mut self, id: &str, name: &str, arguments: &Value, signature: &str) {
        if self.calls.len() == MAX_CALLS {
            return;
        }
        self.calls.push(Call::default());
        let at = self.calls.len() - 1;
        self.fill(at, id, name, arguments);
        self.change(at, |call| signature.clone_into(&mut call.signature));
    }

    /// Adds a fragment of the call with this number, or begins that call: text is appended to the
    /// arguments, an object replaces them. Some servers leave out the number, or repeat it with another
    /// id for another call.
    pub(super) fn fragment(
        &mut self,
        number: Option<u64>,
        id: &str,
        name: &str,
        arguments: &Value,
    ) {
        let is_same = |call: &Call| id.is_empty() || call.id.is_empty() || call.id == id;
        let known = match number {
            Some(_) => self.calls.iter().rposition(|call| call.number == number && is_same(call)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        // A number is not used as an index: a server can make it billions.
        let at = known.unwrap_or(self.calls.len());
        if at == MAX_CALLS {
            return;
        }
        if known.is_none() {
            self.calls.push(Call { number, ..Call::default() });
        }
        self.fill(at, id, name, arguments);
    }

    /// Appends to the arguments of a call that has begun.
    pub(super) fn more(&mut self, number: Option<u64>, arguments: &Value) {
        if let Some(at) = self.calls.iter().rposition(|call| call.number == number) {
            self.fill(at, "", "", arguments);
        }
    }

    /// Sets the complete arguments of a call: fragments may have been truncated.
    pub(super) fn settle(&mut self, number: Option<u64>, id: &str, name: &str, arguments: &str) {
        self.fragment(number, id, name, &Value::Null);
        let known = self.calls.iter().rposition(|call| call.number == number);
        if let Some(at) = known.filter(|_| !arguments.is_empty()) {
            self.change(at, |call| arguments.clone_into(&mut call.arguments));
        }
    }

    fn fill(&mut self, at: usize, id: &str, name: &str, arguments: &Value) {
        self.change(at, |call| {
            if call.id.is_empty() {
                id.clone_into(&mut call.id);
            }
            if call.name.is_empty() {
                name.clone_into(&mut call.name);
            }
            match arguments {
                Value::Null => {}
                Value::String(more) => call.arguments.push_str(more),
                whole => call.arguments = whole.to_string(),
            }
        });
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Call)) {
        let Some(call) = self.calls.get_mut(at) else { return };
        let before = call.len();
        change(call);
        self.bytes = self.bytes.saturating_sub(before).saturating_add(call.len());
    }

    /// Returns the calls in the order in which they began, and their signatures.
    pub(super) fn finish(&mut self) -> (Vec<ToolUse>, Vec<Thought>) {
        let mut thoughts = Vec::new();
        let mut finished: Vec<ToolUse> = Vec::new();
        for mut call in std::mem::take(&mut self.calls) {
            let id = self.free_id(&call, &finished);
            if !call.signature.is_empty() {
                let signature = std::mem::take(&mut call.signature);
                thoughts.push(Thought::OfCall { id: id.clone(), signature });
            }
            if call.arguments.is_empty() {
                call.arguments.push_str("{}");
            }
            finished.push(ToolUse { id, name: call.name, arguments: call.arguments });
        }
        (finished, thoughts)
    }

    /// An id that no other call has: the provider's, if it is unique.
    fn free_id(&self, call: &Call, finished: &[ToolUse]) -> String {
        let is_free = |id: &str| {
            !id.is_empty()
                && !self.taken.contains(id)
                && finished.iter().all(|before| before.id != id)
        };
        if is_free(&call.id) {
            return call.id.clone();
        }
        let first = self.taken.len() + finished.len();
        let mut ids = (first..=first * 2).map(|number| (self.id)(&call.name, number));
        ids.find(|id| is_free(id)).unwrap_or_else(|| (self.id)(&call.name, usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calls(fragments: Vec<Value>) -> Vec<(String, String, String)> {
        let mut calls = ReceivedCalls::new(&[], |_, number| format!("call_{number}"));
        for fragment in fragments {
            let text = |at: &str| fragment[at].as_str().unwrap_or_default();
            calls.fragment(fragment["n"].as_u64(), text("id"), text("name"), &fragment["args"]);
        }
        let finished = calls.finish().0.into_iter();
        finished.map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn nonconforming_fragments_are_accepted() {
        let first = json!({"id": "a", "name": "x", "args": "{"});
        let more = json!({"args": "}"});
        let second = json!({"id": "b", "name": "y", "args": {"c": 1}});
        let without_numbers = calls(vec![first, more, second]);
        assert_eq!(without_numbers, [call("a", "x", "{}"), call("b", "y", "{\"c\":1}")]);

        let repeated =
            |id: &str, text: &str| json!({"n": u32::MAX, "id": id, "name": "x", "args": text});
        let repeated = calls(vec![repeated("a", "{"), repeated("", "}"), repeated("b", "{}")]);
        assert_eq!(repeated, [call("a", "x", "{}"), call("b", "x", "{}")]);

        let many = (0..1_000).map(|number| json!({"n": number, "name": "x"}));
        assert_eq!(calls(many.collect()).len(), MAX_CALLS);
    }
}
