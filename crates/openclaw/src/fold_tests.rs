//! Tests of `fold`, with a minimal terminal emulator.

use super::*;

const WIDTH: usize = 20;

/// Returns the lines on the terminal after this output. A line that the terminal broke ends with
/// `⏎`.
fn screen(written: &str) -> Vec<String> {
    let mut rows: Vec<Vec<char>> = vec![Vec::new()];
    let mut column = 0;
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        let last = rows.len() - 1;
        match c {
            '\n' => {
                rows.push(Vec::new());
                column = 0;
            }
            '\u{1b}' => {
                let command: String = rest.by_ref().take_while(|c| !c.is_alphabetic()).collect();
                // `take_while` has consumed the letter: only `G` has a number.
                match command.trim_start_matches('[').parse::<usize>() {
                    Ok(to) => column = to - 1,
                    Err(_) => rows[last].truncate(column),
                }
            }
            c => {
                let room = c.width().unwrap_or(0);
                if column + room > WIDTH {
                    rows[last].push('⏎');
                    rows.push(Vec::new());
                    column = 0;
                }
                let last = rows.len() - 1;
                rows[last].push(c);
                // The second half of a wide character.
                rows[last].extend((1..room).map(|_| '\0'));
                column += room;
            }
        }
    }
    let text = |row: Vec<char>| row.into_iter().filter(|c| *c != '\0').collect();
    rows.into_iter().map(text).collect()
}

/// Streams the text in chunks of several sizes, which must not change the result.
fn flowed(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let in_bits = |size: usize| {
        let mut flow = Flow::default();
        let bits = letters.chunks(size).map(|bit| bit.iter().collect::<String>());
        screen(&bits.map(|bit| flow.push(&bit, WIDTH)).collect::<String>())
    };
    let whole = in_bits(letters.len().max(1));
    for size in 1..9 {
        assert_eq!(in_bits(size), whole, "in chunks of {size}");
    }
    whole
}

#[test]
fn a_word_that_does_not_fit_goes_to_the_next_line() {
    let text = "I am a stand-in, but I follow simple words.";
    assert_eq!(flowed(text), ["I am a stand-in, but", "I follow simple", "words."]);
    assert_eq!(flowed("exactly twenty wide:\nnext"), ["exactly twenty wide:", "next"]);
    assert_eq!(flowed("exactly twenty wide: x"), ["exactly twenty wide:", "x"]);
    assert_eq!(flowed("- one\n\n  - two"), ["- one", "", "  - two"]);
}

#[test]
fn the_words_of_a_row_stay_in_their_column() {
    let mut flow = Flow::default();
    let row = "  /mcp refresh  read the lists again; connect";
    let shown = flow.push(row, 36);
    assert_eq!(shown, "  /mcp refresh  read the lists\n                again; connect");
    assert_eq!(
        flow.push("\nTwo  blanks in words that go on here", 36),
        "\nTwo  blanks in words that go on here"
    );
}

#[test]
fn a_word_that_is_wider_than_the_terminal_is_left_to_it() {
    let address = format!("https://{}", "x".repeat(30));
    let lines = flowed(&format!("See {address} !"));
    assert_eq!(lines[0], "See");
    assert_eq!(lines[1..].concat().replace('⏎', ""), format!("{address} !"));
    assert_eq!(lines[1..].concat().matches('⏎').count(), 1, "{lines:?}");
}

#[test]
fn code_stays_as_it_is() {
    let line = "let all = one + two + three + four;";
    let lines = flowed(&format!("```rust\n{line}\n```\nand words that go on behind it"));
    let unbroken = lines.join("\n").replace("⏎\n", "");
    assert!(unbroken.contains(line), "{lines:?}");
    assert!(unbroken.ends_with("```\nand words that go on\nbehind it"), "{lines:?}");
    let inline = flowed("```not a block```\nand words that go on behind it");
    assert_eq!(inline[1..], ["and words that go on", "behind it"]);
}

#[test]
fn wide_letters_are_not_cut_and_need_no_blanks() {
    let lines = flowed("漢字漢字漢字漢字漢字漢字 and 漢字漢字");
    assert_eq!(lines, ["漢字漢字漢字漢字漢字", "漢字 and 漢字漢字"]);
    let lines = flowed("x漢字漢字漢字漢字漢字漢字");
    assert_eq!(lines, ["x漢字漢字漢字漢字漢", "字漢字"]);
    assert_eq!(flowed("e\u{301}e\u{301} 👩\u{200d}💻").concat(), "e\u{301}e\u{301} 👩\u{200d}💻");
}

#[test]
fn a_wrapped_line_is_indented_to_its_text_and_keeps_its_colours() {
    let line = "\u{1b}[1m✗\u{1b}[0m add(a=2) failed: \u{1b}[2mno such number\u{1b}[0m";
    let folded = fold(line, 24);
    assert_eq!(strip_str(&folded).to_string(), "✗ add(a=2) failed: no\n  such number");
    assert_eq!(folded.replace("\n  ", " "), line);
    assert_eq!(fold("  │ one two three four five six", 24), "  │ one two three four\n  │ five six");
    assert_eq!(fold("a  b", 24), "a  b");
    assert_eq!(
        fold_under("config   a path that is long, too", &" ".repeat(9), 30),
        "config   a path that is long,\n         too"
    );
}

#[test]
fn no_text_is_lost_on_a_narrow_terminal() {
    for width in 0..30 {
        let text = "  config   a path that is longer-than-anything 漢字漢字";
        let folded = fold_under(text, &" ".repeat(11), width);
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(words(&folded), words(text), "{width}");
        let shown = Flow::default().push(text, width);
        assert!(shown.contains('字'), "{width}");
    }
}
