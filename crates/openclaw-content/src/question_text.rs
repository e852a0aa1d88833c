//! What a question about a call shows, whatever the client: one text for all of them.

use thiserror::Error;

use crate::excerpt::{clean_excerpt, more_characters, split};
use crate::shown_arguments::ShownArguments;
use crate::untrusted::Untrusted;

/// The least room for arguments, in characters: less would say nothing about the call.
const MIN_ARGUMENTS: usize = 100;
/// Maximum length of a title, in characters.
const TITLE: usize = 300;
/// The part of the room that a description may take.
const DESCRIPTION_PART: usize = 4;

/// A question about a call.
#[derive(Debug, Clone, Copy)]
pub struct QuestionText<'a> {
    /// What is asked.
    pub title: &'a str,
    /// The arguments of the call, as JSON.
    pub arguments: &'a str,
    /// For a tool that has changed: how, line by line. Text of the server.
    pub changes: &'a [String],
    /// The description of the tool. Text of the server.
    pub description: &'a str,
    /// Where all of it can be read, if it is too long.
    pub whole: Option<&'a str>,
}

/// A question that a client has no room for: nobody may be asked to approve what is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum QuestionTooLong {
    /// The difference of a changed tool.
    #[error("there is no room to show how the tool has changed")]
    Changes,
    /// The arguments.
    #[error("there is no room to show the arguments of the call")]
    Arguments,
}

impl QuestionText<'_> {
    /// Returns the text, in about this number of characters.
    ///
    /// # Errors
    /// If it must not be shortened: the difference of a changed tool, or arguments that cannot be read
    /// anywhere else.
    pub fn fit(&self, room: usize) -> Result<String, QuestionTooLong> {
        let line = |text: &str, room| clean_excerpt(Untrusted::new(text), room);
        let mut text: Vec<String> = self.title.lines().map(|title| line(title, TITLE)).collect();
        text.extend(self.changes.iter().map(|change| line(change, usize::MAX)));
        if !self.changes.is_empty() && length(&text) + MIN_ARGUMENTS > room {
            return Err(QuestionTooLong::Changes);
        }
        let arguments = ShownArguments::read(self.arguments).text();
        let left = room.saturating_sub(length(&text));
        // Of a changed tool, the difference is enough.
        let about = if self.changes.is_empty() { self.description } else { "" };
        let about = line(about, room / DESCRIPTION_PART);
        let about = Some(about).filter(|about| !about.is_empty());
        let for_about = about.as_ref().map_or(0, |about| about.chars().count() + 1);
        match split(&arguments, left.saturating_sub(for_about)) {
            None => {
                text.push(arguments);
                text.extend(about);
            }
            Some(_) => {
                let whole = self.whole.ok_or(QuestionTooLong::Arguments)?;
                let note = format!("All of it: {whole}");
                let marker = more_characters(arguments.len());
                let others = note.chars().count() + marker.chars().count() + 3;
                let left = left.saturating_sub(others);
                if left < MIN_ARGUMENTS {
                    return Err(QuestionTooLong::Arguments);
                }
                // Without the description: what runs is more important.
                match split(&arguments, left) {
                    None => text.push(arguments),
                    Some((beginning, hidden, end)) => text.extend([
                        beginning.to_owned(),
                        more_characters(hidden),
                        end.to_owned(),
                        note,
                    ]),
                }
            }
        }
        text.retain(|line| !line.is_empty());
        Ok(text.join("\n"))
    }
}

/// The number of characters of these lines.
fn length(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count() + 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: QuestionText<'_> = QuestionText {
        title: "Allow it?",
        arguments: r#"{"command":"ls"}"#,
        changes: &[],
        description: "Runs a command.",
        whole: None,
    };

    #[test]
    fn a_short_call_is_shown_with_its_description() {
        assert_eq!(SHORT.fit(1_000).unwrap(), "Allow it?\ncommand=\"ls\"\nRuns a command.");
        let hidden = r#"{"command":"ls\u202e\u200b","a":"\u001b[8m"}"#;
        let text = QuestionText { arguments: hidden, ..SHORT }.fit(1_000).unwrap();
        assert!(text.contains("command=\"ls\\u{202e}\\u{200b}\"\na=\"\\u{1b}[8m\""), "{text}");
    }

    #[test]
    fn the_end_of_a_long_call_is_shown_or_nobody_is_asked() {
        let arguments = format!(r#"{{"command":"echo {}; touch X"}}"#, "build ".repeat(2_000));
        let long = QuestionText { arguments: &arguments, whole: Some("`show 1`"), ..SHORT };
        for room in [250, 500, 8_000] {
            let text = long.fit(room).unwrap();
            assert!(text.contains("command=\"echo build build"), "{text}");
            assert!(text.contains("; touch X\"\nAll of it: `show 1`"), "{text}");
            assert!(text.contains(" more characters …\n"), "{text}");
            assert!(text.chars().count() <= room, "{} {text}", text.chars().count());
        }
        assert_eq!(long.fit(100), Err(QuestionTooLong::Arguments));
        let nowhere = QuestionText { whole: None, ..long };
        assert_eq!(nowhere.fit(8_000), Err(QuestionTooLong::Arguments));
        assert!(nowhere.fit(20_000).unwrap().contains("; touch X\"\nRuns"));
    }

    #[test]
    fn a_difference_is_shown_in_full_or_nobody_is_asked() {
        let changes = ["- Pins.".to_owned(), format!("+ Pins {}and sends.", "x".repeat(600))];
        let changed = QuestionText { changes: &changes, ..SHORT };
        let text = changed.fit(1_000).unwrap();
        assert!(text.starts_with("Allow it?\n- Pins.\n+ Pins xx"), "{text}");
        assert!(text.ends_with("and sends.\ncommand=\"ls\""), "{text}");
        assert_eq!(changed.fit(512), Err(QuestionTooLong::Changes));
    }
}
