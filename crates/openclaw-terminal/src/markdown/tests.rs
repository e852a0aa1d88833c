//! Tests of the rendering, with chunks of several sizes.

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthStr as _;

use super::*;

const WIDTH: usize = 20;
const PLAIN: Canvas = Canvas { width: WIDTH, colour: false };
const COLOUR: Canvas = Canvas { width: 60, colour: true };

/// Streams the text in chunks of several sizes, which must not change the result.
fn rendered(text: &str, canvas: Canvas) -> String {
    let letters: Vec<char> = text.chars().collect();
    let in_chunks = |size: usize| {
        let mut markdown = Markdown::default();
        let chunks = letters.chunks(size).map(|chunk| chunk.iter().collect::<String>());
        let shown: String = chunks.map(|chunk| markdown.push(&chunk, canvas)).collect();
        shown + &markdown.finish(canvas)
    };
    let whole = in_chunks(letters.len().max(1));
    for size in 1..9 {
        assert_eq!(in_chunks(size), whole, "in chunks of {size}");
    }
    whole
}

fn lines(text: &str) -> Vec<String> {
    rendered(text, PLAIN).split('\n').map(str::to_owned).collect()
}

/// The text without its colours, and the text itself.
fn coloured(text: &str) -> (String, String) {
    let shown = rendered(text, COLOUR);
    (strip_str(&shown).to_string(), shown)
}

#[test]
fn a_word_that_does_not_fit_goes_to_the_next_line() {
    let text = "I am a stand-in, but I follow simple words.";
    assert_eq!(lines(text), ["I am a stand-in, but", "I follow simple", "words."]);
    assert_eq!(lines("exactly twenty wide:\nnext"), ["exactly twenty wide:", "next"]);
    assert_eq!(lines("exactly twenty wide: x"), ["exactly twenty wide:", "x"]);
    assert_eq!(lines("- one\n\n  - two"), ["- one", "", "  - two"]);
}

#[test]
fn the_words_of_a_row_stay_in_their_column() {
    let canvas = Canvas { width: 36, colour: false };
    let row = "  /mcp refresh  read the lists again; connect";
    let shown = rendered(row, canvas);
    assert_eq!(shown, "  /mcp refresh  read the lists\n                again; connect");
    assert_eq!(
        rendered("Two  blanks in words that go on here", canvas),
        "Two  blanks in words that go on here"
    );
}

#[test]
fn plain_text_is_only_wrapped() {
    let canvas = Canvas { width: 36, colour: true };
    let text = "✓ p: 2 tools\n  + __init__\n  - a_*b*_c\n  no changes\n";
    assert_eq!(wrap_plain(text, canvas), text);
    let row = "  /mcp refresh  read the lists again; connect";
    let shown = wrap_plain(row, canvas);
    assert_eq!(shown, "  /mcp refresh  read the lists\n                again; connect");
}

#[test]
fn code_stays_as_it_is() {
    let line = "let all = one + two + three + four;";
    let shown = rendered(&format!("```rust\n{line}\n```\nand words that go on behind it"), PLAIN);
    assert_eq!(shown, format!("```rust\n{line}\n```\nand words that go on\nbehind it"));
    let inline = lines("```not a block```\nand words that go on behind it");
    assert_eq!(inline[1..], ["and words that go on", "behind it"]);
}

#[test]
fn wide_letters_are_not_cut_and_need_no_blanks() {
    assert_eq!(
        lines("漢字漢字漢字漢字漢字漢字 and 漢字漢字"),
        ["漢字漢字漢字漢字漢字", "漢字 and 漢字漢字"]
    );
    assert_eq!(lines("e\u{301}e\u{301} 👩\u{200d}💻").concat(), "e\u{301}e\u{301} 👩\u{200d}💻");
}

#[test]
fn marks_become_styles() {
    let (text, shown) =
        coloured("## A *fine* title\nSome **bold words**, `code` and ~~not~~ this.\n");
    assert_eq!(text, "A fine title\nSome bold words, code and not this.\n");
    for styled in ["\u{1b}[1mbold\u{1b}[0m", "\u{1b}[36mcode\u{1b}[0m", "\u{1b}[1mA\u{1b}[0m"] {
        assert!(shown.contains(styled), "{styled:?}: {shown:?}");
    }
    let (text, _) = coloured("- one\n  * two\n1. three\n> said\n---\n- [x] done\n");
    let rule = "─".repeat(40);
    assert_eq!(text, format!("• one\n  • two\n1. three\n│ said\n{rule}\n• [x] done\n"));
}

#[test]
fn without_colours_the_marks_are_kept() {
    let canvas = Canvas { width: 60, colour: false };
    let text = "## Title\nSome **bold**, *fine* and `code`.";
    assert_eq!(rendered(text, canvas), text);
}

#[test]
fn characters_that_are_not_marks_stay() {
    for text in [
        "2 * 3 * 4 = 24",
        "snake_case_name and _x",
        "a < b and c > d",
        "see [1] and x[0] too",
        "5 ~ 6",
        "an * open mark",
        "a ** b",
        "`open",
        "[open bracket",
        "1986 was *great",
    ] {
        assert_eq!(coloured(text).0, text);
    }
}

#[test]
fn the_address_of_a_link_is_always_shown() {
    let (text, _) =
        coloured("See [the docs](https://example.com/a) and <https://example.com/b> now.");
    assert_eq!(text, "See the docs (https://example.com/a) and\nhttps://example.com/b now.");
    assert_eq!(coloured("![alt](a.png)").0, "alt (a.png)");
}

#[test]
fn entities_cannot_control_the_terminal() {
    let shown = rendered("a &#27;[2J b &amp; c", PLAIN);
    assert!(!shown.contains('\u{1b}') && shown.contains("b & c"), "{shown:?}");
}

#[test]
fn a_table_is_drawn_when_it_is_complete_and_fits() {
    let table =
        "| name | what it is |\n|:--|--:|\n| `add` | adds two numbers to each other \\| more |\n";
    let canvas = Canvas { width: 30, colour: false };
    let shown = rendered(&format!("{table}after\n"), canvas);
    assert!(shown.contains('┆') || shown.contains('│'), "{shown}");
    assert!(shown.lines().all(|line| line.width() <= 30), "{shown}");
    assert!(shown.ends_with("after\n") && shown.contains("`add`"), "{shown}");
    let mut markdown = Markdown::default();
    assert_eq!(markdown.push(table, canvas), "");
    assert!(markdown.finish(canvas).contains("name"));
    assert_eq!(rendered("| no table\nafter", canvas), "| no table\nafter");
}

#[test]
fn code_is_highlighted_in_its_language() {
    let (text, shown) = coloured("```rust\nlet a = \"x\"; // why\n/* one\ntwo */ fn 5\n```\n");
    assert_eq!(text, "```rust\nlet a = \"x\"; // why\n/* one\ntwo */ fn 5\n```\n");
    for styled in [
        "\u{1b}[35mlet\u{1b}[0m",
        "\u{1b}[32m\"x\"\u{1b}[0m",
        "\u{1b}[2m// why\u{1b}[0m",
        "\u{1b}[2mtwo */\u{1b}[0m",
        "\u{1b}[36m5\u{1b}[0m",
    ] {
        assert!(shown.contains(styled), "{styled:?}: {shown:?}");
    }
    let (_, shown) = coloured("```diff\n+new\n-old\n```\n");
    assert!(shown.contains("\u{1b}[32m+new") && shown.contains("\u{1b}[31m-old"), "{shown:?}");
    let (text, shown) = coloured("```\nlet a\n```\n");
    assert!(text.contains("let a") && !shown.contains("\u{1b}[35m"), "{shown:?}");
}

#[test]
fn a_very_long_line_is_written_as_it_is() {
    let text = format!("{} **end", "word ".repeat(2_000));
    let mut markdown = Markdown::default();
    let shown: String = text
        .as_bytes()
        .chunks(7)
        .map(|chunk| markdown.push(std::str::from_utf8(chunk).unwrap(), COLOUR))
        .collect();
    let shown = shown + &markdown.finish(COLOUR);
    assert_eq!(shown.matches("word").count(), 2_000);
    assert!(shown.ends_with("**end"), "{}", &shown[shown.len() - 20..]);
}
