//! The words of a command, for approvals of commands that begin alike.

use crate::grant::Grant;

/// The number of words in the longest prefix that can be approved.
const MOST_WORDS: usize = 2;

/// Returns the approvals that cover a command, the narrowest first: the command itself, then its
/// first words if it is plain.
pub(in crate::native) fn covering(command: &str) -> Vec<Grant> {
    let mut grants = vec![Grant::Command(command.to_owned())];
    let words = plain_words(command).unwrap_or_default();
    let prefixes = (1..=words.len().min(MOST_WORDS)).rev();
    grants.extend(prefixes.map(|length| Grant::CommandPrefix(words[..length].to_vec())));
    grants
}

/// Splits a plain command: one that starts a single program with literal arguments. `None` if the
/// shell may do anything else with it, such as start a second command, write to a file, or replace
/// a variable: a prefix would allow more than its words say.
fn plain_words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut rest = command.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' => words.extend(word.take()),
            // `cmd.exe` knows no single quotes, and replaces variables in double ones.
            '\'' | '"' if cfg!(unix) => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        end if end == next => break,
                        // Other shells read a backslash in single quotes differently.
                        '\\' | '$' | '`' | '!' => return None,
                        inner if inner.is_control() => return None,
                        inner => word.push(inner),
                    }
                }
            }
            '%' if cfg!(unix) => word.get_or_insert_default().push(next),
            '-' | '_' | '.' | '/' | ':' | '@' | ',' | '+' | '=' => {
                word.get_or_insert_default().push(next);
            }
            _ if next.is_alphanumeric() => word.get_or_insert_default().push(next),
            _ => return None,
        }
    }
    words.extend(word);
    // The first word may set a variable instead of naming a program.
    let names_a_program = words.first().is_some_and(|first| !first.contains('='));
    names_a_program.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(words: &[&str]) -> Grant {
        Grant::CommandPrefix(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn a_plain_command_is_covered_by_itself_and_by_its_first_words() {
        let command = "git  status --short";
        let expected =
            [Grant::Command(command.to_owned()), prefix(&["git", "status"]), prefix(&["git"])];
        assert_eq!(covering(command), expected);
        assert_eq!(covering("ls"), [Grant::Command("ls".to_owned()), prefix(&["ls"])]);
    }

    #[cfg(unix)]
    #[test]
    fn quoted_words_are_literal() {
        let words = plain_words(r#"git commit -m "one; two" 'three | four'"#).unwrap();
        assert_eq!(words, ["git", "commit", "-m", "one; two", "three | four"]);
        assert_eq!(plain_words("g'i't status").unwrap(), ["git", "status"]);
        assert_eq!(plain_words("'' x").unwrap(), ["", "x"]);
    }

    #[test]
    fn a_command_that_does_more_than_its_first_words_say_has_no_prefix() {
        for command in [
            "git status; rm -rf .",
            "git status && rm x",
            "git status | sh",
            "git status & rm x",
            "git status\nrm x",
            "git status\rrm x",
            "git status > x",
            "git status $(rm x)",
            "git status `rm x`",
            "git status \"$(rm x)\"",
            "git status \"`rm x`\"",
            "git status 'a\\' x 'b; rm x'",
            "git status \\; x",
            "git status (x)",
            "git status {a,b}",
            "git status *",
            "git status ~",
            "git status # x",
            "git status 'open",
            "PATH=/tmp git status",
            "\u{a0}git status",
            "",
            "  ",
        ] {
            assert_eq!(covering(command), [Grant::Command(command.to_owned())], "{command:?}");
        }
    }
}
