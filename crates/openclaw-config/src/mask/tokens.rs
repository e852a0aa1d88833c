//! A tokenizer that also accepts configurations that do not parse.

use std::ops::Range;

/// A token of a configuration.
pub(super) enum ConfigToken {
    Open,
    Close,
    Colon,
    Comma,
    /// The text of a comment, without its delimiters.
    Comment(Range<usize>),
    /// A string without its quotes, or a bare word or number.
    Word {
        range: Range<usize>,
        quoted: bool,
    },
}

/// An iterator over the tokens of a text.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Tokens<'_> {
    type Item = ConfigToken;

    fn next(&mut self) -> Option<ConfigToken> {
        loop {
            let rest = &self.text[self.at..];
            let first = rest.chars().next()?;
            let start = self.at;
            self.at += first.len_utf8();
            match first {
                '{' | '[' => return Some(ConfigToken::Open),
                '}' | ']' => return Some(ConfigToken::Close),
                ':' => return Some(ConfigToken::Colon),
                ',' => return Some(ConfigToken::Comma),
                '"' | '\'' => {
                    return Some(ConfigToken::Word { range: self.string(first), quoted: true });
                }
                '/' if rest.starts_with("//") => {
                    self.at = start + rest.find('\n').unwrap_or(rest.len());
                    return Some(ConfigToken::Comment(start + 2..self.at));
                }
                '/' if rest.starts_with("/*") => {
                    let end = rest.get(2..).and_then(|rest| rest.find("*/"));
                    self.at = start + end.map_or(rest.len(), |end| end + 4);
                    let inner = end.map_or(rest.len(), |end| end + 2);
                    return Some(ConfigToken::Comment(start + 2..start + inner));
                }
                _ if first.is_whitespace() => {}
                _ => {
                    let ends = |c: char| c.is_whitespace() || "{}[]:,\"'".contains(c);
                    let length = rest.find(ends).unwrap_or(rest.len()).max(first.len_utf8());
                    self.at = start + length;
                    return Some(ConfigToken::Word { range: start..self.at, quoted: false });
                }
            }
        }
    }
}

impl Tokens<'_> {
    /// Advances to the end of a string whose opening quote has been read. Like the parser, it
    /// accepts line breaks; an unclosed string extends to the end of the file, which is then
    /// masked.
    fn string(&mut self, quote: char) -> Range<usize> {
        let start = self.at;
        let mut escaped = false;
        for (offset, c) in self.text[start..].char_indices() {
            let end = start + offset;
            self.at = end + c.len_utf8();
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == quote => return start..end,
                _ => {}
            }
        }
        self.at = self.text.len();
        start..self.at
    }
}
