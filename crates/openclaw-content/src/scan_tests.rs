//! Tests that the scan is linear for any text, by counting steps rather than measuring time.

use super::*;
use crate::patterns::PATTERNS;

const SIZE: usize = 1 << 17;

/// Units that, when repeated, make a naive scanner restart over and over.
const UNITS: &[&str] = &[
    "<",
    "< ",
    "<<<",
    "<a[b",
    "<a        ",
    "[INST",
    "[ ",
    "&lt;",
    "&",
    "&lt;|im_start",
    "&#",
    "&#0",
    "&#95;",
    "&#39;",
    "&#0000000060;",
    "EXTERNAL&#95;",
    "\\",
    "\\_",
    "<\\",
    "[\\\"",
    "<\\|x\\|>",
    "<unused",
    "<unused1",
    "<unused1>",
    "<unused&#0000000000",
    "<|",
    "|>",
    "<|x",
    "<|a|>",
    "<|im_start|>",
    "<<<EXTERNAL_UNTRUSTED_CONTEN",
    "<<<END_EXTERNAL_UNTRUSTED_CONTENT",
    "EXTERNAL UNTRUSTED CONTENT ",
    "external\u{200b} untrusted ",
    "ignore all previous ",
    "ignore all previous instructions. ",
    "ignor",
    "all ",
    "system:",
    "\nsystem:",
    "![](http",
    "](http",
    "![x](http://x?",
    "\u{200b}",
    "\u{301}",
    "\u{e0041}",
    "≪",
    "а",
    "Внешнее содержимое ",
    "é",
    "漢",
    "é漢",
    "—",
    "\u{2cd}",
    "EXTERNAL\u{2cd}UNTRUSTED\u{2cd}",
    "<s",
    "</s",
    "<think",
    "<tool_call",
    "<|tool_call",
    "<tool_call|",
    "[|user",
    "<SPECIAL_1",
    "x\u{200b}yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
    " ",
    "_",
    "x",
];

#[test]
fn every_byte_is_read_a_bounded_number_of_times() {
    for unit in UNITS {
        for lead in ["", "<|", "<<<EXTERNAL", "![", "ignore all previous "] {
            let text = format!("{lead}{}", unit.repeat(SIZE / unit.len()));
            let effort = Scan::run(&text, String::new()).effort;
            assert!(effort.steps <= text.len(), "{unit:?}: {effort:?}");
            assert!(effort.stretches <= text.len() / NEAR + 16, "{unit:?}: {effort:?}");
            assert!(effort.searched <= 8 * text.len(), "{unit:?}: {effort:?}");
        }
    }
}

#[test]
fn ordinary_text_is_not_read_by_the_automaton_at_all() {
    let text = "The committee met on Tuesday to discuss the “harbour”.\n".repeat(1000);
    assert_eq!(Scan::run(&text, String::new()).effort.steps, 0);
}

#[test]
fn the_rest_of_a_numbered_token_is_not_part_of_a_pattern() {
    // It ends with a bracket that is not its first character, and has no bracket or bar before it.
    for (written, _) in PATTERNS.iter().filter(|(written, _)| written.contains('>')) {
        assert!(written.starts_with(['<', '|']), "{written}");
    }
    let (text, _) = Scan::run("<unused0> verride <unused1><unused2>|>", String::new()).finish();
    assert_eq!(text, "[removed token] verride [removed token]|>");
}
