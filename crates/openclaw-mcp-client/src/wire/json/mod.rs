//! Validated JSON text, and a validating cursor over it that builds no tree.
//!
//! Most tool results are one long string, which this validates several times as fast as
//! `serde_json`. [`Json`] exists only because a `RawValue` can be created by `serde_json` alone.

mod one_text;

use std::fmt;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use one_text::OneText;

/// Deeper nesting is left to `serde_json`, which has its own limit.
const MAX_DEPTH: usize = 64;

/// A valid JSON value as text.
#[derive(Debug, Clone)]
pub struct Json {
    text: Box<str>,
    one_text: Option<OneText>,
}

impl Json {
    /// Returns the JSON text.
    pub fn get(&self) -> &str {
        &self.text
    }

    /// Returns the text of a tool result that consists of one text, with its escapes, and
    /// `isError`.
    pub fn one_text(&self) -> Option<(&str, bool)> {
        self.one_text?.text_in(&self.text)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Json> for String {
    fn from(json: Json) -> Self {
        json.text.into()
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        let one_text = JsonRef::from(&*raw).one_text;
        Self { text: raw.into(), one_text }
    }
}

impl From<JsonRef<'_>> for Json {
    fn from(json: JsonRef<'_>) -> Self {
        Self { text: json.text.into(), one_text: json.one_text }
    }
}

/// A valid JSON value, borrowed from a longer text.
#[derive(Debug, Clone, Copy)]
pub struct JsonRef<'a> {
    text: &'a str,
    one_text: Option<OneText>,
}

impl<'a> JsonRef<'a> {
    /// Returns the text.
    pub fn get(self) -> &'a str {
        self.text
    }

    /// Like [`Json::one_text`].
    pub fn one_text(self) -> Option<(&'a str, bool)> {
        self.one_text?.text_in(self.text)
    }
}

/// A valid JSON value, which may be borrowed from a longer text.
#[derive(Debug)]
pub enum JsonCow<'a> {
    /// Owned.
    Owned(Json),
    /// Borrowed.
    Borrowed(JsonRef<'a>),
}

impl JsonCow<'_> {
    /// Borrows it.
    pub fn as_ref(&self) -> JsonRef<'_> {
        match self {
            Self::Owned(json) => JsonRef { text: &json.text, one_text: json.one_text },
            Self::Borrowed(json) => *json,
        }
    }
}

impl From<JsonCow<'_>> for Json {
    fn from(json: JsonCow<'_>) -> Self {
        match json {
            JsonCow::Owned(json) => json,
            JsonCow::Borrowed(json) => json.into(),
        }
    }
}

impl From<JsonCow<'_>> for String {
    fn from(json: JsonCow<'_>) -> Self {
        match json {
            JsonCow::Owned(json) => json.into(),
            JsonCow::Borrowed(json) => json.text.to_owned(),
        }
    }
}

impl<'a> From<&'a RawValue> for JsonRef<'a> {
    fn from(raw: &'a RawValue) -> Self {
        let text = raw.get();
        Self { text, one_text: JsonCursor::over(text).result().and_then(|result| result.one_text) }
    }
}

/// A cursor over JSON text. Each step returns `None` if the text is invalid or not what was expected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonCursor<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> JsonCursor<'a> {
    pub(crate) fn over(json: &'a str) -> Self {
        Self { json, at: 0 }
    }

    /// Skips white space and returns the next byte.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.json.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Consumes `byte` if it is next.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Returns whether only white space is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Visits the members of an object. `visit` must consume the value; returning `None` ends the walk.
    pub(crate) fn members(
        &mut self,
        mut visit: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.take(b'{')?;
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            let name = self.string()?;
            self.take(b':')?;
            visit(self, name)?;
            if self.take(b',').is_none() {
                return self.take(b'}');
            }
        }
    }

    /// Returns the content of a string, with its escapes.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let rest = self.json.as_bytes().get(self.at..)?;
            let end = plain_length(rest);
            self.at += end;
            match rest.get(end)? {
                b'"' => {
                    self.at += 1;
                    return self.json.get(start..self.at - 1);
                }
                b'\\' => self.at += escape_length(&rest[end..])?,
                // A control character must be escaped.
                _ => return None,
            }
        }
    }

    /// Returns the next value.
    pub(crate) fn value(&mut self) -> Option<JsonRef<'a>> {
        self.peek()?;
        let start = self.at;
        self.skip(0)?;
        self.json.get(start..self.at).map(|text| JsonRef { text, one_text: None })
    }

    fn skip(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' | b'[' if depth == MAX_DEPTH => None,
            b'{' => self.members(|walk, _| walk.skip(depth + 1)),
            b'[' => self.items(depth),
            _ => self.word(),
        }
    }

    fn items(&mut self, depth: usize) -> Option<()> {
        self.take(b'[')?;
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            self.skip(depth + 1)?;
            if self.take(b',').is_none() {
                return self.take(b']');
            }
        }
    }

    /// Consumes a number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<()> {
        let rest = self.json.get(self.at..)?;
        let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte);
        let length = rest.as_bytes().iter().position(is_end).unwrap_or(rest.len());
        self.at += length;
        match rest.get(..length)? {
            "true" | "false" | "null" => Some(()),
            number => serde_json::from_str::<IgnoredAny>(number).ok().map(drop),
        }
    }
}

/// Returns the length of the prefix without quotes, backslashes and control characters.
#[inline]
fn plain_length(string: &[u8]) -> usize {
    // Most strings are short names, which end within two words.
    if let Some((words, _)) = string.split_first_chunk::<{ 2 * WORD }>() {
        let (words, _) = words.as_chunks();
        if let Some(found) = find_special(words) {
            return found;
        }
    }
    plain_length_of_long(string)
}

fn plain_length_of_long(string: &[u8]) -> usize {
    let is_special = |byte: &u8| *byte < b' ' || matches!(byte, b'"' | b'\\');
    // Frequent escapes are found word by word; for text without escapes, blocks are faster.
    let (words, _) = string.as_chunks();
    let near = &words[..words.len().min(4)];
    if let Some(found) = find_special(near) {
        return found;
    }
    let mut at = near.len() * WORD;
    let (blocks, _) = string[at..].as_chunks::<64>();
    // No early exit: that lets the compiler vectorize the loop.
    let is_plain =
        |block: &&[u8; 64]| !block.iter().fold(false, |any, byte| any | is_special(byte));
    at += 64 * blocks.iter().take_while(is_plain).count();
    let (words, rest) = string[at..].as_chunks();
    if let Some(found) = find_special(words) {
        return at + found;
    }
    at + words.len() * WORD + rest.iter().position(is_special).unwrap_or(rest.len())
}

const WORD: usize = size_of::<u64>();

/// Returns the offset of the first quote, backslash or control character.
#[inline]
fn find_special(words: &[[u8; WORD]]) -> Option<usize> {
    words.iter().zip(0..).find_map(|(word, nth)| {
        let found = special(*word);
        (found != 0).then(|| WORD * nth + found.trailing_zeros() as usize / 8)
    })
}

/// Returns a mask whose lowest set bit is in the first special byte; zero if there is none.
#[inline]
fn special(bytes: [u8; WORD]) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    let word = u64::from_le_bytes(bytes);
    // Sets the high bit of the lowest zero byte; higher bits may be wrong.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let control = word.wrapping_sub(ONES * u64::from(b' ')) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    (control | quote | backslash) & (ONES << 7)
}

/// Returns the length of the escape sequence at the start of `rest`.
fn escape_length(rest: &[u8]) -> Option<usize> {
    match rest.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => rest.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_json(text: &str) -> bool {
        let mut walk = JsonCursor::over(text);
        walk.value().is_some_and(|value| value.get() == text.trim_matches([' ', '\n', '\r', '\t']))
            && walk.is_at_end()
    }

    #[test]
    fn valid_and_invalid_json_are_distinguished() {
        let long = "x".repeat(100);
        for json in [
            "{}",
            "[]",
            " [ ] ",
            "0",
            "-1.5e+3",
            "true",
            "null",
            "\"\"",
            r#"{"a":[1,{"b":"c"}]}"#,
            r#""\"\\\/\b\f\n\r\té""#,
            &format!("\"{long}\\n{long}\""),
        ] {
            assert!(is_json(json), "{json}");
            assert!(serde_json::from_str::<&RawValue>(json.trim()).is_ok(), "{json}");
        }
        let control = format!("\"{long}\u{1}{long}\"");
        for other in [
            "",
            "{",
            "}",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "[1 2]",
            "01",
            "1.",
            "+1",
            "tru",
            "nulll",
            "NaN",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u12",
            "\"a\nb\"",
            "\u{c}1",
            "1 2",
            &control,
        ] {
            assert!(!is_json(other), "{other}");
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_rejected() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(is_json(&nested(MAX_DEPTH)) && !is_json(&nested(MAX_DEPTH + 1)));
    }

    proptest! {
        #[test]
        fn the_walk_accepts_what_serde_json_accepts(
            text in r#"[{}\[\]",:\\ u01a\n\x01-é.etrunlfs]{0,24}"#,
            string in r#""([a-f0-9é\x00-\x20]|\\[\\"nu/x]){0,40}""#,
        ) {
            for text in [text, string] {
                prop_assert_eq!(is_json(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok(), "{}", text);
            }
        }
    }
}
