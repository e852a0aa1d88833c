//! The numbered results of a chat: `/show N` shows one in full, `/save N` saves its pictures.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_protocol::chat::HistoryParams;
use openclaw_protocol::rpc;
use serde_json::Value;

use super::Chat;
use crate::commands::link::look;
use crate::commands::talk::{ShownPart, ShownResult};
use crate::error::CommandError;
use crate::output::Output;
use openclaw_terminal::style::{FAINT, STRONG};

/// The maximum number of results that are kept; the oldest are dropped.
const MAX_RESULTS: usize = 1_000;
/// The number of results whose pictures are kept, if they are not in the history.
const MAX_MEDIA: usize = 20;
/// The number of messages that are searched for a result.
const MAX_MESSAGES: u64 = 2_000;
const PAGE: u32 = 200;

/// Results with the conversations that they belong to.
#[derive(Debug, Default)]
pub(super) struct ShownResults(RefCell<Vec<Option<(String, ShownResult)>>>);

impl ShownResults {
    /// Returns the number of the next result.
    pub(super) fn next(&self) -> usize {
        self.0.borrow().len() + 1
    }

    /// Adds results of a conversation.
    pub(super) fn add(&self, session: &str, results: Vec<ShownResult>) {
        let mut all = self.0.borrow_mut();
        all.extend(results.into_iter().map(|result| Some((session.to_owned(), result))));
        let old = all.len().saturating_sub(MAX_RESULTS);
        all[..old].fill(None);
        let without_media = all.len().saturating_sub(MAX_MEDIA);
        for (_, result) in all[..without_media].iter_mut().flatten() {
            if let ShownResult::Call(call) = result {
                call.media.clear();
            }
        }
    }

    fn get(&self, number: &str) -> Result<(String, ShownResult), CommandError> {
        let all = self.0.borrow();
        let at = number.trim_start_matches('#').parse::<usize>().ok();
        let found = at.and_then(|at| all.get(at.checked_sub(1)?)?.clone());
        found.ok_or_else(|| {
            let hint = match all.len() {
                0 => "no result has a number yet; results are numbered at a terminal".to_owned(),
                last => format!("results are numbered from 1 to {last}"),
            };
            CommandError::usage(format!("no result `{number}`")).hint(hint)
        })
    }
}

/// `/show N`: shows a result in full, and its pictures if the terminal can.
pub(super) async fn show(chat: &Chat<'_>, number: &str, output: &mut Output) -> bool {
    let (session, result) = match chat.results.get(number) {
        Ok(found) => found,
        Err(error) => {
            output.error(&error);
            return false;
        }
    };
    if let ShownResult::Call(call) = &result {
        output.folded(format_args!("{STRONG}{}{STRONG:#}", call.asked()));
        let stored = stored(chat, &session, &call.id, false).await;
        match stored.as_ref().map(ShownPart::of) {
            Some(ShownPart::Result { text, .. }) => output.outside(&text),
            _ => output.outside(call.result()),
        }
    }
    for picture in pictures(chat, &session, &result).await {
        match chat.pictures.sequence(&picture.mime_type, &picture.data) {
            Some(sequence) => output.command(&sequence),
            None => {
                let words = format!("[{}, /save {number} to save it]", picture.mime_type);
                output.line(format_args!("{FAINT}{words}{FAINT:#}"));
            }
        }
    }
    true
}

/// `/save N [FILE]`: saves the pictures of a result. Never overwrites a file.
pub(super) async fn save(chat: &Chat<'_>, args: &str, output: &mut Output) -> bool {
    let (number, file) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    match write(chat, number, file.trim()).await {
        Ok(files) => {
            for file in files {
                output.folded(format_args!("saved {}", file.display()));
            }
            true
        }
        Err(error) => {
            output.error(&error);
            false
        }
    }
}

async fn write(chat: &Chat<'_>, number: &str, file: &str) -> Result<Vec<PathBuf>, CommandError> {
    let (session, result) = chat.results.get(number)?;
    let pictures = pictures(chat, &session, &result).await;
    if pictures.is_empty() {
        return Err(CommandError::failed(format!("result {number} has no image")));
    }
    let mut files = Vec::new();
    for (at, picture) in pictures.iter().enumerate() {
        let bytes = STANDARD.decode(&picture.data).map_err(|error| {
            CommandError::failed("the image is not base64").cause(error.to_string())
        })?;
        let nth = if at == 0 { String::new() } else { format!("-{}", at + 1) };
        let number = number.trim_start_matches('#');
        let name = match file {
            "" => format!("picture-{number}{nth}.{}", picture.extension()),
            file => format!("{file}{nth}"),
        };
        let path = chat.roots.folder.join(name);
        let mut options = OpenOptions::new();
        let written = options.write(true).create_new(true).open(&path);
        let written = written.and_then(|mut file| file.write_all(&bytes));
        written.map_err(|error| {
            CommandError::failed(format!("cannot save {}", path.display()))
                .cause(error.to_string())
                .hint(format!("use `/save {number} FILE` for another file"))
        })?;
        files.push(path);
    }
    Ok(files)
}

struct Picture {
    mime_type: String,
    /// In base64.
    data: String,
}

impl Picture {
    fn of(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        (text("type")? == "image").then_some(())?;
        let mime_type = text("mimeType").unwrap_or("image/png");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '+' | '-' | '.');
        let mime_type = mime_type.chars().filter(|c| is_plain(*c)).take(40).collect();
        Some(Self { mime_type, data: text("data")?.to_owned() })
    }

    fn extension(&self) -> &str {
        match self.mime_type.strip_prefix("image/").unwrap_or_default() {
            "jpeg" => "jpg",
            known @ ("png" | "gif" | "webp") => known,
            _ => "bin",
        }
    }
}

async fn pictures(chat: &Chat<'_>, session: &str, result: &ShownResult) -> Vec<Picture> {
    match result {
        ShownResult::Media(value) => Picture::of(value).into_iter().collect(),
        ShownResult::Call(call) if !call.media.is_empty() => {
            call.media.iter().filter_map(Picture::of).collect()
        }
        ShownResult::Call(call) => {
            let stored = stored(chat, session, &call.id, true).await.unwrap_or_default();
            let parts = stored.get("content").and_then(Value::as_array);
            parts.into_iter().flatten().filter_map(Picture::of).collect()
        }
    }
}

/// Returns the result of a call from the history, which has all of it.
async fn stored(chat: &Chat<'_>, session: &str, id: &str, media: bool) -> Option<Value> {
    let mut offset = 0;
    while !id.is_empty() && offset < MAX_MESSAGES {
        let params = HistoryParams {
            session_key: session.to_owned(),
            limit: Some(PAGE),
            offset: Some(offset),
            include_media: media.then_some(true),
            ..HistoryParams::default()
        };
        let page = look::<rpc::ChatHistory>(chat.surface, params).await;
        let page = page.ok()?;
        for raw in page.messages.iter().rev() {
            let message: Value = serde_json::from_str(raw.get()).ok()?;
            let parts = message.get("content").and_then(Value::as_array);
            let is_meant = |part: &&Value| part["toolCallId"] == id && part["type"] == "toolResult";
            if let Some(part) = parts.into_iter().flatten().find(is_meant) {
                return Some(part.clone());
            }
        }
        offset = page.next_offset.filter(|next| *next > offset)?;
    }
    None
}
