//! External text that is passed on to other programs without a boundary: log messages, questions,
//! entries of lists.

use serde_json::{Map, Value};

use crate::label::{cut, is_invisible};
use crate::sanitize::sanitize;
use crate::untrusted::Untrusted;

/// Returns a text of several lines without hidden characters, markers and control tokens, truncated to
/// `max_chars` characters with an ellipsis. Line breaks, tabs and blanks stay, and so do the joiners that
/// scripts and emoji need.
///
/// Like [`clean_line`](crate::clean_line), it is for text that has no place for a boundary; what it *says*
/// is still untrusted.
///
/// ```
/// use openclaw_content::{Untrusted, clean_text};
///
/// let text = Untrusted::new("if a:\n\tb\u{202e}c\u{1b}[31m <|im_start|>");
/// assert_eq!(clean_text(text, 80), "if a:\n\tbc[31m [removed token]");
/// ```
///
/// ```compile_fail
/// openclaw_content::clean_text("Lists the files.", 80);
/// ```
#[must_use]
pub fn clean_text(text: Untrusted<&str>, max_chars: usize) -> String {
    let text = text.expose();
    let end = text.char_indices().nth(max_chars.saturating_mul(2)).map_or(text.len(), |(at, _)| at);
    // No more is needed to see that there is something to truncate.
    let text = text.get(..end).unwrap_or(text);
    let visible = visible(text);
    cut(sanitize(Untrusted::new(&visible)).into_text().into_owned(), max_chars)
}

/// Returns whether [`clean_text`] would return the text unchanged.
#[must_use]
pub fn is_clean_text(text: Untrusted<&str>, max_chars: usize) -> bool {
    let inside = text.expose();
    // A text has no more characters than bytes.
    let fits = inside.len() <= max_chars || inside.chars().nth(max_chars).is_none();
    fits && (is_ascii_text(inside) || visible(inside).len() == inside.len())
        && sanitize(text).is_unchanged()
}

/// Cleans all texts in a JSON value like [`clean_text`], also the names of members. The result has the
/// same structure, unless two names become the same.
pub fn clean_json(value: &mut Value, max_chars: usize) {
    match value {
        Value::String(text) => clean_string(text, max_chars),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_json(item, max_chars)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| clean_json(member, max_chars));
            let is_clean = |name: &String| is_clean_text(Untrusted::new(name), max_chars);
            if !members.keys().all(is_clean) {
                let all: Map<String, Value> = std::mem::take(members);
                let cleaned = |name: String| clean_text(Untrusted::new(&name), max_chars);
                members.extend(all.into_iter().map(|(name, member)| (cleaned(name), member)));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean_string(text: &mut String, max_chars: usize) {
    // Nearly all texts are clean, and are not copied.
    if !is_clean_text(Untrusted::new(text), max_chars) {
        *text = clean_text(Untrusted::new(text), max_chars);
    }
}

fn is_ascii_text(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
}

/// The text without hidden characters.
fn visible(text: &str) -> String {
    let is_joiner = |c: char| matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    let mut before = ' ';
    let is_kept = |c: &char| {
        let joins = is_joiner(*c) && !before.is_ascii() && !is_joiner(before);
        let is_kept = joins || matches!(c, '\n' | '\t') || !is_invisible(*c);
        if is_kept {
            before = *c;
        }
        is_kept
    };
    text.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn text_of_any_script_keeps_its_lines_blanks_and_joiners() {
        for text in
            ["fn a() {\n    b();\n}\n", "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}", "می\u{200c}خواهم"]
        {
            assert_eq!(clean_text(Untrusted::new(text), 100), text);
            assert!(is_clean_text(Untrusted::new(text), 100), "{text:?}");
        }
    }

    #[test]
    fn hidden_characters_markers_and_tokens_are_removed() {
        for (text, cleaned) in [
            ("a\r\nb\u{0}\u{1b}[2J", "a\nb[2J"),
            ("a\u{200d}b\u{fe0f}\u{202e}\u{e0041}", "ab"),
            ("<|im_\u{200b}start|>", "[removed token]"),
            ("x <<<EXTERNAL_\nUNTRUSTED_CONTENT id=\"1\">>>", "x <<[removed marker] id=\"1\">>>"),
        ] {
            assert_eq!(clean_text(Untrusted::new(text), 100), cleaned);
            assert!(!is_clean_text(Untrusted::new(text), 100), "{text:?}");
        }
        assert_eq!(clean_text(Untrusted::new("abcd"), 3), "ab…");
    }

    #[test]
    fn all_strings_and_names_in_json_are_cleaned() {
        let mut value = json!({ "a": ["x [INST]", 1, null], "[INST]": { "b\u{202e}": "y" } });
        clean_json(&mut value, 40);
        let token = "[removed token]";
        assert_eq!(value, json!({ "a": [format!("x {token}"), 1, null], token: { "b": "y" } }));
    }

    proptest! {
        #[test]
        fn cleaning_is_idempotent_and_bounded(text in "(.|\n|\u{200d}|\u{202e}|<\\|im_start\\|>){0,60}", max in 1_usize..70) {
            let once = clean_text(Untrusted::new(&text), max);
            prop_assert!(once.chars().count() <= max);
            prop_assert!(is_clean_text(Untrusted::new(&once), max), "{once:?}");
            prop_assert_eq!(&clean_text(Untrusted::new(&once), max), &once);
            prop_assert_eq!(is_clean_text(Untrusted::new(&text), max), once == text);
        }
    }
}
