//! Folding: maps each character to one of a few classes, disregarding case, width, accents, look-alike
//! alphabets and invisible characters. Patterns are matched on classes.

mod entity;
mod table;

use entity::reference;

/// The class of a character.
pub(crate) type Class = u8;

/// Invisible, blank, or a combining mark: ignored in matching.
pub(crate) const SKIP: Class = 0;
/// A character that occurs in no pattern.
pub(crate) const OTHER: Class = 1;
const FIRST_LETTER: Class = 2;
const PUNCTUATION: &[u8] = b"<>|[]/:!(";
const FIRST_PUNCTUATION: Class = FIRST_LETTER + 26;
/// The number of classes that the automaton knows; higher classes are resolved before it sees them.
pub(crate) const CLASSES: usize = FIRST_PUNCTUATION as usize + PUNCTUATION.len();

/// A non-ASCII byte: its meaning depends on its neighbours.
const MULTI_BYTE: Class = 63;
/// `&`, which may begin an HTML entity.
const AMPERSAND: Class = 64;
/// A Unicode tag character: an invisible copy of an ASCII character that models read.
pub(crate) const HIDDEN: Class = 65;
/// `\`, which may be a Markdown escape.
const BACKSLASH: Class = 66;
/// A line that can join words like `_` and `-`: ignored in matching, but common in ordinary text.
const LINE: Class = 67;
const FIRST_PAIR: Class = 68;
/// The expansions of the capital letters in the table.
const PAIRS: [(u8, [u8; 2]); 5] =
    [(b'S', *b"st"), (b'I', *b"fi"), (b'J', *b"fl"), (b'L', *b"<<"), (b'G', *b">>")];

/// The class of each byte: that of an ASCII character, or [`MULTI_BYTE`].
static BYTES: [Class; 256] = {
    let mut classes = [MULTI_BYTE; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = class_of_ascii(byte);
        byte += 1;
    }
    classes
};

/// The class of an ASCII character.
pub(crate) const fn class_of_ascii(byte: u8) -> Class {
    match byte {
        // Unicode's confusables do not distinguish these characters (nor does a reader).
        b'i' | b'I' | b'1' => FIRST_LETTER + (b'l' - b'a'),
        b'0' => FIRST_LETTER + (b'o' - b'a'),
        b'a'..=b'z' => FIRST_LETTER + (byte - b'a'),
        b'A'..=b'Z' => FIRST_LETTER + (byte - b'A'),
        b'&' => AMPERSAND,
        b'\\' => BACKSLASH,
        0..=b' ' | 0x7F | b'_' | b'-' | b'.' | b'*' | b'~' | b'\'' | b'`' => SKIP,
        _ => {
            let mut at = 0;
            while at < PUNCTUATION.len() {
                if PUNCTUATION[at] == byte {
                    return FIRST_PUNCTUATION + at as Class;
                }
                at += 1;
            }
            OTHER
        }
    }
}

const fn class_in_table(symbol: u8) -> Class {
    let mut at = 0;
    while at < PAIRS.len() {
        if PAIRS[at].0 == symbol {
            return FIRST_PAIR + at as Class;
        }
        at += 1;
    }
    match symbol {
        b' ' => OTHER,
        b'-' => LINE,
        _ => class_of_ascii(symbol),
    }
}

/// Whether the class is that of a letter.
pub(crate) fn is_letter(class: Class) -> bool {
    (FIRST_LETTER..FIRST_PUNCTUATION).contains(&class)
}

/// Whether a character of this class is not part of what is matched.
pub(crate) fn is_ignored(class: Class) -> bool {
    matches!(class, SKIP | HIDDEN | LINE)
}

/// Whether a character of this class, beyond ASCII, may be part of a disguise. A line is no reason
/// to look closer, as `_` and `-` are not.
pub(crate) fn is_suspect(class: Class) -> bool {
    !matches!(class, OTHER | LINE)
}

/// Whether a character of this class can occur in the middle of a phrase.
pub(crate) fn is_inside_phrases(class: Class) -> bool {
    class == SKIP || is_letter(class) || usize::from(class) >= CLASSES
}

/// The two classes that a ligature or a doubled bracket stands for.
pub(crate) fn pair(class: Class) -> Option<[Class; 2]> {
    let (_, both) = PAIRS.get(usize::from(class.checked_sub(FIRST_PAIR)?))?;
    Some(both.map(class_of_ascii))
}

/// A page is the 64 characters whose UTF-8 encodings differ only in the last byte.
const PAGE: usize = 64;
const INDEXED_PAGES: usize = 0x20000 / PAGE;
const TAG_PAGES: std::ops::Range<usize> = 0xE0000 / PAGE..0xE1000 / PAGE;

struct Pages<const N: usize> {
    index: [u16; INDEXED_PAGES],
    pages: [[Class; PAGE]; N],
    used: usize,
}

/// On page 0 all characters are [`OTHER`].
static PAGES: Pages<{ build_pages::<512>().used }> = build_pages();

const fn build_pages<const N: usize>() -> Pages<N> {
    let mut built = Pages { index: [0; INDEXED_PAGES], pages: [[OTHER; PAGE]; N], used: 1 };
    let mut at = 0;
    while at < table::SKIPPED.len() {
        let (mut code, last) = table::SKIPPED[at];
        while code <= last {
            built = with(built, code as usize, SKIP);
            code += 1;
        }
        at += 1;
    }
    at = 0;
    while at < table::LOOK_ALIKES.len() {
        let (first, run) = table::LOOK_ALIKES[at];
        let mut offset = 0;
        while offset < run.len() {
            let class = class_in_table(run.as_bytes()[offset]);
            if class != OTHER {
                built = with(built, first as usize + offset, class);
            }
            offset += 1;
        }
        at += 1;
    }
    built
}

const fn with<const N: usize>(mut built: Pages<N>, code: usize, class: Class) -> Pages<N> {
    if built.index[code / PAGE] == 0 {
        built.index[code / PAGE] = built.used as u16;
        built.used += 1;
    }
    built.pages[built.index[code / PAGE] as usize][code % PAGE] = class;
    built
}

/// Returns the class of the character (or HTML entity) that begins at `at`, and its length in bytes.
#[inline]
pub(crate) fn class_at(text: &[u8], at: usize) -> (Class, usize) {
    match class_of_byte(text[at]) {
        MULTI_BYTE => beyond_ascii(text, at),
        AMPERSAND => {
            reference(&text[at..]).map_or((OTHER, 1), |(code, width)| (class_of_code(code), width))
        }
        BACKSLASH => (class_of_backslash(text.get(at + 1)), 1),
        class => (class, 1),
    }
}

/// Returns the class of a byte without decoding the whole character. If the byte may begin a longer
/// sequence, the class is one that the automaton does not know.
#[inline]
pub(crate) fn class_of_byte(byte: u8) -> Class {
    BYTES[usize::from(byte)]
}

/// A backslash before anything but a letter or digit is an escape in Markdown, and is not rendered.
/// Before a letter it separates the parts of a path, or begins a LaTeX command.
fn class_of_backslash(next: Option<&u8>) -> Class {
    if next.is_some_and(u8::is_ascii_alphanumeric) { OTHER } else { SKIP }
}

/// Returns the class of a code point from an HTML reference.
fn class_of_code(code: u32) -> Class {
    match u8::try_from(code) {
        // A reference to `&` or `\` is not resolved again.
        Ok(byte) if byte.is_ascii() => {
            Some(class_of_byte(byte)).filter(|class| usize::from(*class) < CLASSES).unwrap_or(OTHER)
        }
        _ => class_on_page(code as usize / PAGE, code as usize % PAGE),
    }
}

/// Returns the code points of the HTML references in a text.
pub(crate) fn references(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.match_indices('&')
        .filter_map(|(at, _)| reference(&text.as_bytes()[at..]))
        .map(|(code, _)| code)
}

/// Returns the class of the non-ASCII character that begins at `at`, and its length in bytes.
#[inline]
pub(crate) fn beyond_ascii(text: &[u8], at: usize) -> (Class, usize) {
    let six = |offset: usize| usize::from(text[at + offset] & 0x3F);
    let lead = usize::from(text[at]);
    let (page, within, width) = match lead {
        ..0xE0 => (lead & 0x1F, six(1), 2),
        0xE0..0xF0 => ((lead & 0x0F) << 6 | six(1), six(2), 3),
        _ => ((lead & 0x07) << 12 | six(1) << 6 | six(2), six(3), 4),
    };
    (class_on_page(page, within), width)
}

#[inline]
fn class_on_page(page: usize, within: usize) -> Class {
    match PAGES.index.get(page) {
        Some(index) => PAGES.pages[usize::from(*index)][within],
        None if TAG_PAGES.contains(&page) => HIDDEN,
        None => OTHER,
    }
}

/// Returns the length in bytes of the leading run of three-byte characters on page 0: most of a
/// Chinese or Japanese text. They are skipped by page, without looking up each character.
pub(crate) fn leading_plain_triples(text: &[u8]) -> usize {
    let page =
        |[lead, second, _]: &[u8; 3]| usize::from(lead & 0x0F) << 6 | usize::from(second & 0x3F);
    let (triples, _) = text.as_chunks();
    let is_plain = |triple: &&[u8; 3]| triple[0] & 0xF0 == 0xE0 && PAGES.index[page(triple)] == 0;
    triples.iter().take_while(is_plain).count() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Vec<Class> {
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut found = Vec::new();
        while at < bytes.len() {
            let (class, width) = class_at(bytes, at);
            match pair(class) {
                Some(both) => found.extend(both),
                None => found.push(class),
            }
            at += width;
        }
        found.retain(|class| !is_ignored(*class));
        found
    }

    #[test]
    fn disguises_fold_to_what_they_look_like() {
        for disguised in [
            "ＥＸＴＥＲＮＡＬ",
            "ЕХТЕRNАL",
            "ΕΧΤΕRΝΑL",
            "𝐄𝐗𝐓𝐄𝐑𝐍𝐀𝐋",
            "𝓮𝔁𝓽𝓮𝓻𝓷𝓪𝓵",
            "e\u{200b}x\u{200d}t\u{ad}e\u{2060}r\u{feff}n\u{202e}al",
            "e\u{301}x\u{308}t\u{335}ernal",
            "éxtërnål",
            "ⒺⓍⓉⒺⓇⓃⒶⓁ",
            "ᴇxᴛᴇʀɴᴀʟ",
            "E&#88;T&#x0045;RN&#0000065;&#8203;L",
            "e\\_x\\*t\\\\_ernal",
            "🅴🆇🆃🅴🆁🅽🅰🅻",
            "e x\tt\u{a0}e\u{3000}r n a l",
            "e\u{e0041}xternal",
            "e\u{2cd}x‗t‿e⎽r—n─a一lー",
            "¯e‾xˉterna﹉l￣⸺",
        ] {
            assert_eq!(classes(disguised), classes("external"), "{disguised}");
        }
        assert_eq!(classes("≪ﬆ》‹＜&LT;&#x3c;｜¦"), classes("<<st>><<<<||"));
        assert_eq!(classes("&#xFF1C;&#64262;"), classes("<st"));
        let small_capitals = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡxʏᴢ";
        assert_eq!(classes(small_capitals), classes("abcdefghijklmnopqrstuvwxyz"));
    }

    #[test]
    fn a_backslash_is_seen_only_before_letters_and_digits() {
        assert_eq!(classes(r"a\_\<\b\"), classes("a<,b"));
        assert_eq!(classes(r"\a\7"), classes(",a,7"));
    }

    #[test]
    fn double_escapes_are_resolved_once() {
        assert_eq!(classes("&#38;&#92;"), [OTHER, OTHER]);
        assert_eq!(classes("&#1114112;&#xD800;"), [OTHER, OTHER]);
    }

    #[test]
    fn plain_triples_end_before_anything_that_matters() {
        let plain = "员会星".repeat(5);
        for after in ["", "x", "é", "\u{200b}", "＜", "𝐂", "🙂", "&lt;"] {
            let text = format!("{plain}{after}漢");
            let found = leading_plain_triples(text.as_bytes());
            assert!(found == plain.len() || after.is_empty() && found == text.len(), "{text}");
        }
    }

    #[test]
    fn characters_without_a_look_alike_are_ignored() {
        for c in "漢字かな“”…🙂‡•".chars() {
            assert_eq!(classes(&c.to_string()), [OTHER], "{c}");
        }
    }
}
