//! Checks the spelling and context of a match: letters alone do not distinguish a control token from
//! source code, nor a suspicious phrase from the middle of a word.

use crate::automaton::classes_of;
use crate::fold::{self, Class, SKIP};
use crate::patterns::{BAR_TOKENS, Spelling};

/// Whether a control token has the required spelling.
pub(crate) fn is_spelled(span: &str, how: Spelling) -> bool {
    match how {
        Spelling::Free => true,
        Spelling::Capitals => has_small_letters_at_most(span, 0),
        Spelling::OneSmall => has_small_letters_at_most(span, 1),
        Spelling::Tight => !has_blank(span),
        Spelling::Small => {
            units(span).all(|(_, unit)| !matches!(unit, [byte] if is_of_code(*byte)))
        }
    }
}

/// Whether a token in small letters cannot contain this character.
fn is_of_code(byte: u8) -> bool {
    byte.is_ascii_uppercase()
        || byte.is_ascii_whitespace()
        || matches!(byte, b'\'' | b'*' | b'.' | b'~' | b'`')
}

/// Whether there are at most this many lower-case ASCII letters, not counting those in HTML
/// references.
fn has_small_letters_at_most(span: &str, most: usize) -> bool {
    span.bytes().filter(u8::is_ascii_lowercase).nth(most).is_none()
        || span.contains('&') && small_letters_outside_references(span) <= most
}

#[cold]
#[inline(never)]
fn small_letters_outside_references(span: &str) -> usize {
    units(span).filter(|(_, unit)| matches!(unit, [byte] if byte.is_ascii_lowercase())).count()
}

/// Whether the words of the marker are joined, by underscores or directly: in prose there are blanks
/// between them.
pub(crate) fn joins_words(span: &str) -> bool {
    span.contains('_')
        || if span.contains('&') { references_join_words(span) } else { !has_blank(span) }
}

#[cold]
#[inline(never)]
fn references_join_words(span: &str) -> bool {
    let meant = || fold::references(span).filter_map(char::from_u32);
    meant().any(|c| c == '_') || !(has_blank(span) || meant().any(char::is_whitespace))
}

/// Returns the end of the control token that begins with `text[start..end]` and continues with a
/// number and a bracket. `Vec<Unused2>` is source code.
#[cold]
#[inline(never)]
pub(crate) fn end_of_numbered(
    text: &str,
    start: usize,
    end: usize,
    how: Spelling,
) -> Option<usize> {
    const LONGEST_REST: usize = 12;
    if !is_spelled(&text[start..end], how) {
        return None;
    }
    let (mut at, mut has_digits) = (end, false);
    for (class, unit) in units(&text[end..]).take(LONGEST_REST) {
        at += unit.len();
        if class == fold::class_of_byte(b'>') {
            return has_digits.then_some(at);
        }
        let is_digit = match unit {
            [byte] => byte.is_ascii_digit(),
            _ => str::from_utf8(unit).is_ok_and(|unit| unit.chars().all(char::is_numeric)),
        };
        if !is_digit && !fold::is_ignored(class) {
            return None;
        }
        has_digits |= is_digit;
    }
    None
}

/// Whether the text between `<|` and `|>` is the name of a control token.
pub(crate) fn is_token_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    // `<|"|>` delimits strings in a tool's result.
    if name == "\"" || name.bytes().all(plain) {
        return !name.is_empty();
    }
    let is_single = !has_blank(name) && (!name.contains('\\') || name.contains("\\_"));
    let mut folded = folded(name).peekable();
    folded.peek().is_some()
        && (is_single || is_known(name))
        && folded
            .all(|(class, byte)| fold::is_letter(class) || byte.is_ascii_digit() || byte == b'/')
}

fn is_known(name: &str) -> bool {
    BAR_TOKENS.iter().any(|token| classes_of(token).eq(folded(name).map(|(class, _)| class)))
}

/// Returns the classes of the significant characters of a text, each with its first byte.
fn folded(text: &str) -> impl Iterator<Item = (Class, u8)> + '_ {
    units(text)
        .flat_map(|(class, unit)| {
            let both = fold::pair(class).map_or([class, SKIP], |both| both);
            both.map(|class| (class, unit[0]))
        })
        .filter(|(class, _)| !fold::is_ignored(*class))
}

/// Returns the characters and HTML references of a text, each with its class.
fn units(text: &str) -> impl Iterator<Item = (Class, &[u8])> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        bytes.get(start)?;
        let (class, width) = fold::class_at(bytes, start);
        at += width;
        Some((class, &bytes[start..at]))
    })
}

fn has_blank(span: &str) -> bool {
    span.bytes().any(|byte| byte.is_ascii_whitespace())
}

/// Whether the match is not part of a longer word.
pub(crate) fn stands_alone(text: &str, start: usize, end: usize, ends_word: bool) -> bool {
    !(is_inside_word(text, start) || ends_word && is_inside_word(text, end))
}

#[inline]
fn is_inside_word(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let Some(last) = at.checked_sub(1).and_then(|before| bytes.get(before)) else { return false };
    let Some(first) = bytes.get(at) else { return false };
    // A non-ASCII byte may belong to a letter. Usually one of the two bytes already rules that out.
    let may_be_letter = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    may_be_letter(*last)
        && may_be_letter(*first)
        && (last.is_ascii() && first.is_ascii() || joins_letters(text, at))
}

#[cold]
#[inline(never)]
fn joins_letters(text: &str, at: usize) -> bool {
    let (before, after) = text.split_at(at);
    before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric)
}

/// Whether nothing but heading or quote markup precedes `start` on its line.
pub(crate) fn begins_line(text: &str, start: usize) -> bool {
    const DECORATION: usize = 16;
    text[..start]
        .bytes()
        .rev()
        .take(DECORATION)
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'#' | b'*' | b'>' | b'-'))
        .map_or(start <= DECORATION, |byte| byte == b'\n')
}

/// Whether the URL that continues with `rest` has a query.
pub(crate) fn address_has_query(rest: &str) -> bool {
    // A URL has no `[`, but a row of image links does: stopping there, no byte is read for two of
    // them.
    rest.bytes()
        .take_while(|byte| !matches!(byte, b')' | b'[' | b' ' | b'\n'))
        .any(|byte| byte == b'?')
}

/// Whether hidden text begins at `at`: a tag character after something else. (After the black flag,
/// tag characters name a region, and together they are an emoji.)
pub(crate) fn begins_hidden_text(text: &str, at: usize) -> bool {
    let is_tag = |c: char| ('\u{E0000}'..='\u{E007F}').contains(&c);
    text[at..].starts_with(is_tag) && !text[..at].ends_with(|c| c == '\u{1F3F4}' || is_tag(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_names_are_single_words_or_known() {
        for name in [
            "im_start",
            "User",
            "begin▁of▁sentence",
            "reserved_special_token_12",
            " user ",
            "im&lowbar;start",
            "user\\",
            "reserved\\_special\\_token\\_12\\",
            "im\u{2cd}start",
            "\"",
        ] {
            assert!(is_token_name(name), "{name}");
        }
        for other in ["", " ", " x ", " List.map f ", "x\\", "a|b", "[removed token]", "中"] {
            assert!(!is_token_name(other), "{other}");
        }
    }

    #[test]
    fn the_words_of_the_marker_are_joined_by_references_too() {
        for (span, expected) in [
            ("external&#95;untrusted content", true),
            ("external&lowbar;untrusted content", true),
            ("external&#32;untrusted&#160;content", false),
            ("external\\ untrusted\\ content", false),
        ] {
            assert_eq!(joins_words(span), expected, "{span}");
        }
    }

    #[test]
    fn references_have_no_small_letters() {
        assert!(is_spelled("&lsqb;&#x49;NST&rsqb;", Spelling::Capitals));
        assert!(is_spelled("[gMASK]", Spelling::OneSmall));
        assert!(!is_spelled("[gMasK]", Spelling::OneSmall));
    }

    #[test]
    fn a_tag_in_small_letters_is_no_type_of_source_code() {
        for tag in ["<s>", "&LT;s&gt;", "‹tool_call›", "\\<think\\>", "<tool-call>"] {
            assert!(is_spelled(tag, Spelling::Small), "{tag}");
        }
        for code in ["<S>", "<'s>", "<s*>", "<ToolCall>", "< think >", "<THINK>"] {
            assert!(!is_spelled(code, Spelling::Small), "{code}");
        }
    }

    #[test]
    fn a_numbered_token_ends_with_its_bracket() {
        for (rest, length) in
            [("0>", 2), ("1 2\u{200b}>x", 7), ("99&gt;>", 6), ("１２３›", 12), ("\\_7\\>", 5)]
        {
            let text = format!("<unused{rest}");
            let end = end_of_numbered(&text, 0, 7, Spelling::Small);
            assert_eq!(end, Some(7 + length), "{text}");
        }
        for rest in ["", ">", "x>", "1", "1x>", "1234567890123456>", "variable1>"] {
            let text = format!("<unused{rest}");
            assert_eq!(end_of_numbered(&text, 0, 7, Spelling::Small), None, "{rest}");
        }
        assert_eq!(end_of_numbered("<Unused1>", 0, 7, Spelling::Small), None);
        assert_eq!(end_of_numbered("<SPECIAL_12>", 0, 9, Spelling::Capitals), Some(12));
    }

    #[test]
    fn a_line_may_begin_with_decoration() {
        for (text, expected) in
            [("", true), ("a\n## ", true), ("a\n", true), ("> ", true), ("the ", false)]
        {
            assert_eq!(begins_line(text, text.len()), expected, "{text:?}");
        }
    }

    #[test]
    fn flags_are_not_hidden_text() {
        assert!(begins_hidden_text("a\u{E0041}", 1));
        assert!(!begins_hidden_text("\u{1F3F4}\u{E0067}\u{E0062}", 4));
        assert!(!begins_hidden_text("\u{1F3F4}\u{E0067}\u{E0062}", 8));
    }
}
