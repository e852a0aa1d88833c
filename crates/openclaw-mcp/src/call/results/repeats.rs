//! Removes binary data from structured content if a part of the response contains it already: as
//! text it is useless and expensive.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memchr2};

use super::parts::ContentPart;
use super::text::RawString;

/// Shorter data may match by chance, and costs little.
const LEAST: usize = 64;

/// The binary data of the parts, and the number of the part. Borrowed unless it contains escapes.
pub(super) struct Repeats<'a>(HashMap<Cow<'a, str>, usize>);

impl<'a> Repeats<'a> {
    /// Collects the data of the parts of a response, in order.
    pub(super) fn find(parts: &[Option<ContentPart<'a>>]) -> Self {
        let mut numbers = HashMap::new();
        for (at, part) in parts.iter().enumerate() {
            let data = part.as_ref().and_then(binary).filter(|data| data.max_len() >= LEAST);
            if let Some(data) = data {
                numbers.entry(data.decode()).or_insert(at + 1);
            }
        }
        Self(numbers)
    }

    /// Returns the replacement for such data, alone or in a `data:` URL.
    pub(super) fn named(&self, text: &str) -> Option<String> {
        let address = text.strip_prefix("data:").and_then(|it| it.split_once(";base64,"));
        let data = address.map_or(text, |(_, data)| data);
        let number = self.0.get(data)?;
        Some(format!("[the data of part {number}, not repeated]"))
    }

    /// Replaces such data in JSON. Copies nothing if there is none.
    pub(super) fn taken_out<'j>(&self, json: &'j str) -> Cow<'j, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(json);
        }
        let mut short = String::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some((start, end)) = next_string(json, at) {
            let text = &json[start..end];
            if text.len() >= LEAST
                && let Some(name) = self.named(&RawString::bare(text).decode())
            {
                short.push_str(&json[copied..start]);
                short.push_str(&name);
                copied = end;
            }
            at = end + 1;
        }
        if copied == 0 {
            return Cow::Borrowed(json);
        }
        short.push_str(&json[copied..]);
        Cow::Owned(short)
    }
}

/// The binary data of a part.
fn binary<'a>(part: &ContentPart<'a>) -> Option<RawString<'a>> {
    part.data().or_else(|| part.resource()?.blob())
}

/// The range of the next string, without its quotes.
fn next_string(json: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = json.as_bytes();
    let start = from + memchr(b'"', bytes.get(from..)?)? + 1;
    let mut at = start;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some((start, at));
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_out(data: &str, json: &str) -> String {
        let part = format!(r#"{{"type":"image","data":{data:?}}}"#);
        let parts = [None, serde_json::from_str(&part).ok()];
        Repeats::find(&parts).taken_out(json).into_owned()
    }

    #[test]
    fn data_is_replaced_at_any_depth_and_with_any_escapes() {
        let data = "iVBO/w0K".repeat(10);
        let escaped = data.replace('/', "\\/");
        let json = format!(
            r#"{{"a \" b":["{data}",{{"x":"{escaped}"}}],"src":"data:image/png;base64,{data}","n":"{data}A"}}"#
        );
        let name = "[the data of part 2, not repeated]";
        let expected =
            format!(r#"{{"a \" b":["{name}",{{"x":"{name}"}}],"src":"{name}","n":"{data}A"}}"#);
        assert_eq!(taken_out(&data, &json), expected);
    }

    #[test]
    fn short_or_different_data_is_unchanged() {
        assert_eq!(taken_out("AAAA", r#"{"a":"AAAA"}"#), r#"{"a":"AAAA"}"#);
        let data = "A".repeat(100);
        let other = "B".repeat(100);
        assert_eq!(taken_out(&data, &format!("[{other:?}]")), format!("[{other:?}]"));
    }
}
