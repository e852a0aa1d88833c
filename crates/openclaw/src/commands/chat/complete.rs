//! Completion of slash commands, of server, tool and session names in their arguments, of the
//! arguments of prompts, whose values the servers know, and of paths after `@`.

use std::collections::BTreeMap;
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::mcp::CompleteParams;
use reedline::{Completer, CompletionResult, Span, Suggestion};
use tokio::sync::mpsc;

use super::commands::LOCAL;
use super::paths::PathRoots;

/// The subcommands of `/mcp`.
const MCP_VERBS: [(&str, &str); 8] = [
    ("servers", "List the servers and their state"),
    ("tools", "List the tools"),
    ("status", "Show the details of a server"),
    ("connect", "Connect to a server until this program exits"),
    ("disconnect", "Disconnect a server until this program exits"),
    ("login", "Log in to a server"),
    ("logout", "Log out of a server"),
    ("refresh", "Fetch the lists again; reconnect a failed server"),
];
/// The maximum length of a description.
const DESCRIPTION_CHARS: usize = 80;
/// How long the editor waits for the values of an argument.
const VALUES: Duration = Duration::from_secs(2);

/// A word to complete to, with a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompletionWord {
    word: String,
    about: String,
    /// The names of its arguments, if its server completes their values.
    args: Vec<String>,
    /// Whether more of the same word follows.
    is_open: bool,
}

impl CompletionWord {
    pub(super) fn new(word: impl Into<String>, about: &str) -> Self {
        let about = clean_line(Untrusted::new(about), DESCRIPTION_CHARS);
        Self { word: word.into(), about, args: Vec::new(), is_open: false }
    }

    /// Sets the names of its arguments.
    pub(super) fn with_args(self, args: impl Iterator<Item = String>) -> Self {
        Self { args: args.collect(), ..self }
    }
}

/// A request for the values of an argument, and where they go.
pub(super) type ValuesWanted = (CompleteParams, blocking::SyncSender<Vec<String>>);

/// An argument of a prompt whose values complete a word.
#[derive(Debug, PartialEq, Eq)]
struct Lookup {
    params: CompleteParams,
    /// What precedes the value in the word: `name=` or nothing.
    before: String,
}

/// What the last word of a text may be completed to.
#[derive(Debug, Default)]
struct Candidates {
    /// The offset of the word.
    start: usize,
    entries: Vec<CompletionWord>,
    lookup: Option<Lookup>,
}

/// The words to complete to.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(Mutex<WordList>);

#[derive(Debug, Default)]
struct WordList {
    commands: Vec<CompletionWord>,
    servers: Vec<CompletionWord>,
    tools: Vec<CompletionWord>,
    sessions: Vec<CompletionWord>,
}

impl Vocabulary {
    pub(super) fn learn(
        &self,
        commands: impl Iterator<Item = CompletionWord>,
        servers: impl Iterator<Item = String>,
        tools: impl Iterator<Item = CompletionWord>,
    ) {
        let local = LOCAL.iter().map(|(word, _, about)| CompletionWord::new(*word, about));
        let mut all: Vec<CompletionWord> = local.collect();
        for command in commands {
            if !all.iter().any(|known| known.word == command.word) {
                all.push(command);
            }
        }
        let servers = servers.map(|name| CompletionWord::new(name, "")).collect();
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (words.commands, words.servers, words.tools) = (all, servers, tools.collect());
    }

    pub(super) fn learn_sessions(&self, sessions: impl Iterator<Item = CompletionWord>) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.sessions = sessions.collect();
    }

    fn candidates(&self, text: &str) -> Candidates {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = text
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let (before, last) = text.split_at(start);
        let before: Vec<&str> = before.split_whitespace().collect();
        let verbs = || MCP_VERBS.map(|(word, about)| CompletionWord::new(word, about)).to_vec();
        let all = match before.as_slice() {
            [] if last.starts_with('/') => words.commands.clone(),
            ["/call"] => words.tools.clone(),
            ["/session" | "/resume"] => words.sessions.clone(),
            ["/mcp"] => verbs(),
            ["/mcp", "connect"] => Vec::new(),
            ["/mcp", _] => words.servers.clone(),
            [command, given @ ..] => {
                let command = words.commands.iter().find(|entry| entry.word == *command);
                let Some(command) = command.filter(|it| !it.args.is_empty()) else {
                    return Candidates { start, ..Candidates::default() };
                };
                let (entries, lookup) = prompt_argument(command, given, last);
                return Candidates { start, entries, lookup };
            }
            _ => Vec::new(),
        };
        let entries = all.into_iter().filter(|entry| entry.word.starts_with(last)).collect();
        Candidates { start, entries, lookup: None }
    }
}

/// Completes an argument of a prompt: `name=value` pairs, or values in order.
fn prompt_argument(
    command: &CompletionWord,
    given: &[&str],
    last: &str,
) -> (Vec<CompletionWord>, Option<Lookup>) {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=')?;
        let is_known = command.args.iter().any(|known| known == name);
        is_known.then(|| (name.to_owned(), value.to_owned()))
    };
    let lookup = |argument: &str, typed: &str, before: String, args: BTreeMap<String, String>| {
        let params = CompleteParams {
            of: command.word.trim_start_matches('/').to_owned(),
            argument: argument.to_owned(),
            value: Some(typed.to_owned()),
            args: (!args.is_empty()).then_some(args),
            ..CompleteParams::default()
        };
        Some(Lookup { params, before })
    };
    let pairs: Vec<(String, String)> = given.iter().filter_map(|word| pair(word)).collect();
    if pairs.len() == given.len() {
        if let Some((name, typed)) = pair(last) {
            let before = format!("{name}=");
            return (Vec::new(), lookup(&name, &typed, before, pairs.into_iter().collect()));
        }
        let is_left = |name: &&String| !pairs.iter().any(|(known, _)| known == *name);
        let names = command.args.iter().filter(is_left).map(|name| format!("{name}="));
        let names = names.filter(|word| word.starts_with(last));
        let names = names
            .map(|word| CompletionWord { is_open: true, ..CompletionWord::new(word, "") })
            .collect();
        // The first word may be a value as well.
        let first = command.args.first().filter(|_| given.is_empty());
        let values = first.and_then(|first| lookup(first, last, String::new(), BTreeMap::new()));
        return (names, values);
    }
    let Some(name) = command.args.get(given.len()) else { return (Vec::new(), None) };
    let args = command.args.iter().cloned().zip(given.iter().map(|word| (*word).to_owned()));
    (Vec::new(), lookup(name, last, String::new(), args.collect()))
}

/// The completer of the line editor, on its thread.
pub(super) struct PromptCompleter {
    vocabulary: Arc<Vocabulary>,
    wanted: mpsc::Sender<ValuesWanted>,
    roots: PathRoots,
    /// The last values: the menu asks for the same ones again.
    last: Option<(CompleteParams, Vec<String>)>,
}

impl PromptCompleter {
    pub(super) fn new(
        vocabulary: Arc<Vocabulary>,
        wanted: mpsc::Sender<ValuesWanted>,
        roots: PathRoots,
    ) -> Self {
        Self { vocabulary, wanted, roots, last: None }
    }

    /// Returns what the last word may be completed to, and its offset.
    fn entries(&mut self, text: &str) -> (usize, Vec<CompletionWord>) {
        if let Some((start, paths)) = self.roots.complete(text) {
            let entry = |path: String| {
                let is_open = path.ends_with('/');
                CompletionWord { is_open, ..CompletionWord::new(path, "") }
            };
            return (start, paths.into_iter().map(entry).collect());
        }
        let Candidates { start, mut entries, lookup } = self.vocabulary.candidates(text);
        if let Some(Lookup { params, before }) = lookup {
            // A value with a space would be two words.
            let values = self.values(params).into_iter().filter(|it| !it.contains(' '));
            entries.extend(values.map(|value| CompletionWord::new(format!("{before}{value}"), "")));
        }
        (start, entries)
    }

    /// Returns the values of an argument, or none if they do not arrive in time.
    fn values(&mut self, params: CompleteParams) -> Vec<String> {
        if let Some((known, values)) = &self.last
            && *known == params
        {
            return values.clone();
        }
        let (reply, values) = blocking::sync_channel(1);
        if self.wanted.try_send((params.clone(), reply)).is_err() {
            return Vec::new();
        }
        let values = values.recv_timeout(VALUES).unwrap_or_default();
        self.last = Some((params, values.clone()));
        values
    }
}

impl Completer for PromptCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let text = line.get(..pos).unwrap_or(line);
        let (start, entries) = self.entries(text);
        let suggestions: Vec<Suggestion> = entries
            .into_iter()
            .map(|entry| Suggestion {
                append_whitespace: !entry.is_open,
                value: entry.word,
                description: (!entry.about.is_empty()).then_some(entry.about),
                span: Span { start, end: text.len() },
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

    fn vocabulary() -> Vocabulary {
        let vocabulary = Vocabulary::default();
        let args = ["name", "tone"].map(str::to_owned).into_iter();
        let greet = CompletionWord::new("/mcp__demo__greet", "Greets").with_args(args);
        vocabulary.learn(
            [CompletionWord::new("/mcp", "Servers"), greet].into_iter(),
            ["demo", "github"].map(ToOwned::to_owned).into_iter(),
            [CompletionWord::new("mcp_demo_add", "Adds"), CompletionWord::new("mcp_demo_now", "")]
                .into_iter(),
        );
        vocabulary.learn_sessions([CompletionWord::new("agent:main:main", "Hello")].into_iter());
        vocabulary
    }

    fn completed(text: &str) -> Vec<String> {
        vocabulary().candidates(text).entries.into_iter().map(|entry| entry.word).collect()
    }

    /// The argument that is completed, what was typed of it, and the other arguments.
    fn looked_up(text: &str) -> Option<(String, String, BTreeMap<String, String>)> {
        let params = vocabulary().candidates(text).lookup?.params;
        assert_eq!(params.of, "mcp__demo__greet");
        Some((params.argument, params.value.unwrap(), params.args.unwrap_or_default()))
    }

    #[test]
    fn arguments_of_prompts_are_completed_by_their_server() {
        let args = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (text, argument, typed, given) in [
            ("/mcp__demo__greet ", "name", "", args(&[])),
            ("/mcp__demo__greet A", "name", "A", args(&[])),
            ("/mcp__demo__greet name=A", "name", "A", args(&[])),
            ("/mcp__demo__greet name=Ada tone=", "tone", "", args(&[("name", "Ada")])),
            ("/mcp__demo__greet Ada k", "tone", "k", args(&[("name", "Ada")])),
        ] {
            let expected = Some((argument.to_owned(), typed.to_owned(), given));
            assert_eq!(looked_up(text), expected, "{text}");
        }
        for text in ["/mcp__demo__greet Ada kind x", "/mcp__demo__gree A", "/mcp name=A", "A"] {
            assert_eq!(looked_up(text), None, "{text}");
        }
        assert_eq!(completed("/mcp__demo__greet "), ["name=", "tone="]);
        assert_eq!(completed("/mcp__demo__greet name=Ada t"), ["tone="]);
    }

    #[test]
    fn values_of_the_server_become_suggestions_and_are_requested_once() {
        let (wanted, mut asked) = mpsc::channel::<ValuesWanted>(1);
        let server = std::thread::spawn(move || {
            let mut count = 0;
            while let Some((params, reply)) = asked.blocking_recv() {
                count += 1;
                assert_eq!(params.value.as_deref(), Some("A"));
                let values = ["Ada", "Alan", "Anna Maria"].map(str::to_owned).to_vec();
                reply.send(values).unwrap();
            }
            count
        });
        let mut completion =
            PromptCompleter::new(Arc::new(vocabulary()), wanted, PathRoots::default());
        let line = "/mcp__demo__greet name=A";
        for _ in 0..2 {
            let found = completion.complete(line, line.len());
            let values: Vec<_> =
                found.suggestions().iter().map(|it| (it.value.clone(), it.span.start)).collect();
            let start = line.find("name=").unwrap();
            let word = |word: &str| (word.to_owned(), start);
            assert_eq!(values, [word("name=Ada"), word("name=Alan")]);
        }
        drop(completion);
        assert_eq!(server.join().unwrap(), 1);
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
