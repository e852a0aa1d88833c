//! Completion of the command line for shells. The shell runs this program with the words so far, and
//! gets the candidates: commands and options from `clap`, names from what is on the disk. No server is
//! started, and no gateway is asked.

mod known;
mod values;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, complete};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use crate::cli::Cli;
use crate::edge::{COMPLETE_VARIABLE, CompletionRequest, Edge};
use known::Known;

/// The separator of the candidates for bash, which its script sets: values may contain spaces.
const BASH_SEPARATOR: &str = "\u{b}";

/// Where the script for bash replaces the current word by its last piece.
const BASH_WORD: &str = r#"words[COMP_CWORD]="$2""#;
/// The same, except for a break, which would be lost.
const BASH_WORD_OR_BREAK: &str =
    r#"[[ "${COMP_WORDS[COMP_CWORD]}" == [:=] ]] || words[COMP_CWORD]="$2""#;

/// Returns the script that registers the completion with a shell.
pub(crate) fn registration(shell: Shell) -> io::Result<Vec<u8>> {
    let completer: &dyn EnvCompleter = match shell {
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        _ => &Bash,
    };
    let mut script = Vec::new();
    let name = "openclaw";
    completer.write_registration(COMPLETE_VARIABLE, name, name, name, &mut script)?;
    let script = String::from_utf8_lossy(&script);
    Ok(script.replace(BASH_WORD, BASH_WORD_OR_BREAK).into_bytes())
}

/// Writes the candidates for a shell. Without any, the shell completes nothing: there is no message.
pub(crate) fn run(request: CompletionRequest, edge: &Edge, output: &mut impl Write) {
    let CompletionRequest { shell, words, index } = request;
    let is_bash = shell == "bash";
    let line = Line::new(words, index, is_bash);
    let known = Known::new(edge, line.texts());
    let mut command = values::with_names(Cli::command(), &known);
    let found =
        complete(&mut command, line.words.clone(), line.index, edge.folder().ok().as_deref());
    let found = line.fitting(found.unwrap_or_default());
    // A closed pipe is not a failure.
    let _ = output.write_all(shown(&shell, &found).as_bytes());
}

/// The words of a command line, and which of them is completed.
struct Line {
    words: Vec<OsString>,
    index: usize,
    /// The part of the word that the shell has split off, and keeps.
    kept: String,
}

impl Line {
    /// Bash splits words at `:` and `=`: they are joined again.
    fn new(words: Vec<OsString>, index: usize, is_split: bool) -> Self {
        let mut words: Vec<OsString> = words.into_iter().take(index + 1).collect();
        words.resize(index + 1, OsString::new());
        let mut kept = String::new();
        if is_split {
            let mut joined: Vec<OsString> = Vec::new();
            let mut glue = false;
            for (at, word) in words.into_iter().enumerate() {
                let is_break = word == ":" || word == "=";
                // What the shell keeps is everything before the last piece of the last word.
                if at == index {
                    kept = match joined.last().filter(|_| glue || is_break) {
                        Some(before) => before.to_string_lossy().into_owned(),
                        None => String::new(),
                    };
                    if is_break {
                        kept.push_str(&word.to_string_lossy());
                    }
                }
                match joined.last_mut() {
                    Some(last) if glue || is_break => last.push(&word),
                    _ => joined.push(word),
                }
                glue = is_break;
            }
            words = joined;
        }
        let index = words.len().saturating_sub(1);
        Self { words, index, kept }
    }

    fn texts(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Leaves out options unless the user has begun one: a shell would insert their common dash.
    fn fitting(&self, found: Vec<CompletionCandidate>) -> Vec<(String, Option<String>)> {
        let current = self.words[self.index].to_string_lossy();
        let is_wanted = |value: &str| current.starts_with('-') || !value.starts_with('-');
        let found = found.into_iter().filter_map(|candidate| {
            let value = candidate.get_value().to_string_lossy().into_owned();
            let help = candidate.get_help().map(ToString::to_string);
            let help = help.and_then(|help| help.lines().next().map(str::to_owned));
            let rest = value.strip_prefix(&self.kept).filter(|_| is_wanted(&value))?;
            Some((rest.to_owned(), help))
        });
        found.collect()
    }
}

/// Formats candidates as the script of the shell expects them.
fn shown(shell: &str, found: &[(String, Option<String>)]) -> String {
    let described = |separator: &str, escape: fn(&str) -> String| {
        let line = |(value, help): &(String, Option<String>)| match help {
            Some(help) => format!("{}{separator}{}\n", escape(value), help),
            None => format!("{}\n", escape(value)),
        };
        found.iter().map(line).collect::<String>()
    };
    match shell {
        "zsh" => described(":", |value: &str| value.replace('\\', "\\\\").replace(':', "\\:")),
        "fish" | "powershell" => described("\t", str::to_owned),
        _ => {
            let values: Vec<&str> = found.iter().map(|(value, _)| value.as_str()).collect();
            values.join(if shell == "bash" { BASH_SEPARATOR } else { "\n" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str], is_split: bool) -> (Vec<String>, String) {
        let index = words.len() - 1;
        let line = Line::new(words.iter().map(OsString::from).collect(), index, is_split);
        (line.texts(), line.kept)
    }

    #[test]
    fn words_that_bash_has_split_are_joined() {
        let joined = |words: &[&str]| line(words, true);
        let texts = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(joined(&["o", "x", "ag"]), (texts(&["o", "x", "ag"]), String::new()));
        assert_eq!(
            joined(&["o", "agent", ":", "main", ":", "ma"]),
            (texts(&["o", "agent:main:ma"]), "agent:main:".to_owned())
        );
        assert_eq!(joined(&["o", "agent", ":"]), (texts(&["o", "agent:"]), "agent:".to_owned()));
        assert_eq!(joined(&["o", "a", "=", ""]), (texts(&["o", "a="]), "a=".to_owned()));
        assert_eq!(joined(&["o", "a", "=", "1", "b"]), (texts(&["o", "a=1", "b"]), String::new()));
        assert_eq!(line(&["o", "a", ":"], false).0, ["o", "a", ":"]);
    }

    #[test]
    fn options_are_offered_only_after_a_dash() {
        let found = || Vec::from(["--json", "mcp"].map(CompletionCandidate::new));
        let values = |words: &[&str]| {
            let words = words.iter().map(OsString::from).collect::<Vec<_>>();
            let index = words.len() - 1;
            let found = Line::new(words, index, true).fitting(found());
            found.into_iter().map(|(value, _)| value).collect::<Vec<_>>()
        };
        assert_eq!(values(&["o", ""]), ["mcp"]);
        assert_eq!(values(&["o", "-"]), ["--json", "mcp"]);
    }
}
