//! The scan is linear, whatever the text: counted, not timed.

use super::*;

const SIZE: usize = 1 << 17;

/// Units that, repeated, make texts on which a careless scanner starts over and over again.
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
    "x\u{200b}yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
    " ",
    "_",
    "x",
];

#[test]
fn every_byte_is_looked_at_a_bounded_number_of_times() {
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
