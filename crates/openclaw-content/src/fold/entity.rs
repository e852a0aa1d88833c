//! The HTML entities that stand for a character that matters.

use super::{Class, OTHER, class_of_ascii};

/// The first bytes after an ampersand, as one number: comparing it with an entity is one step.
type Word = u64;
const WORD: usize = size_of::<Word>();

struct Entity {
    /// The name and its semicolon.
    word: Word,
    /// Which bits of a word belong to them.
    mask: Word,
    /// The bits in which capitals and small letters differ, where there are letters.
    case: Word,
    class: Class,
    /// The length, with ampersand and semicolon.
    width: usize,
}

impl Entity {
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
        Self { word, mask, case, class: class_of_ascii(stands_for), width: written.len() + 1 }
    }
}

/// The entities that stand for a bracket or a bar, in small letters, without `&`.
static ENTITIES: [Entity; 16] = [
    Entity::new(b"lt;", b'<'),
    Entity::new(b"gt;", b'>'),
    Entity::new(b"#60;", b'<'),
    Entity::new(b"#62;", b'>'),
    Entity::new(b"#x3c;", b'<'),
    Entity::new(b"#x3e;", b'>'),
    Entity::new(b"vert;", b'|'),
    Entity::new(b"verbar;", b'|'),
    Entity::new(b"#124;", b'|'),
    Entity::new(b"#x7c;", b'|'),
    Entity::new(b"lsqb;", b'['),
    Entity::new(b"rsqb;", b']'),
    Entity::new(b"#91;", b'['),
    Entity::new(b"#93;", b']'),
    Entity::new(b"#x5b;", b'['),
    Entity::new(b"#x5d;", b']'),
];

/// The class of what the `&` at `at` begins, and its length in bytes.
pub(super) fn entity(text: &[u8], at: usize) -> (Class, usize) {
    let rest = &text[at + 1..];
    let bytes = rest.first_chunk::<WORD>().copied().unwrap_or_else(|| {
        let mut bytes = [0; WORD];
        bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        bytes
    });
    let word = Word::from_le_bytes(bytes);
    let found = ENTITIES.iter().find(|entity| (word | entity.case) & entity.mask == entity.word);
    found.map_or((OTHER, 1), |entity| (entity.class, entity.width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_known_in_any_case_and_at_the_end_of_the_text() {
        for (text, stands_for) in
            [("&lt;", b'<'), ("&GT;", b'>'), ("&#X3C;", b'<'), ("&verBar;", b'|'), ("&#93;", b']')]
        {
            let expected = (class_of_ascii(stands_for), text.len());
            assert_eq!(entity(text.as_bytes(), 0), expected, "{text}");
            assert_eq!(entity(format!("{text}lt;&gt;").as_bytes(), 0), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_entity_is_an_ampersand() {
        // The control characters differ from `#` and `;` in the bit that tells capitals apart.
        for text in ["&", "&l", "&lt", "&lt ", "&amp;", "&\u{3}60;", "&lt\u{1b}", "&&lt;"] {
            assert_eq!(entity(text.as_bytes(), 0), (OTHER, 1), "{text:?}");
        }
    }
}
