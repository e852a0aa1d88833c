//! Command lines in which options of this program and of others are mixed: `mcp add` as it is written
//! for other programs, which put the command of a server after its name without `--`, and `mcp call`
//! with the arguments of a tool as options.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Args, Command};

use super::{AddArgs, CallArgs, GlobalArgs};

/// The options of `mcp add` that may follow the command: other programs accept them there.
const AFTER_COMMAND: [&str; 4] = ["env", "header", "scope", "transport"];

/// Rearranges the words of `mcp add NAME COMMAND …` into `mcp add … NAME -- COMMAND …`, and those of
/// `mcp call TOOL --key value …` into `mcp call … TOOL -- --key value`. Other command lines are returned
/// as they are.
pub(super) fn rearranged(words: Vec<OsString>) -> Vec<OsString> {
    let has = |name: &str| words.iter().any(|word| word == name);
    let has_option = || words.iter().any(|word| word.to_string_lossy().starts_with("--"));
    if !has("mcp") {
        return words;
    }
    let added = has("add").then(|| Line::new(&words, &options_of::<AddArgs>()).add()).flatten();
    let called = || Line::new(&words, &options_of::<CallArgs>()).call();
    let called = || (has("call") && has_option()).then(called).flatten();
    added.or_else(called).unwrap_or(words)
}

/// Returns the options of one subcommand. Those of all of them take longer to build than a call.
fn options_of<T: Args>() -> Command {
    T::augment_args(GlobalArgs::augment_args(Command::new("openclaw")))
}

/// A command line that is being rearranged.
struct Line<'a> {
    words: &'a [OsString],
    /// The next word.
    at: usize,
    options: Vec<&'a Arg>,
    out: Vec<OsString>,
}

/// An option, as it was written.
struct Written<'a> {
    option: &'a Arg,
    /// Its words: one, or two with a separate value.
    words: Vec<OsString>,
    value: Option<String>,
}

impl<'a> Line<'a> {
    fn new(words: &'a [OsString], command: &'a Command) -> Self {
        let options = command.get_arguments().filter(|arg| !arg.is_positional()).collect();
        Self { words, at: 1, options, out: words[..1].to_vec() }
    }

    /// Copies the words up to a subcommand of `mcp`, and the first one after it.
    fn begin(&mut self, subcommand: &str) -> Option<()> {
        for name in ["mcp", subcommand] {
            if self.plain()? != name {
                return None;
            }
        }
        self.plain().map(drop)
    }

    /// Returns the words of `mcp call`, with the arguments of the tool that look like options after
    /// `--`; `None` if there are none.
    fn call(mut self) -> Option<Vec<OsString>> {
        self.begin("call")?;
        let mut arguments: Vec<OsString> = Vec::new();
        while let Some(word) = self.peek() {
            if word == "--help" {
                return None;
            }
            if let Some(written) = self.option(&word) {
                self.take(written);
                continue;
            }
            self.at += 1;
            if word == "--" {
                arguments.extend_from_slice(&self.words[self.at..]);
                break;
            }
            if !word.starts_with("--") {
                self.out.push(self.words[self.at - 1].clone());
                continue;
            }
            arguments.push(self.words[self.at - 1].clone());
            // Its value, if it is not the next option.
            let value = self.peek().filter(|next| !word.contains('=') && !next.starts_with("--"));
            if value.is_some() {
                arguments.push(self.words[self.at].clone());
                self.at += 1;
            }
        }
        if arguments.is_empty() {
            return None;
        }
        self.out.push("--".into());
        self.out.append(&mut arguments);
        Some(self.out)
    }

    /// Returns the words of `mcp add`; `None` if there is nothing to rearrange, or `clap` will report
    /// an error.
    fn add(mut self) -> Option<Vec<OsString>> {
        self.begin("add")?;
        let mut is_remote = self.is_remote();
        loop {
            let Some(word) = self.peek() else { return Some(self.out) };
            if let Some(written) = self.option(&word) {
                self.take(written);
                is_remote = self.is_remote().or(is_remote);
            } else if word == "--" || word.starts_with('-') {
                return Some(self.with_rest());
            } else if is_remote.unwrap_or_else(|| is_url(&word)) {
                // Options may follow a URL, which `clap` handles, except for several values.
                self.out.push(self.words[self.at].clone());
                self.at += 1;
                is_remote = Some(true);
            } else {
                return Some(self.command());
            }
        }
    }

    /// Copies options up to the next word that is none, and that word.
    fn plain(&mut self) -> Option<String> {
        loop {
            let word = self.peek()?;
            match self.option(&word) {
                Some(written) => self.take(written),
                None if word.starts_with('-') => return None,
                None => {
                    self.out.push(self.words[self.at].clone());
                    self.at += 1;
                    return Some(word);
                }
            }
        }
    }

    /// Splits the rest into options and the command, which is put at the end.
    fn command(mut self) -> Vec<OsString> {
        let mut command = Vec::new();
        while let Some(word) = self.peek() {
            let written = self.option(&word).filter(Written::may_follow_command);
            if let Some(written) = written {
                self.take(written);
                continue;
            }
            self.at += 1;
            if word == "--" {
                break;
            }
            command.push(self.words[self.at - 1].clone());
            // From its first option on, everything is for the command.
            if word.starts_with('-') {
                break;
            }
        }
        self.out.push("--".into());
        self.out.append(&mut command);
        self.with_rest()
    }

    fn with_rest(mut self) -> Vec<OsString> {
        self.out.extend_from_slice(&self.words[self.at..]);
        self.out
    }

    fn peek(&self) -> Option<String> {
        Some(self.words.get(self.at)?.to_string_lossy().into_owned())
    }

    /// Whether the options so far say that the server is remote.
    fn is_remote(&self) -> Option<bool> {
        let mut words = self.out.iter().map(|word| word.to_string_lossy());
        let mut kind = None;
        while let Some(word) = words.next() {
            let (option, value) = word.split_once('=').unwrap_or((&word, ""));
            if matches!(option, "-t" | "--transport") {
                let value = if value.is_empty() { words.next() } else { Some(value.into()) };
                kind = value.map(|value| value != "stdio");
            }
        }
        kind
    }

    /// Returns the option that a word is.
    fn option(&self, word: &str) -> Option<Written<'a>> {
        let long = word.strip_prefix("--").filter(|name| !name.is_empty());
        let (option, attached) = if let Some(long) = long {
            let (name, value) = long.split_once('=').map_or((long, None), |(a, b)| (a, Some(b)));
            let is_called = |arg: &&&Arg| {
                arg.get_long() == Some(name)
                    || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
            };
            (*self.options.iter().find(is_called)?, value)
        } else {
            let mut letters = word.strip_prefix('-')?.chars();
            let letter = letters.next()?;
            let option = *self.options.iter().find(|arg| arg.get_short() == Some(letter))?;
            let value = letters.as_str();
            (option, (!value.is_empty()).then(|| value.strip_prefix('=').unwrap_or(value)))
        };
        let mut words = vec![self.words[self.at].clone()];
        let takes_value = matches!(option.get_action(), ArgAction::Set | ArgAction::Append);
        let mut value = attached.map(str::to_owned);
        if takes_value && value.is_none() {
            let next = self.words.get(self.at + 1)?;
            value = Some(next.to_string_lossy().into_owned());
            words.push(next.clone());
        }
        Some(Written { option, words, value })
    }

    /// Copies an option. Further pairs after a pair are its values, too, as in
    /// `-e A=1 B=2 -- COMMAND`.
    fn take(&mut self, written: Written<'_>) {
        self.at += written.words.len();
        self.out.extend(written.words);
        let is_pair = match written.option.get_id().as_str() {
            "env" => is_variable,
            "header" => is_header,
            _ => return,
        };
        while let Some(word) = self.peek().filter(|word| is_pair(word)) {
            let long = written.option.get_long().unwrap_or_default();
            self.out.push(format!("--{long}={word}").into());
            self.at += 1;
        }
    }
}

impl Written<'_> {
    /// Whether this is an option of `mcp add`, rather than one of the command before it: `-e` and
    /// `-t` mean something to many programs.
    fn may_follow_command(&self) -> bool {
        let id = self.option.get_id().as_str();
        let value = self.value.as_deref().unwrap_or_default();
        AFTER_COMMAND.contains(&id)
            && match id {
                "env" => is_variable(value),
                "header" => is_header(value),
                _ => self.option.get_possible_values().iter().any(|it| it.matches(value, false)),
            }
    }
}

/// Whether a word is a URL, not a program.
fn is_url(word: &str) -> bool {
    word.contains("://")
}

fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_header(word: &str) -> bool {
    let name = word.split_once(':').filter(|_| !is_url(word.trim_start()));
    name.is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits at spaces, and returns the rearranged words joined.
    fn read(line: &str) -> String {
        let words = line.split(' ').map(|word| OsString::from(word.replace('~', " "))).collect();
        let words = rearranged(words);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_command_of_a_server_needs_no_dashes_before_it() {
        for (line, ours) in [
            ("o mcp add x npx pkg@latest", "o mcp add x -- npx pkg@latest"),
            ("o mcp add x npx -y pkg --port 5", "o mcp add x -- npx -y pkg --port 5"),
            ("o mcp add -e A=1 x npx pkg", "o mcp add -e A=1 x -- npx pkg"),
            ("o mcp add x -e A=1 npx -y pkg", "o mcp add x -e A=1 -- npx -y pkg"),
            ("o --json mcp add x cmd", "o --json mcp add x -- cmd"),
            ("o --config f.json mcp add x cmd", "o --config f.json mcp add x -- cmd"),
            ("o mcp add -t stdio x https://a.b", "o mcp add -t stdio x -- https://a.b"),
            ("o mcp add x py s.py -- --arg v", "o mcp add x -- py s.py --arg v"),
        ] {
            assert_eq!(read(line), ours);
        }
    }

    #[test]
    fn options_after_the_command_are_ours_until_it_has_options_of_its_own() {
        for (line, ours) in [
            ("o mcp add x cmd -e A=1 -s user", "o mcp add x -e A=1 -s user -- cmd"),
            ("o mcp add x cmd --scope project a", "o mcp add x --scope project -- cmd a"),
            (
                "o mcp add x docker run -i --rm -e A=1 image",
                "o mcp add x -- docker run -i --rm -e A=1 image",
            ),
            ("o mcp add x docker run -e A image", "o mcp add x -- docker run -e A image"),
            ("o mcp add x cmd -t tcp", "o mcp add x -- cmd -t tcp"),
            ("o mcp add x cmd --config f", "o mcp add x -- cmd --config f"),
        ] {
            assert_eq!(read(line), ours);
        }
    }

    #[test]
    fn several_values_may_follow_one_option() {
        for (line, ours) in [
            ("o mcp add x -e A=1 B=2 -- cmd", "o mcp add x -e A=1 --env=B=2 -- cmd"),
            ("o mcp add -e A=1 B=2 x cmd", "o mcp add -e A=1 --env=B=2 x -- cmd"),
            (
                "o mcp add x https://a.b -H A:~1 B:~2",
                "o mcp add x https://a.b -H A: 1 --header=B: 2",
            ),
            ("o mcp add -t http -H A:1 x https://a.b", "o mcp add -t http -H A:1 x https://a.b"),
        ] {
            assert_eq!(read(line), ours);
        }
    }

    #[test]
    fn arguments_of_a_tool_may_look_like_options() {
        for (line, ours) in [
            ("o mcp call x.y --a 5 --b=6", "o mcp call x.y -- --a 5 --b=6"),
            ("o mcp call x y --a 5 b=1 --json", "o mcp call x y b=1 --json -- --a 5"),
            (
                "o mcp call x y --a -5 --flag --timeout 3",
                "o mcp call x y --timeout 3 -- --a -5 --flag",
            ),
            (
                "o mcp call x y -o f --a @f -- --timeout 3",
                "o mcp call x y -o f -- --a @f --timeout 3",
            ),
            ("o mcp call x add --a 5", "o mcp call x add -- --a 5"),
            ("o --json mcp call x y a=1", "o --json mcp call x y a=1"),
        ] {
            assert_eq!(read(line), ours);
        }
    }

    #[test]
    fn other_lines_are_left_alone() {
        for line in [
            "o mcp add x -- docker run -e A=1 image",
            "o mcp add x --url https://a.b --json",
            "o mcp add x https://a.b --json",
            "o mcp add -t sse x a.b --unknown",
            "o mcp add",
            "o mcp add x",
            "o mcp call mcp add a=1",
            "o mcp call x y a=1",
            "o mcp call x y --a 1 --help",
            "o mcp call --unknown x y",
            "o mcp tools call --schema",
            "o mcp add x --unknown cmd",
        ] {
            assert_eq!(read(line), line.replace('~', " "));
        }
    }
}
