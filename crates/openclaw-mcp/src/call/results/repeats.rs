//! Data of pictures, sounds and files that structured content holds once more: it is named there, and
//! not repeated. As text it says nothing to anybody, and costs a lot.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memchr2};

use super::parts::Part;
use super::text::Token;

/// What is shorter may be the same by chance, and costs little.
const LEAST: usize = 64;

/// The data of an answer's parts, and which part has it. It is borrowed unless it holds escapes.
pub(super) struct Repeats<'a>(HashMap<Cow<'a, str>, usize>);

impl<'a> Repeats<'a> {
    /// Of the parts of an answer, in their order.
    pub(super) fn of(parts: &[Option<Part<'a>>]) -> Self {
        let mut numbers = HashMap::new();
        for (at, part) in parts.iter().enumerate() {
            let data = part.as_ref().and_then(binary).filter(|data| data.max_len() >= LEAST);
            if let Some(data) = data {
                numbers.entry(data.decode()).or_insert(at + 1);
            }
        }
        Self(numbers)
    }

    /// What stands in the place of such data, alone or in a `data:` address.
    pub(super) fn named(&self, text: &str) -> Option<String> {
        let address = text.strip_prefix("data:").and_then(|it| it.split_once(";base64,"));
        let data = address.map_or(text, |(_, data)| data);
        let number = self.0.get(data)?;
        Some(format!("[the data of part {number}, not repeated]"))
    }

    /// JSON in which such data is only named. Nothing is copied unless there is some.
    pub(super) fn taken_out<'j>(&self, json: &'j str) -> Cow<'j, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(json);
        }
        let (mut short, mut copied, mut at) = (String::new(), 0, 0);
        while let Some((start, end)) = next_string(json, at) {
            let text = &json[start..end];
            if text.len() >= LEAST
                && let Some(name) = self.named(&Token::bare(text).decode())
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

/// What a part holds that is no text.
fn binary<'a>(part: &Part<'a>) -> Option<Token<'a>> {
    part.data().or_else(|| part.resource()?.blob())
}

/// Where the next string begins and ends, without its quotes.
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
        Repeats::of(&parts).taken_out(json).into_owned()
    }

    #[test]
    fn data_is_named_wherever_it_stands_and_however_it_is_escaped() {
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
    fn what_is_short_or_something_else_stays_as_it_is() {
        assert_eq!(taken_out("AAAA", r#"{"a":"AAAA"}"#), r#"{"a":"AAAA"}"#);
        let (data, other) = ("A".repeat(100), "B".repeat(100));
        assert_eq!(taken_out(&data, &format!("[{other:?}]")), format!("[{other:?}]"));
    }
}
