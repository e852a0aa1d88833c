//! HTML character references: the named ones for brackets, bars and underscores, and all numeric ones.

/// The first bytes after an ampersand as one integer, so that a name is compared in one step.
type Word = u64;
const WORD: usize = size_of::<Word>();

struct Named {
    /// The name and its semicolon.
    word: Word,
    /// The bits of a word that belong to them.
    mask: Word,
    /// The case bits, where there are letters.
    case: Word,
    code: u32,
    /// The length, with ampersand and semicolon.
    width: usize,
}

impl Named {
    const fn new(written: &[u8], stands_for: u8) -> Self {
        let (mut word, mut mask, mut case, mut at) = (0, 0, 0, 0);
        while at < written.len() {
            word |= (written[at] as Word) << (8 * at);
            mask |= 0xFF << (8 * at);
            if written[at].is_ascii_lowercase() {
                case |= 0x20 << (8 * at);
            }
            at += 1;
        }
        Self { word, mask, case, code: stands_for as u32, width: written.len() + 1 }
    }
}

/// The names in lower case, without `&`.
static NAMED: [Named; 9] = [
    Named::new(b"lt;", b'<'),
    Named::new(b"gt;", b'>'),
    Named::new(b"vert;", b'|'),
    Named::new(b"verbar;", b'|'),
    Named::new(b"lsqb;", b'['),
    Named::new(b"rsqb;", b']'),
    Named::new(b"lbrack;", b'['),
    Named::new(b"rbrack;", b']'),
    Named::new(b"lowbar;", b'_'),
];

/// Returns the code point of the reference at the start of the text, and the length of the reference
/// in bytes. The text must begin with `&`.
#[inline]
pub(super) fn reference(text: &[u8]) -> Option<(u32, usize)> {
    match text.get(1) {
        Some(b'#') => numbered(&text[2..]).map(|(code, width)| (code, width + 2)),
        _ => named(&text[1..]),
    }
}

fn named(rest: &[u8]) -> Option<(u32, usize)> {
    let bytes = rest.first_chunk::<WORD>().copied().unwrap_or_else(|| {
        let mut bytes = [0; WORD];
        bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        bytes
    });
    let word = Word::from_le_bytes(bytes);
    let found = NAMED.iter().find(|named| (word | named.case) & named.mask == named.word);
    found.map(|named| (named.code, named.width))
}

/// Parses `60;`, `x3C;` and the like, with any number of leading zeros.
fn numbered(rest: &[u8]) -> Option<(u32, usize)> {
    let (radix, digits) = match rest {
        [b'x' | b'X', digits @ ..] => (16, digits),
        _ => (10, rest),
    };
    let mut code = 0_u32;
    for (at, byte) in digits.iter().enumerate() {
        match char::from(*byte).to_digit(radix) {
            // A saturated number is not a code point, whatever digits follow.
            Some(digit) => code = code.saturating_mul(radix).saturating_add(digit),
            None => {
                let width = rest.len() - digits.len() + at + 1;
                return (*byte == b';' && at > 0).then_some((code, width));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_recognized_in_any_case_and_at_the_end_of_the_text() {
        for (text, stands_for) in [
            ("&lt;", '<'),
            ("&GT;", '>'),
            ("&#X3C;", '<'),
            ("&verBar;", '|'),
            ("&lowbar;", '_'),
            ("&#93;", ']'),
            ("&#060;", '<'),
            ("&#x03c;", '<'),
            ("&#0000000000000000095;", '_'),
            ("&#xFF1C;", '＜'),
        ] {
            let expected = Some((u32::from(stands_for), text.len()));
            assert_eq!(reference(text.as_bytes()), expected, "{text}");
            assert_eq!(reference(format!("{text}lt;&gt;").as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn other_text_is_not_a_reference() {
        // The control characters differ from `#` and `;` only in the case bit.
        for text in [
            "&",
            "&l",
            "&lt",
            "&lt ",
            "&amp;",
            "&\u{3}60;",
            "&lt\u{1b}",
            "&&lt;",
            "&#",
            "&#;",
            "&#x;",
            "&#60",
            "&#6 0;",
            "&#3c;",
        ] {
            assert_eq!(reference(text.as_bytes()), None, "{text:?}");
        }
    }
}
