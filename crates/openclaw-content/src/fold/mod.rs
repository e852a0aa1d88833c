//! Folding: which of a few classes a character belongs to, once case, width, accents, alphabets that
//! look alike and invisible characters are seen through. Patterns are matched on classes.

mod table;

/// What a character is to the scanner.
pub(crate) type Class = u8;

/// Invisible, a gap, or a mark on a letter: patterns are matched as if it were not there.
pub(crate) const SKIP: Class = 0;
/// Something that occurs in no pattern.
pub(crate) const OTHER: Class = 1;
const FIRST_LETTER: Class = 2;
const PUNCTUATION: &[u8] = b"<>|[]/:!(";
const FIRST_PUNCTUATION: Class = FIRST_LETTER + 26;
/// How many classes the automaton knows; the classes above are resolved before it sees them.
pub(crate) const CLASSES: usize = FIRST_PUNCTUATION as usize + PUNCTUATION.len();

/// `&`, which may begin an HTML entity.
const AMPERSAND: Class = 64;
/// A tag character: a copy of ASCII that no screen shows, but a model reads.
pub(crate) const HIDDEN: Class = 65;
const FIRST_PAIR: Class = 66;
/// What the capitals in the table stand for.
const PAIRS: [(u8, [u8; 2]); 5] =
    [(b'S', *b"st"), (b'I', *b"fi"), (b'J', *b"fl"), (b'L', *b"<<"), (b'G', *b">>")];

/// The class of each ASCII character.
pub(crate) static ASCII: [Class; 128] = {
    let mut classes = [OTHER; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = class_of_ascii(byte);
        byte += 1;
    }
    classes
};

const fn class_of_ascii(byte: u8) -> Class {
    match byte {
        // Confusables make no difference between these (nor does a reader), so neither do we.
        b'i' | b'I' | b'1' => FIRST_LETTER + (b'l' - b'a'),
        b'0' => FIRST_LETTER + (b'o' - b'a'),
        b'a'..=b'z' => FIRST_LETTER + (byte - b'a'),
        b'A'..=b'Z' => FIRST_LETTER + (byte - b'A'),
        b'&' => AMPERSAND,
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
    if symbol == b' ' { OTHER } else { class_of_ascii(symbol) }
}

/// Whether the class is that of a letter.
pub(crate) fn is_letter(class: Class) -> bool {
    (FIRST_LETTER..FIRST_PUNCTUATION).contains(&class)
}

/// The two classes that a ligature or a doubled bracket stands for.
pub(crate) fn pair(class: Class) -> Option<[Class; 2]> {
    let (_, both) = PAIRS.get(usize::from(class.checked_sub(FIRST_PAIR)?))?;
    Some(both.map(class_of_ascii))
}

/// A page is the 64 characters that share all but the last byte of their UTF-8 form.
const PAGE: usize = 64;
const INDEXED_PAGES: usize = 0x20000 / PAGE;
const TAG_PAGES: std::ops::Range<usize> = 0xE0000 / PAGE..0xE1000 / PAGE;

struct Pages<const N: usize> {
    index: [u16; INDEXED_PAGES],
    pages: [[Class; PAGE]; N],
    used: usize,
}

/// Page 0 is the page on which nothing matters.
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

/// The class of the character (or HTML entity) that begins at `at`, and its length in bytes.
#[inline]
pub(crate) fn class_at(text: &[u8], at: usize) -> (Class, usize) {
    match ASCII.get(usize::from(text[at])) {
        Some(&AMPERSAND) => entity(text, at),
        Some(class) => (*class, 1),
        None => beyond_ascii(text, at),
    }
}

/// The class of a byte, where a look at the whole character is not worth it: what is not plain ASCII
/// is as good as an ampersand, which may be anything.
#[inline]
pub(crate) fn class_of_byte(byte: u8) -> Class {
    ASCII.get(usize::from(byte)).copied().unwrap_or(AMPERSAND)
}

/// The class of the character beyond ASCII that begins at `at`, and its length in bytes.
#[inline]
pub(crate) fn beyond_ascii(text: &[u8], at: usize) -> (Class, usize) {
    let six = |offset: usize| usize::from(text[at + offset] & 0x3F);
    let lead = usize::from(text[at]);
    let (page, within, width) = match lead {
        ..0xE0 => (lead & 0x1F, six(1), 2),
        0xE0..0xF0 => ((lead & 0x0F) << 6 | six(1), six(2), 3),
        _ => ((lead & 0x07) << 12 | six(1) << 6 | six(2), six(3), 4),
    };
    let class = match PAGES.index.get(page) {
        Some(index) => PAGES.pages[usize::from(*index)][within],
        None if TAG_PAGES.contains(&page) => HIDDEN,
        None => OTHER,
    };
    (class, width)
}

/// The HTML entities that stand for a bracket or a bar, without `&` and `;`.
const ENTITIES: &[(&[u8], u8)] = &[
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"#60", b'<'),
    (b"#62", b'>'),
    (b"#x3c", b'<'),
    (b"#x3e", b'>'),
    (b"vert", b'|'),
    (b"verbar", b'|'),
    (b"#124", b'|'),
    (b"#x7c", b'|'),
    (b"lsqb", b'['),
    (b"rsqb", b']'),
    (b"#91", b'['),
    (b"#93", b']'),
    (b"#x5b", b'['),
    (b"#x5d", b']'),
];

/// The class of what the `&` at `at` begins, and its length in bytes.
#[cold]
fn entity(text: &[u8], at: usize) -> (Class, usize) {
    let rest = &text[at + 1..];
    ENTITIES
        .iter()
        .find(|(name, _)| {
            rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                && rest.get(name.len()) == Some(&b';')
        })
        .map_or((OTHER, 1), |(name, stands_for)| (class_of_ascii(*stands_for), name.len() + 2))
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
        found.retain(|class| *class != SKIP && *class != HIDDEN);
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
            "🅴🆇🆃🅴🆁🅽🅰🅻",
            "e x\tt\u{a0}e\u{3000}r n a l",
            "e\u{e0041}xternal",
        ] {
            assert_eq!(classes(disguised), classes("external"), "{disguised}");
        }
        assert_eq!(classes("≪ﬆ》‹＜&LT;&#x3c;｜"), classes("<<st>><<<<|"));
    }

    #[test]
    fn characters_that_look_like_nothing_here_are_of_no_interest() {
        for c in "漢字かな“”…—🙂‡".chars() {
            assert_eq!(classes(&c.to_string()), [OTHER], "{c}");
        }
    }
}
