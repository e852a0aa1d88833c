//! Commands that are executed here: prompts of the session's own MCP servers, and what the gateway
//! does not know.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_protocol::chat::EXTERNAL;
use openclaw_tools::{CallContext, Content};

use crate::blocks::Prompt;
use crate::commands::CommandMenu;
use crate::gateway::GatewaySession;
use crate::servers::SessionServers;

/// What a prompt of the user has become.
pub(crate) enum ExpandedPrompt {
    /// A message for the agent.
    Message,
    /// This is the answer already: the command was executed, or is wrong, or its server failed.
    Answered(String),
}

/// Replaces a command by the content of the prompt that it names. Its texts come from outside, and
/// the model sees them as such.
pub(crate) async fn expand(
    prompt: &mut Prompt,
    servers: Option<&SessionServers>,
    commands: &CommandMenu,
    gateway: &GatewaySession,
) -> ExpandedPrompt {
    let Some(command) = prompt.command() else { return ExpandedPrompt::Message };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let Some((view, chosen)) = servers.and_then(|it| it.view().zip(it.prompt(name))) else {
        // About the session's own servers, or unknown. Otherwise the gateway answers.
        let answer = match (prompt.mcp_command(), servers, prompt.command_name()) {
            (Some(command), Some(servers), _) => servers.answer(gateway, &command).await,
            (_, _, Some(name)) => commands.unknown(name).await,
            (_, _, None) => None,
        };
        return answer.map_or(ExpandedPrompt::Message, ExpandedPrompt::Answered);
    };
    let arguments = match chosen.arguments(rest) {
        Ok(arguments) => arguments,
        Err(problem) => return ExpandedPrompt::Answered(problem),
    };
    let server = &chosen.prompt.server;
    let own = &chosen.prompt.entry.name;
    let context = CallContext { session: Some(&gateway.key), ..CallContext::by_hand("command") };
    let outcome = view.prompt(server, own, &arguments, &context).await;
    if outcome.is_error {
        return ExpandedPrompt::Answered(outcome.text());
    }
    let name = format!("{server}/{own}");
    let attachments = std::mem::take(&mut prompt.attachments);
    *prompt = Prompt { message: chosen.lead(), is_plain: true, attachments };
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
