//! The conversation of a chat: a new one, the latest, or another; with a recap of what was said.

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::chat::HistoryParams;
use openclaw_protocol::sessions::{DescribeParams, Row, SessionParams};
use openclaw_protocol::{RequestError, Surface, rpc};

use super::Chat;
use super::commands::LATEST;
use super::model::SessionModel;
use super::picker::Item;
use crate::cli::ChatArgs;
use crate::commands::link::look;
use crate::commands::sessions;
use crate::commands::talk::ShownMessage;
use crate::error::CommandError;
use crate::output::Output;
use openclaw_terminal::style::{FAINT, STRONG};

/// The number of messages that are searched for a recap.
const RECAP_MESSAGES: u32 = 12;
/// The maximum characters of a message in a recap.
const RECAP_CHARS: usize = 300;
/// The maximum length of a key or a title.
const LINE_CHARS: usize = 120;
/// The number of conversations to choose from.
const CHOICES: u64 = 50;

/// How a chat starts.
pub(super) enum ChatStart {
    /// With a new conversation, or with one whose key was given and which may be new.
    New,
    /// With this conversation.
    Resume(Box<Row>),
    /// With one that the user has yet to choose.
    Choose,
}

impl ChatStart {
    /// Returns the conversation that is resumed.
    pub(super) fn row(&self) -> Option<&Row> {
        match self {
            Self::Resume(row) => Some(row),
            Self::New | Self::Choose => None,
        }
    }
}

/// Finds the conversation that the arguments select.
pub(super) async fn find(
    surface: &dyn Surface,
    args: &ChatArgs,
) -> Result<ChatStart, CommandError> {
    if args.is_continued {
        let latest = sessions::latest(surface, args.agent.as_deref(), 1).await?;
        return match latest.into_iter().next() {
            Some(row) => Ok(ChatStart::Resume(Box::new(row))),
            None => Err(CommandError::failed("no session to continue")
                .hint("run `openclaw chat` to start one")),
        };
    }
    if let Some(key) = args.session.as_deref() {
        let row = describe(surface, key).await?;
        return Ok(row.map_or(ChatStart::New, |row| ChatStart::Resume(Box::new(row))));
    }
    match &args.resume {
        Some(Some(key)) => match describe(surface, key).await? {
            Some(row) => Ok(ChatStart::Resume(Box::new(row))),
            None => {
                let hint = "run `openclaw sessions list` to list them";
                Err(missing(surface, args.agent.as_deref(), key, hint).await)
            }
        },
        Some(None) => Ok(ChatStart::Choose),
        None => Ok(ChatStart::New),
    }
}

async fn describe(surface: &dyn Surface, key: &str) -> Result<Option<Row>, RequestError> {
    let params = DescribeParams {
        key: key.to_owned(),
        include_derived_titles: Some(true),
        include_last_message: None,
    };
    let found = look::<rpc::SessionsDescribe>(surface, params).await?;
    Ok(found.session)
}

/// The error for a key without a conversation.
async fn missing(
    surface: &dyn Surface,
    agent: Option<&str>,
    key: &str,
    otherwise: &str,
) -> CommandError {
    let known = sessions::latest(surface, agent, CHOICES).await.unwrap_or_default();
    let keys: Vec<&str> = known.iter().map(|row| row.key.as_str()).collect();
    let hint = match openclaw_config::nearest(key, &keys) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => otherwise.to_owned(),
    };
    CommandError::failed(format!("no session `{}`", clean(key))).hint(hint)
}

/// Returns the conversations to choose from; none if there are none.
pub(super) async fn choices(chat: &Chat<'_>) -> Result<Vec<Item>, RequestError> {
    let rows = sessions::latest(chat.surface, Some(&chat.whom.agent), CHOICES).await?;
    let item = |row: &Row| {
        let when = sessions::when(row).unwrap_or_default();
        let title = sessions::title(row).unwrap_or_default();
        Item { label: format!("{when:>11}  {title}"), value: row.key.clone() }
    };
    Ok(rows.iter().filter(|row| row.key != chat.session).map(item).collect())
}

/// Switches to the conversation with this key, and shows a recap. Returns whether there is one.
pub(super) async fn switch(chat: &mut Chat<'_>, key: &str, output: &mut Output) -> bool {
    let key = chat.whom.session(key);
    let row = match describe(chat.surface, &key).await {
        Ok(Some(row)) => row,
        // It was just started, and has no message yet.
        Ok(None) if key == chat.session => {
            tell(chat, "current session", output);
            return true;
        }
        Ok(None) => {
            let hint =
                format!("use `/sessions` to list them, or `/new {}` to start it", clean(&key));
            let agent = chat.whom.agent.clone();
            output.error(&missing(chat.surface, Some(&agent), &key, &hint).await);
            return false;
        }
        Err(error) => {
            output.error(&error.into());
            return false;
        }
    };
    chat.model = SessionModel::of(Some(&row));
    chat.session = row.key.clone();
    chat.is_untitled = false;
    resumed(chat, &row, output).await;
    true
}

/// Starts a new conversation, with this key or any. Returns whether the key is free.
pub(super) async fn start(chat: &mut Chat<'_>, key: &str, output: &mut Output) -> bool {
    let session = if key.is_empty() { chat.whom.new_session() } else { chat.whom.session(key) };
    if !key.is_empty() && matches!(describe(chat.surface, &session).await, Ok(Some(_))) {
        let key = clean(&session);
        let error = CommandError::failed(format!("there is a session `{key}` already"));
        output.error(&error.hint(format!("use `/session {key}` to continue it")));
        return false;
    }
    chat.session = session;
    chat.model = chat.model.for_new();
    chat.is_untitled = true;
    tell(chat, "new session", output);
    true
}

/// Shows the key of the conversation.
pub(super) fn tell(chat: &Chat<'_>, words: &str, output: &mut Output) {
    output.folded(format_args!("{FAINT}{words}:{FAINT:#} {}", clean(&chat.session)));
}

/// `/sessions`: lists the latest conversations.
pub(super) async fn list(chat: &Chat<'_>, output: &mut Output) {
    match sessions::latest(chat.surface, Some(&chat.whom.agent), LATEST).await {
        Ok(found) if found.is_empty() => output.line("No sessions yet."),
        Ok(found) => {
            output.table(sessions::rows(&found));
            let words = "/session KEY to switch to one, /resume to choose one";
            output.line(format_args!("{FAINT}{words}{FAINT:#}"));
        }
        Err(error) => output.warning(&error.to_string()),
    }
}

/// Shows which conversation is resumed, its last message and the last answer.
pub(super) async fn resumed(chat: &Chat<'_>, row: &Row, output: &mut Output) {
    let title = sessions::title(row).unwrap_or_else(|| clean(&row.key));
    let when = sessions::when(row).map(|when| format!(" {FAINT}({when}){FAINT:#}"));
    let when = when.unwrap_or_default();
    output.folded(format_args!("Resumed {STRONG}{title}{STRONG:#}{when}"));
    let params = HistoryParams {
        session_key: chat.session.clone(),
        limit: Some(RECAP_MESSAGES),
        max_chars: u32::try_from(RECAP_CHARS).ok(),
        ..HistoryParams::default()
    };
    let history = look::<rpc::ChatHistory>(chat.surface, params).await;
    let messages = history.map(|history| history.messages).unwrap_or_default();
    let read = messages.iter().filter_map(|raw| {
        ShownMessage::of(&serde_json::from_str(raw.get()).ok()?)
            .filter(|it| !it.text().trim().is_empty())
    });
    let messages: Vec<ShownMessage> = read.collect();
    let last = |role: &str| messages.iter().rposition(|message| message.role == role);
    let shown = |at: usize, mark: &str, output: &mut Output| {
        let text = clean_line(Untrusted::new(&messages[at].text()), RECAP_CHARS);
        output.labelled(&format!("{FAINT}{mark} {FAINT:#}"), &format!("{FAINT}{text}{FAINT:#}"));
    };
    let Some(asked) = last("user") else { return };
    shown(asked, "›", output);
    if let Some(answered) = last("assistant").filter(|answered| *answered > asked) {
        shown(answered, " ", output);
    }
}

/// Asks the gateway for a title, after the first turn of a new conversation.
pub(super) async fn request_title(chat: &mut Chat<'_>) {
    if chat.is_untitled {
        let agent_id = chat.whom.named_for(&chat.session);
        let params = SessionParams { key: chat.session.clone(), agent_id };
        let asked = look::<rpc::SessionsTitle>(chat.surface, params).await;
        // Without it, the title is the beginning of the first message. A command creates no
        // conversation.
        chat.is_untitled = asked.is_ok_and(|asked| !asked.ok);
    }
}

/// Says how to continue the conversation later, if anything was said.
pub(super) async fn farewell(chat: &Chat<'_>, output: &mut Output) {
    let is_stored = match describe(chat.surface, &chat.session).await {
        Ok(found) => found.is_some(),
        // The gateway is lost. After a turn, the conversation is stored.
        Err(_) => !chat.is_untitled,
    };
    if is_stored {
        let key = clean(&chat.session);
        // A user may have chosen it.
        let key = shlex::try_quote(&key).unwrap_or(key.as_str().into());
        let words = "to continue this session:";
        output.folded(format_args!("{FAINT}{words}{FAINT:#} openclaw chat --resume {key}"));
    }
}

fn clean(text: &str) -> String {
    clean_line(Untrusted::new(text), LINE_CHARS)
}
