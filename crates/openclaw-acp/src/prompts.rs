//! Prompts of the session's own MCP servers, typed as commands.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_protocol::chat::EXTERNAL;
use openclaw_tools::{CallContext, Content};

use crate::blocks::Prompt;
use crate::session::AcpSession;

/// What a prompt of the user has become.
pub(crate) enum ExpandedPrompt {
    /// A message for the agent.
    Message,
    /// This is the answer already: the command was wrong, or its server failed.
    Answered(String),
}

/// Replaces a command by the content of the prompt that it names. Its texts come from outside, and
/// the model sees them as such.
pub(crate) async fn expand(session: &AcpSession, prompt: &mut Prompt) -> ExpandedPrompt {
    let Some(servers) = &session.servers else { return ExpandedPrompt::Message };
    let Some(command) = prompt.command() else { return ExpandedPrompt::Message };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let (Some(view), Some(chosen)) = (servers.view(), servers.prompt(name)) else {
        return ExpandedPrompt::Message;
    };
    let arguments = match chosen.arguments(rest) {
        Ok(arguments) => arguments,
        Err(words) => return ExpandedPrompt::Answered(words),
    };
    let (server, own) = (&chosen.prompt.server, &chosen.prompt.entry.name);
    let context = CallContext { session: Some(&session.key), ..CallContext::by_hand("command") };
    let outcome = view.prompt(server, own, &arguments, &context).await;
    if outcome.is_error {
        return ExpandedPrompt::Answered(outcome.text());
    }
    let name = format!("{server}/{own}");
    *prompt = Prompt { message: chosen.lead(), is_plain: true, ..Prompt::default() };
    for part in outcome.content {
        match part {
            Content::Text(text) | Content::Placeholder(text) | Content::ForModel(text) => {
                let data = STANDARD.encode(text.expose());
                let mime_type = Some("text/plain".to_owned());
                prompt.attach(EXTERNAL, mime_type, Some(name.clone()), &data);
            }
            Content::Image { mime_type, data } => {
                prompt.attach("image", Some(mime_type), None, &data);
            }
            Content::Audio { mime_type, data } => {
                prompt.attach("audio", Some(mime_type), None, &data);
            }
        }
    }
    ExpandedPrompt::Message
}
