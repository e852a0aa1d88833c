//! Completion of slash commands, and of server, tool and session names in their arguments.

use std::sync::{Arc, Mutex, PoisonError};

use openclaw_content::{Untrusted, clean_line};
use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::commands::LOCAL;

/// The subcommands of `/mcp`.
const MCP_VERBS: [(&str, &str); 7] = [
    ("servers", "Show the state of servers"),
    ("tools", "List their tools"),
    ("status", "Show the details of a server"),
    ("connect", "Connect to a server by its URL"),
    ("disconnect", "Disconnect a server until the next start"),
    ("auth", "Log in to a server"),
    ("refresh", "Fetch the lists again"),
];
/// The maximum length of a description.
const DESCRIPTION_CHARS: usize = 80;

/// A word to complete to, with a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    word: String,
    about: String,
}

impl Entry {
    pub(super) fn new(word: impl Into<String>, about: &str) -> Self {
        let about = clean_line(Untrusted::new(about), DESCRIPTION_CHARS);
        Self { word: word.into(), about }
    }
}

/// The words to complete to.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(Mutex<WordList>);

#[derive(Debug, Default)]
struct WordList {
    commands: Vec<Entry>,
    servers: Vec<Entry>,
    tools: Vec<Entry>,
    sessions: Vec<Entry>,
}

impl Vocabulary {
    pub(super) fn learn(
        &self,
        commands: impl Iterator<Item = Entry>,
        servers: impl Iterator<Item = String>,
        tools: impl Iterator<Item = Entry>,
    ) {
        let local = LOCAL.iter().map(|(word, _, about)| Entry::new(*word, about));
        let mut all: Vec<Entry> = local.collect();
        for command in commands {
            if !all.iter().any(|known| known.word == command.word) {
                all.push(command);
            }
        }
        let servers = servers.map(|name| Entry::new(name, "")).collect();
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (words.commands, words.servers, words.tools) = (all, servers, tools.collect());
    }

    pub(super) fn learn_sessions(&self, sessions: impl Iterator<Item = Entry>) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.sessions = sessions.collect();
    }

    /// Returns the completions of the last word of this text, and the offset of that word.
    fn candidates(&self, text: &str) -> (usize, Vec<Entry>) {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = text
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let (before, last) = text.split_at(start);
        let before: Vec<&str> = before.split_whitespace().collect();
        let verbs = || MCP_VERBS.map(|(word, about)| Entry::new(word, about)).to_vec();
        let all = match before.as_slice() {
            [] if last.starts_with('/') => words.commands.clone(),
            ["/call"] => words.tools.clone(),
            ["/session"] => words.sessions.clone(),
            ["/mcp"] => verbs(),
            ["/mcp", "connect"] => Vec::new(),
            ["/mcp", _] => words.servers.clone(),
            _ => Vec::new(),
        };
        (start, all.into_iter().filter(|entry| entry.word.starts_with(last)).collect())
    }
}

/// The completer of the line editor.
pub(super) struct Completion(pub(super) Arc<Vocabulary>);

impl Completer for Completion {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let text = line.get(..pos).unwrap_or(line);
        let (start, entries) = self.0.candidates(text);
        let suggestions: Vec<Suggestion> = entries
            .into_iter()
            .map(|entry| Suggestion {
                value: entry.word,
                description: (!entry.about.is_empty()).then_some(entry.about),
                span: Span { start, end: text.len() },
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect();
        // For an empty result the menu shows "NO RECORDS FOUND", for a pending one nothing.
        match suggestions.is_empty() {
            true => CompletionResult::Pending,
            false => CompletionResult::fresh(suggestions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(text: &str) -> Vec<String> {
        let vocabulary = Vocabulary::default();
        vocabulary.learn(
            [Entry::new("/mcp", "Servers"), Entry::new("/mcp__demo__greet", "Greets")].into_iter(),
            ["demo", "github"].map(ToOwned::to_owned).into_iter(),
            [Entry::new("mcp_demo_add", "Adds"), Entry::new("mcp_demo_now", "")].into_iter(),
        );
        vocabulary.learn_sessions([Entry::new("agent:main:main", "Hello")].into_iter());
        vocabulary.candidates(text).1.into_iter().map(|entry| entry.word).collect()
    }

    #[test]
    fn a_slash_begins_a_command() {
        assert_eq!(completed("/mcp"), ["/mcp", "/mcp__demo__greet"]);
        assert!(completed("/").contains(&"/help".to_owned()));
        assert_eq!(completed("hello /m"), [""; 0]);
    }

    #[test]
    fn arguments_of_commands_are_completed() {
        assert_eq!(completed("/call mcp_demo_n"), ["mcp_demo_now"]);
        assert_eq!(completed("/session "), ["agent:main:main"]);
        assert_eq!(completed("/mcp st"), ["status"]);
        assert_eq!(completed("/mcp status g"), ["github"]);
        assert_eq!(completed("/mcp connect g"), [""; 0]);
        assert_eq!(completed("/call mcp_demo_add {"), [""; 0]);
    }

    #[test]
    fn multibyte_characters_do_not_panic() {
        assert_eq!(completed("/mcp\u{2003}st"), ["status"]);
        assert_eq!(completed("é"), [""; 0]);
    }
}
