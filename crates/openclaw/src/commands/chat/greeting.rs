//! The start screen of a chat: configuration, model, session and servers.

use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::mcp::summary;
use openclaw_mcp::server::status::{AuthKind, ServerState, ServerStatus};
use openclaw_protocol::config::GetParams;
use openclaw_protocol::rpc;

use super::Chat;
use super::conversation::ChatStart;
use crate::commands::check::state_mark;
use crate::commands::link::look;
use crate::output::Output;
use openclaw_terminal::style::{BAD, FAINT, STRONG, WARNING};

/// The maximum length of a path, a name or an error.
const LINE_CHARS: usize = 200;

/// Shows the start screen.
pub(super) async fn show(
    chat: &Chat<'_>,
    start: &ChatStart,
    servers: &[ServerStatus],
    output: &mut Output,
) {
    let place = match &chat.gateway {
        Some(url) => format!("using the gateway at {}", line(url)),
        None if chat.is_remote => "using the running gateway".to_owned(),
        None => "in this process".to_owned(),
    };
    let version = env!("CARGO_PKG_VERSION");
    output.folded(format_args!("{STRONG}OpenClaw {version}{STRONG:#} {FAINT}{place}{FAINT:#}"));
    if let Some(words) = config(chat).await {
        output.labelled(&label("config"), &words);
    }
    output.labelled(&label("model"), &model(chat));
    if let Some(words) = folder(chat) {
        output.labelled(&label("folder"), &words);
    }
    match start {
        ChatStart::New => {
            let words = "(new; `openclaw chat -c` continues the latest, /resume another)";
            let words = format!("{} {FAINT}{words}{FAINT:#}", line(&chat.session));
            output.labelled(&label("session"), &words);
        }
        ChatStart::Resume(_) => output.labelled(&label("session"), &line(&chat.session)),
        ChatStart::Choose => {}
    }
    for (at, server) in servers.iter().enumerate() {
        let label = label(if at == 0 { "servers" } else { "" });
        output.labelled(&label, &server_line(server));
    }
    // `openclaw mcp` manages the servers of this machine.
    if servers.is_empty() && chat.gateway.is_none() {
        output.labelled(&label("servers"), "none; run `openclaw mcp add` to add one");
    }
    let words = "/help for commands, Ctrl-C to cancel a turn, Ctrl-D to exit.";
    output.folded(format_args!("{FAINT}{words}{FAINT:#}"));
}

fn label(word: &str) -> String {
    format!("  {FAINT}{word:7}{FAINT:#}  ")
}

async fn config(chat: &Chat<'_>) -> Option<String> {
    let answer = look::<rpc::ConfigGet>(chat.surface, GetParams::default()).await;
    let found = answer.ok()?;
    let path = line(&found.path);
    Some(match found.exists {
        true => path,
        false => format!("built-in default {FAINT}({path} does not exist){FAINT:#}"),
    })
}

/// The folder that the agent works in.
fn folder(chat: &Chat<'_>) -> Option<String> {
    match (&chat.workspace, &chat.whom.workspace) {
        (Some(folder), _) => Some(line(&folder.display().to_string())),
        (None, Some(own)) => {
            Some(format!("{} {FAINT}(the agent's own workspace){FAINT:#}", line(own)))
        }
        (None, None) => None,
    }
}

/// Describes the model in one line.
pub(super) fn model(chat: &Chat<'_>) -> String {
    if chat.whom.is_offline() {
        return format!("offline {FAINT}(built-in, needs no network; see /model){FAINT:#}");
    }
    line(chat.model.name().unwrap_or(&chat.whom.model))
}

/// Describes a server in one line.
pub(super) fn server_line(server: &ServerStatus) -> String {
    let (mark, style) = state_mark(server.state);
    let name = line(&server.name);
    if server.state == ServerState::NeedsAuth && is_for_logins(server) {
        return format!(
            "{style}{mark}{style:#} {STRONG}{name}{STRONG:#}  login required: use `/mcp login {name}`"
        );
    }
    let words = line(&summary(server));
    let hint = server.last_error.as_ref().and_then(|trouble| trouble.hint.as_deref());
    let hint = hint
        // The summary has it already, if a login is required.
        .filter(|_| (style == BAD || style == WARNING) && server.state != ServerState::NeedsAuth)
        .map(|hint| format!(" {FAINT}({}){FAINT:#}", line(hint)));
    format!("{style}{mark}{style:#} {STRONG}{name}{STRONG:#}  {words}{}", hint.unwrap_or_default())
}

/// Whether a user can log in to a server: it has no key that was rejected.
fn is_for_logins(server: &ServerStatus) -> bool {
    matches!(server.auth, AuthKind::None | AuthKind::OAuth)
}

fn line(text: &str) -> String {
    clean_line(Untrusted::new(text), LINE_CHARS)
}
