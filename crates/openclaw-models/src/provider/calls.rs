//! Calls, put together from what `genai` says about them.

use std::collections::HashSet;
use std::sync::Arc;

use genai::chat::ToolCall;
use serde_json::Value;

use crate::message::{Message, Thought, ToolUse};
use crate::settings::ApiKind;

/// The calls of one answer.
pub(super) struct Calls {
    kind: ApiKind,
    /// The calls as they were last mentioned.
    mentioned: Vec<ToolCall>,
    /// Ids that other calls of the conversation have.
    taken: HashSet<String>,
}

impl Calls {
    pub(super) fn new(kind: ApiKind, messages: &[Arc<Message>]) -> Self {
        let ids = messages.iter().flat_map(|message| match &**message {
            Message::Assistant { tool_uses, .. } => tool_uses.as_slice(),
            _ => &[],
        });
        let taken = ids.map(|call| call.id.clone()).collect();
        Self { kind, mentioned: Vec::new(), taken }
    }

    /// Whether each mention is a call of its own, complete; otherwise it is a call so far.
    fn come_whole(&self) -> bool {
        matches!(self.kind, ApiKind::Gemini | ApiKind::Ollama)
    }

    /// A mention, in the middle of the answer.
    pub(super) fn mention(&mut self, call: ToolCall) {
        if self.kind == ApiKind::OpenAi {
            // A fragment: `deltas` has it, too, and knows where it belongs.
            return;
        }
        let whole = self.come_whole();
        match self.mentioned.iter_mut().find(|known| !whole && known.call_id == call.call_id) {
            Some(known) => *known = call,
            None => self.mentioned.push(call),
        }
    }

    /// The calls at the end, when `genai` has `captured` them, too, and what their provider wants to see
    /// again with them.
    pub(super) fn finish(mut self, captured: Vec<ToolCall>) -> (Vec<ToolUse>, Vec<Thought>) {
        let whole = self.come_whole();
        let mentioned = std::mem::take(&mut self.mentioned);
        let calls = if whole { mentioned } else { raw(captured, &mentioned) };
        let mut thoughts = Vec::new();
        let mut finished: Vec<ToolUse> = Vec::new();
        for call in calls {
            let id = self.free_id(&call, &finished);
            let signature = call.thought_signatures.into_iter().flatten().next();
            if let Some(signature) = signature.filter(|_| self.kind == ApiKind::Gemini) {
                thoughts.push(Thought::OfCall { id: id.clone(), signature });
            }
            finished.push(ToolUse { id, name: call.fn_name, arguments: text(call.fn_arguments) });
        }
        (finished, thoughts)
    }

    /// An id that no other call has: the provider's, if it may be.
    fn free_id(&self, call: &ToolCall, finished: &[ToolUse]) -> String {
        let is_free = |id: &str| {
            !id.is_empty()
                && !self.taken.contains(id)
                && finished.iter().all(|before| before.id != id)
        };
        if is_free(&call.call_id) {
            return call.call_id.clone();
        }
        // The form by which `genai` knows that Gemini gave no id, and sends none back.
        let numbered = |number: usize| match self.kind {
            ApiKind::Gemini => format!("call#{}#{number}", call.fn_name),
            _ => format!("call_{number}"),
        };
        let first = self.taken.len() + finished.len();
        let ids = (first..).map(numbered);
        ids.take(first + 1).find(|id| is_free(id)).unwrap_or_else(|| numbered(usize::MAX))
    }
}

/// The calls as captured, with their arguments as they were written, where that is known.
fn raw(captured: Vec<ToolCall>, mentioned: &[ToolCall]) -> Vec<ToolCall> {
    let as_written = |mut call: ToolCall| {
        let known = mentioned.iter().find(|known| known.call_id == call.call_id);
        if let Some(Value::String(text)) = known.map(|known| &known.fn_arguments)
            && serde_json::from_str(text).is_ok_and(|parsed: Value| parsed == call.fn_arguments)
        {
            call.fn_arguments = Value::String(text.clone());
        }
        call
    };
    captured.into_iter().map(as_written).collect()
}

/// Arguments as text. A call without any has an empty object.
fn text(arguments: Value) -> String {
    match arguments {
        Value::Null => "{}".to_owned(),
        Value::String(text) if text.is_empty() => "{}".to_owned(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}
