//! Calls in Chat Completions, from their fragments.
//!
//! `genai` would do so, too, but it drops fragments without a number, which some servers send; makes room
//! for as many calls as a number says, which a server can make billions; and takes a name that is repeated
//! without an id for a new id.

use genai::chat::ToolCall;
use serde_json::Value;

/// More calls are not made in one answer.
const MAX_CALLS: usize = 128;

/// The calls so far.
#[derive(Default)]
pub(super) struct Deltas {
    calls: Vec<Call>,
}

#[derive(Default)]
struct Call {
    number: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Deltas {
    /// A message's fragments.
    pub(super) fn take(&mut self, fragments: &[Value]) {
        for fragment in fragments {
            let number = fragment.get("index").and_then(Value::as_u64);
            let text = |at: &str| fragment.pointer(at).and_then(Value::as_str).unwrap_or_default();
            let (id, name) = (text("/id"), text("/function/name"));
            let Some(call) = self.call(number, id) else { continue };
            if call.id.is_empty() {
                id.clone_into(&mut call.id);
            }
            if call.name.is_empty() {
                name.clone_into(&mut call.name);
            }
            match fragment.pointer("/function/arguments") {
                Some(Value::String(more)) => call.arguments.push_str(more),
                // Against the rules, but clear.
                Some(whole @ Value::Object(_)) => call.arguments = whole.to_string(),
                _ => {}
            }
        }
    }

    /// The call that a fragment belongs to, if there may be one more.
    fn call(&mut self, number: Option<u64>, id: &str) -> Option<&mut Call> {
        // Calls with the same number and different ids are different calls.
        let is_same = |call: &Call| id.is_empty() || call.id.is_empty() || call.id == id;
        let known = match number {
            Some(_) => self.calls.iter().rposition(|call| call.number == number && is_same(call)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        if known.is_none() && self.calls.len() < MAX_CALLS {
            self.calls.push(Call { number, ..Call::default() });
            return self.calls.last_mut();
        }
        self.calls.get_mut(known?)
    }

    /// The calls, in the order in which they began.
    pub(super) fn finish(&mut self) -> Vec<ToolCall> {
        let whole = |call: Call| ToolCall {
            call_id: call.id,
            fn_name: call.name,
            fn_arguments: Value::String(call.arguments),
            thought_signatures: None,
        };
        std::mem::take(&mut self.calls).into_iter().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calls(fragments: Vec<Value>) -> Vec<(String, String, String)> {
        let mut deltas = Deltas::default();
        for fragment in fragments {
            deltas.take(&[fragment]);
        }
        let calls = deltas.finish().into_iter();
        calls
            .map(|call| (call.call_id, call.fn_name, call.fn_arguments.as_str().unwrap().into()))
            .collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn servers_that_are_careless_are_understood() {
        let first = json!({"id": "a", "function": {"name": "x", "arguments": "{"}});
        let more = json!({"function": {"arguments": "}"}});
        let second = json!({"id": "b", "function": {"name": "y", "arguments": {"c": 1}}});
        let without_numbers = calls(vec![first, more, second]);
        assert_eq!(without_numbers, [call("a", "x", "{}"), call("b", "y", "{\"c\":1}")]);

        let repeated = |id: &str, text: &str| json!({"index": 4_294_967_295_u32, "id": id, "function": {"name": "x", "arguments": text}});
        let repeated = calls(vec![repeated("a", "{"), repeated("", "}"), repeated("b", "{}")]);
        assert_eq!(repeated, [call("a", "x", "{}"), call("b", "x", "{}")]);

        let many = (0..1_000).map(|number| json!({"index": number, "function": {"name": "x"}}));
        assert_eq!(calls(many.collect()).len(), MAX_CALLS);
    }
}
