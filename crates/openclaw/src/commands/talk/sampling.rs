//! A server's sampling request, as shown for approval.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::approvals::Approval;
use serde::Deserialize;

use openclaw_terminal::style::{FAINT, STRONG, WARNING};

/// The maximum length of a name.
const NAME_CHARS: usize = 80;

/// The arguments of a sampling request in `approval.requested`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SamplingArguments {
    model: Option<String>,
    max_tokens: u64,
    model_hints: Vec<String>,
    system_prompt: Option<String>,
    messages: Vec<Message>,
    tools: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    role: String,
    text: String,
}

impl SamplingArguments {
    /// Parses the arguments of a request; invalid ones become empty.
    pub(super) fn of(approval: &Approval) -> Self {
        let args = approval.args.as_ref().and_then(|args| serde_json::from_str(args.get()).ok());
        args.unwrap_or_default()
    }

    /// Returns the first lines: server, model, limit, and that the text is untrusted.
    pub(super) fn head(&self, approval: &Approval) -> Vec<String> {
        let line = |text: &str| clean_line(Untrusted::new(text), NAME_CHARS);
        let server = line(approval.server.as_deref().unwrap_or_default());
        let model = line(self.model.as_deref().unwrap_or("your model"));
        let tokens = self.max_tokens;
        vec![
            format!(
                "{WARNING}?{WARNING:#} Let the MCP server {STRONG}{server}{STRONG:#} use {model}, for at \
                 most {tokens} tokens?"
            ),
            format!(
                "  {FAINT}Untrusted text from the server; the answer is sent to the server:{FAINT:#}"
            ),
        ]
    }

    /// Returns the texts as members of a JSON object, in the order in which the model reads them.
    pub(super) fn texts(&self) -> String {
        let json = |text: &str| serde_json::Value::from(text).to_string();
        let joined = |words: &[String]| json(&words.join(", "));
        let mut members = Vec::new();
        members
            .extend(self.system_prompt.as_ref().map(|it| format!("\"systemPrompt\":{}", json(it))));
        let messages = self.messages.iter();
        members.extend(messages.map(|it| format!("{}:{}", json(&it.role), json(&it.text))));
        if !self.tools.is_empty() {
            members.push(format!("\"tools\":{}", joined(&self.tools)));
        }
        if !self.model_hints.is_empty() {
            members.push(format!("\"modelHints\":{}", joined(&self.model_hints)));
        }
        format!("{{{}}}", members.join(","))
    }
}
