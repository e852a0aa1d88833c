//! Strings in raw JSON: decoded once, and borrowed if they contain no escapes.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::value::RawValue;

/// A JSON string in the raw text, without its quotes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawString<'a>(&'a str);

impl<'a> RawString<'a> {
    /// The value as a string, if it is one.
    pub(super) fn parse(value: &'a RawValue) -> Option<Self> {
        value.get().strip_prefix('"')?.strip_suffix('"').map(Self)
    }

    /// Creates one from the text between the quotes of a string.
    pub(super) fn bare(inside: &'a str) -> Self {
        Self(inside)
    }

    /// The maximum length of the decoded text, in bytes.
    pub(super) fn max_len(self) -> usize {
        self.0.len()
    }

    /// Decodes the text.
    pub(super) fn decode(self) -> Cow<'a, str> {
        if memchr(b'\\', self.0.as_bytes()).is_none() {
            return Cow::Borrowed(self.0);
        }
        let mut text = String::with_capacity(self.0.len());
        self.decode_into(&mut text);
        Cow::Owned(text)
    }

    /// Appends the decoded text.
    pub(super) fn decode_into(self, text: &mut String) {
        let mut rest = self.0;
        while let Some(at) = memchr(b'\\', rest.as_bytes()) {
            let (before, escape) = rest.split_at(at);
            text.push_str(before);
            let (character, after) = unescape(escape);
            text.push(character);
            rest = after;
        }
        text.push_str(rest);
    }
}

/// Returns the character of an escape, and the rest. A lone surrogate, which JSON allows, becomes
/// the replacement character.
fn unescape(escape: &str) -> (char, &str) {
    let mut characters = escape.chars();
    characters.next();
    let character = match characters.next() {
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('u') => return unicode(characters.as_str()),
        Some(other) => other,
        None => char::REPLACEMENT_CHARACTER,
    };
    (character, characters.as_str())
}

/// Decodes four hexadecimal digits, with a second escape if the first is a high surrogate.
fn unicode(digits: &str) -> (char, &str) {
    let Some((first, rest)) = four_digits(digits) else {
        return (char::REPLACEMENT_CHARACTER, digits);
    };
    if let Some(character) = char::from_u32(first) {
        return (character, rest);
    }
    let pair = rest.strip_prefix("\\u").and_then(four_digits).filter(|(second, _)| {
        (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(second)
    });
    match pair {
        Some((second, after)) => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), after)
        }
        None => (char::REPLACEMENT_CHARACTER, rest),
    }
}

fn four_digits(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

/// Decodes the escapes of JSON text that are not required, so that nothing is hidden behind one.
pub(super) fn without_needless_escapes(json: &str) -> Cow<'_, str> {
    if memchr::memmem::find(json.as_bytes(), b"\\u").is_none() {
        return Cow::Borrowed(json);
    }
    let mut plain = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at(at);
        plain.push_str(before);
        let (character, after) = unescape(escape);
        let is_needed = character.is_control() || matches!(character, '"' | '\\');
        if is_needed {
            plain.push_str(&escape[..escape.len() - after.len()]);
        } else {
            plain.push(character);
        }
        rest = after;
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(json: &str) -> String {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        RawString::parse(&raw).unwrap().decode().into_owned()
    }

    #[test]
    fn escapes_are_decoded_and_lone_surrogates_are_replaced() {
        for (json, expected) in [
            (r#""a\"\\\/\n\r\t\b\f""#, "a\"\\/\n\r\t\u{8}\u{c}"),
            (r#""\u00e9\ud83e\udd80""#, "é🦀"),
            (r#""\ud83e""#, "\u{fffd}"),
            (r#""\ud83ex\udd80""#, "\u{fffd}x\u{fffd}"),
            (r#""\ud83e\ud83e\udd80""#, "\u{fffd}🦀"),
            (r#""\ud83e\n""#, "\u{fffd}\n"),
        ] {
            assert_eq!(decoded(json), expected, "{json}");
        }
    }

    #[test]
    fn nothing_hides_behind_an_escape() {
        let json = r#"{"a\u0022":"\u003c\u003c\n\u000a\\u003c"}"#;
        assert_eq!(without_needless_escapes(json), r#"{"a\u0022":"<<\n\u000a\\u003c"}"#);
    }

    proptest! {
        #[test]
        fn decoding_agrees_with_serde(text in "(.|\n|\"|\\\\){0,40}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decoded(&json), text);
        }

        #[test]
        fn json_without_needless_escapes_means_the_same(text in "(.|\n|\"|\\\\){0,40}") {
            let mut json = String::from("\"");
            for unit in text.encode_utf16() {
                json.push_str(&format!("\\u{unit:04x}"));
            }
            json.push('"');
            let plain = without_needless_escapes(&json).into_owned();
            prop_assert_eq!(serde_json::from_str::<String>(&plain).unwrap(), text);
        }
    }
}
