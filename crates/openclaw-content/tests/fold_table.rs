//! Generates `src/fold/table.rs` from the Unicode data of two dev-dependencies, and checks that the
//! committed file is up to date. To regenerate it after an update of the data:
//! `UPDATE_FOLD_TABLE=1 cargo test -p openclaw-content --test fold_table`.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fold/table.rs");

/// Marks characters that the scanner skips.
const SKIPPED: char = '_';
/// Marks characters that occur in no pattern.
const NOTHING: char = ' ';
/// Marks lines that join words.
const LINE: char = '-';
/// The characters that occur in a marker, a token or a suspicious phrase, besides letters.
const PUNCTUATION: &str = "<>|[]/:!(";

/// Unicode's default ignorable code points and other format characters.
const IGNORABLE: &[(u32, u32)] = &[
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFC),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
];

/// Look-alikes that neither the decompositions nor the confusables cover, as runs of code points.
const ALSO: &[(u32, &str)] = &[
    (0x00A6, "|"),
    (0x00AB, "L"),
    (0x00BB, "G"),
    (0x01C0, "|"),
    (0x0262, "g"),
    (0x026A, "i"),
    (0x0274, "n"),
    (0x0280, "r"),
    (0x028F, "y"),
    (0x0299, "b  h  l"),
    (0x02C2, "<>"),
    (0x1D00, "a  bcdd"),
    (0x1D07, "e ijkl"),
    (0x1D0D, "mno"),
    (0x1D18, "pr"),
    (0x1D1B, "tu"),
    (0x1D20, "vwz"),
    (0x2016, "|"),
    (0x2039, "<>"),
    (0x2215, "/"),
    (0x2223, "|"),
    (0x226A, "LG"),
    (0x22D8, "<>"),
    (0x2329, "<>"),
    (0x23D0, "|"),
    (0x2502, "||"),
    (0x2581, "_"),
    (0x25B6, ">>>>>>"),
    (0x25C0, "<<<<<<"),
    (0x2758, "|||"),
    (0x276C, "<>"),
    (0x276E, "<>"),
    (0x2770, "<>"),
    (0x27E8, "<>LG"),
    (0x27EC, "[]"),
    (0x2991, "<>"),
    (0x29FC, "<>"),
    (0x2AA1, "LG"),
    (0x3008, "<>LG"),
    (0xA730, "fs"),
    (0xA7AF, "q"),
    (0xFE31, "__"),
    (0xFE33, "__"),
    (0xFE3D, "LG<>"),
    (0xFE4D, "___"),
    (0xFE64, "<>"),
    (0xFE68, "_"),
    (0xFF3C, "_"),
    (0xFF5C, "|"),
    (0xFFE4, "|"),
    (0xFFE8, "|"),
    (0x1F150, "abcdefghijklmnopqrstuvwxyz"),
    (0x1F170, "abcdefghijklmnopqrstuvwxyz"),
    (0x1F1E6, "abcdefghijklmnopqrstuvwxyz"),
];

/// Lines that can join words like `_` and `-`, unless they fold to one of these anyway.
const LINES: &[(u32, u32)] = &[
    (0x00AF, 0x00AF),
    (0x02C9, 0x02C9),
    (0x02CD, 0x02CF),
    (0x02F7, 0x02F7),
    (0x058A, 0x058A),
    (0x05BE, 0x05BE),
    (0x1173, 0x1173),
    (0x1400, 0x1400),
    (0x1806, 0x1806),
    (0x2014, 0x2015),
    (0x2017, 0x2017),
    (0x203E, 0x2040),
    (0x2054, 0x2054),
    (0x207B, 0x207B),
    (0x208B, 0x208B),
    (0x23AF, 0x23AF),
    (0x23B4, 0x23B5),
    (0x23BA, 0x23BD),
    (0x2423, 0x2423),
    (0x2500, 0x2501),
    (0x2504, 0x2505),
    (0x2508, 0x2509),
    (0x254C, 0x254D),
    (0x2550, 0x2550),
    (0x2574, 0x2574),
    (0x2576, 0x2576),
    (0x2578, 0x2578),
    (0x257A, 0x257A),
    (0x257C, 0x257C),
    (0x257E, 0x257E),
    (0x2582, 0x2583),
    (0x2594, 0x2594),
    (0x25AC, 0x25AD),
    (0x2E17, 0x2E17),
    (0x2E3A, 0x2E3B),
    (0x2E40, 0x2E40),
    (0x2E5D, 0x2E5D),
    (0x2F00, 0x2F00),
    (0x3030, 0x3030),
    (0x30A0, 0x30A0),
    (0x30FC, 0x30FC),
    (0x3161, 0x3161),
    (0x4E00, 0x4E00),
    (0xFE49, 0xFE4C),
    (0xFE58, 0xFE58),
    (0xFF70, 0xFF70),
    (0xFFDA, 0xFFDA),
    (0xFFE3, 0xFFE3),
    (0x10EAD, 0x10EAD),
    (0x1FB76, 0x1FB7B),
];

fn is_in(ranges: &[(u32, u32)], code: u32) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&code))
}

fn also(code: u32) -> Option<char> {
    ALSO.iter().find_map(|(first, run)| {
        let at = code.checked_sub(*first)? as usize;
        run.chars().nth(at).filter(|found| *found != NOTHING)
    })
}

/// Returns what a string that represents one character folds to, if that occurs in a pattern.
fn target(folded: &str) -> Option<char> {
    let stripped: String =
        folded.nfkd().filter(|c| !is_combining_mark(*c)).collect::<String>().to_ascii_lowercase();
    let mut chars = stripped.chars();
    match (chars.next()?, chars.next()) {
        ('0', None) => Some('o'),
        ('1', None) => Some('l'),
        ('_' | '-' | '.' | '*' | '~' | '\'', None) => Some(SKIPPED),
        (only, None) => (only.is_ascii_lowercase() || PUNCTUATION.contains(only)).then_some(only),
        _ => match stripped.as_str() {
            "st" => Some('S'),
            "fi" => Some('I'),
            "fl" => Some('J'),
            _ => None,
        },
    }
}

fn fold(c: char) -> char {
    let code = u32::from(c);
    if is_in(IGNORABLE, code) || is_combining_mark(c) || c.is_whitespace() || c.is_control() {
        return SKIPPED;
    }
    let itself = c.to_string();
    let looks: String = skeleton(&itself).collect();
    also(code)
        .or_else(|| target(&itself))
        .or_else(|| target(&looks))
        // Many lower-case Cyrillic and Greek letters have a Latin look-alike only in upper case.
        .or_else(|| target(&skeleton(&itself.to_uppercase()).collect::<String>()))
        .unwrap_or(if is_in(LINES, code) { LINE } else { NOTHING })
}

fn generate() -> String {
    let folds: Vec<(u32, char)> = (0x80..0x20000)
        .filter_map(char::from_u32)
        .map(|c| (u32::from(c), fold(c)))
        .filter(|(_, to)| *to != NOTHING)
        .collect();
    let mut skipped: Vec<(u32, u32)> = Vec::new();
    let mut runs: Vec<(u32, String)> = Vec::new();
    for (code, to) in folds {
        if to == SKIPPED {
            match skipped.last_mut() {
                Some((_, last)) if *last + 1 == code => *last = code,
                _ => skipped.push((code, code)),
            }
            continue;
        }
        match runs.last_mut() {
            Some((first, run)) if code - *first < 80 && code - *first - (run.len() as u32) < 6 => {
                while *first + (run.len() as u32) < code {
                    run.push(NOTHING);
                }
                run.push(to);
            }
            _ => runs.push((code, to.to_string())),
        }
    }
    let mut out = String::from(
        "//! Characters that look like ASCII characters of the patterns. Generated by \
         `tests/fold_table.rs`.\n\n\
         /// Characters that are invisible, blank, or combining marks.\n\
         #[rustfmt::skip]\n\
         pub(super) const SKIPPED: &[(u32, u32)] = &[\n",
    );
    for line in skipped.chunks(5) {
        out.push_str("   ");
        for (first, last) in line {
            out += &format!(" ({first:#X}, {last:#X}),");
        }
        out.push('\n');
    }
    out.push_str(
        "];\n\n\
         /// Runs of characters and what each folds to: a blank occurs in no pattern; capitals \
         stand for\n/// two characters (`S` st, `I` fi, `J` fl, `L` <<, `G` >>); `-` is a line that joins words.\n\
         #[rustfmt::skip]\n\
         pub(super) const LOOK_ALIKES: &[(u32, &str)] = &[\n",
    );
    let mut line = String::from("   ");
    for (first, run) in &runs {
        let entry = format!(" ({first:#X}, \"{run}\"),");
        if line.len() + entry.len() > 99 {
            out.push_str(&line);
            out.push('\n');
            line = String::from("   ");
        }
        line.push_str(&entry);
    }
    out.push_str(&line);
    out.push_str("\n];\n");
    out
}

#[test]
fn the_fold_table_matches_the_unicode_data() {
    let generated = generate();
    if std::env::var_os("UPDATE_FOLD_TABLE").is_some() {
        std::fs::write(TABLE, &generated).unwrap();
    }
    let present = std::fs::read_to_string(TABLE).unwrap();
    assert!(present == generated, "run with UPDATE_FOLD_TABLE=1 and review the diff");
}
