//! Tests of `wrap`.

use super::*;

#[test]
fn a_wrapped_line_is_indented_to_its_text_and_keeps_its_colours() {
    let line = "\u{1b}[1m✗\u{1b}[0m add(a=2) failed: \u{1b}[2mno such number\u{1b}[0m";
    let wrapped = wrap(line, 24);
    assert_eq!(strip_str(&wrapped).to_string(), "✗ add(a=2) failed: no\n  such number");
    assert_eq!(wrapped.replace("\n  ", " "), line);
    assert_eq!(wrap("  │ one two three four five six", 24), "  │ one two three four\n  │ five six");
    assert_eq!(wrap("a  b", 24), "a  b");
    assert_eq!(
        wrap_under("config   a path that is long, too", &" ".repeat(9), 30),
        "config   a path that is long,\n         too"
    );
}

#[test]
fn the_rest_of_a_word_that_is_wider_than_a_line_is_indented() {
    let line = "  + see https://example.com/a/very/long/path for more";
    assert_eq!(
        wrap_and_break(line, 24),
        "  + see\n    https://example.com/\n    a/very/long/path for\n    more"
    );
    // Elsewhere, a URL stays whole, so that it can be copied.
    assert!(wrap(line, 24).contains("\n    https://example.com/a/very/long/path"));
    for width in 0..60 {
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(words(&wrap_and_break(line, width)), words(line), "{width}");
    }
}

#[test]
fn no_text_is_lost_on_a_narrow_terminal() {
    for width in 0..30 {
        let text = "  config   a path that is longer-than-anything 漢字漢字";
        let wrapped = wrap_under(text, &" ".repeat(11), width);
        let words = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(words(&wrapped), words(text), "{width}");
    }
}
