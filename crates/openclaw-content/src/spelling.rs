//! Looks at the surroundings of a match: letters alone do not tell a control token from source code,
//! nor a suspicious phrase from the middle of a word.

use crate::automaton::classes_of;
use crate::fold::{self, Class, HIDDEN, SKIP};
use crate::patterns::{BAR_TOKENS, Spelling};

/// Whether a control token is written so that it counts.
pub(crate) fn is_spelled(span: &str, how: Spelling) -> bool {
    match how {
        Spelling::Free => true,
        Spelling::Capitals => !span.bytes().any(|byte| byte.is_ascii_lowercase()),
        Spelling::Tight => !has_blank(span),
    }
}

/// Whether the words of the marker are joined as in the marker, or at all: in prose there are just
/// blanks between them.
pub(crate) fn joins_words(span: &str) -> bool {
    span.contains('_') || !has_blank(span)
}

/// Whether what stands between `<|` and `|>` is the name of a control token.
pub(crate) fn is_token_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.bytes().all(plain) {
        return !name.is_empty();
    }
    let mut folded = folded(name).peekable();
    folded.peek().is_some()
        && (!has_blank(name) || is_known(name))
        && folded
            .all(|(class, byte)| fold::is_letter(class) || byte.is_ascii_digit() || byte == b'/')
}

fn is_known(name: &str) -> bool {
    BAR_TOKENS.iter().any(|token| classes_of(token).eq(folded(name).map(|(class, _)| class)))
}

/// The characters of a text that count, as classes, each with its first byte.
fn folded(text: &str) -> impl Iterator<Item = (Class, u8)> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = *bytes.get(at)?;
        let (class, width) = fold::class_at(bytes, at);
        at += width;
        Some((class, first))
    })
    .flat_map(|(class, first)| {
        let both = fold::pair(class).map_or([class, SKIP], |both| both);
        both.map(|class| (class, first))
    })
    .filter(|(class, _)| *class != SKIP && *class != HIDDEN)
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
    // A byte beyond ASCII may belong to a letter. Mostly one of the two bytes shows that it does not
    // come to that.
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

/// Whether nothing but the decoration of a heading stands before `start` on its line.
pub(crate) fn begins_line(text: &str, start: usize) -> bool {
    const DECORATION: usize = 16;
    text[..start]
        .bytes()
        .rev()
        .take(DECORATION)
        .find(|byte| !matches!(byte, b' ' | b'\t' | b'#' | b'*' | b'>' | b'-'))
        .map_or(start <= DECORATION, |byte| byte == b'\n')
}

/// Whether the address that goes on with `rest` carries a query.
pub(crate) fn address_has_query(rest: &str) -> bool {
    // An address holds no `[`, but a row of image links does: stopping there, no byte is looked at
    // for two of them.
    rest.bytes()
        .take_while(|byte| !matches!(byte, b')' | b'[' | b' ' | b'\n'))
        .any(|byte| byte == b'?')
}

/// Whether a hidden text begins at `at`: a tag character after something else. (After the black flag
/// tag characters spell a region, and the two make an emoji.)
pub(crate) fn begins_hidden_text(text: &str, at: usize) -> bool {
    let is_tag = |c: char| ('\u{E0000}'..='\u{E007F}').contains(&c);
    text[at..].starts_with(is_tag) && !text[..at].ends_with(|c| c == '\u{1F3F4}' || is_tag(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_names_are_single_words_or_known() {
        for name in ["im_start", "User", "begin▁of▁sentence", "reserved_special_token_12", " user "]
        {
            assert!(is_token_name(name), "{name}");
        }
        for other in ["", " ", " x ", " List.map f ", "a|b", "[removed token]", "中"] {
            assert!(!is_token_name(other), "{other}");
        }
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
    fn flags_are_no_hidden_text() {
        assert!(begins_hidden_text("a\u{E0041}", 1));
        assert!(!begins_hidden_text("\u{1F3F4}\u{E0067}\u{E0062}", 4));
        assert!(!begins_hidden_text("\u{1F3F4}\u{E0067}\u{E0062}", 8));
    }
}
