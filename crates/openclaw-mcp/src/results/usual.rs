//! The usual answer, one part of text and nothing else to look at, read in the quickest way.
//!
//! A `RawValue` is valid JSON: it was checked when it came. So its texts need not be gone over byte by byte once
//! more; their ends are searched for. Whatever is not quite usual is left to the reader that knows all cases.

use memchr::memchr2;
use serde_json::value::RawValue;

use super::text::Token;

/// An answer of one text.
#[derive(Debug)]
pub(super) struct Usual<'a> {
    pub(super) text: Token<'a>,
    pub(super) is_error: bool,
}

/// The one text of an answer; nothing if there is more to it, which does not mean that it is no answer.
pub(super) fn usual(raw: &RawValue) -> Option<Usual<'_>> {
    let mut walk = Walk { json: raw.get(), at: 0 };
    let (mut text, mut is_error) = (None, None);
    walk.members(|walk, name| match name {
        "content" if text.is_none() => {
            text = Some(walk.only_part()?);
            Some(())
        }
        "isError" if is_error.is_none() => {
            is_error = Some(walk.value()? == "true");
            Some(())
        }
        "resultType" | "_meta" => walk.value().map(drop),
        _ => None,
    })?;
    Some(Usual { text: text?, is_error: is_error.unwrap_or(false) })
}

/// A walk over JSON that is valid.
struct Walk<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.json.as_bytes().get(self.at..)?;
        let blank = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        self.at += blank;
        rest.get(blank).copied()
    }

    /// Goes past this byte, if it is the next.
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// The members of an object: `visit` goes past the value of each, and gives nothing to end the walk.
    fn members(&mut self, mut visit: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        loop {
            let name = self.text()?;
            self.take(b':')?;
            visit(self, name)?;
            if self.take(b',').is_none() {
                return self.take(b'}');
            }
        }
    }

    /// The text of the only part in a list of parts.
    fn only_part(&mut self) -> Option<Token<'a>> {
        let (mut kind, mut text) = (None, None);
        self.take(b'[')?;
        self.members(|walk, name| match name {
            "type" if kind.is_none() => {
                kind = Some(walk.text()?);
                Some(())
            }
            "text" if text.is_none() => {
                text = Some(walk.text()?);
                Some(())
            }
            "annotations" | "_meta" => walk.value().map(drop),
            _ => None,
        })?;
        self.take(b']')?;
        text.filter(|_| kind == Some("text")).map(Token::bare)
    }

    /// What stands between the quotes of a text. An escape in it stays as it is.
    fn text(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            self.at += memchr2(b'"', b'\\', self.json.as_bytes().get(self.at..)?)?;
            if self.json.as_bytes().get(self.at) == Some(&b'"') {
                self.at += 1;
                return self.json.get(start..self.at - 1);
            }
            self.at += 2;
        }
    }

    /// Any value, as it stands there.
    fn value(&mut self) -> Option<&'a str> {
        let mut depth = 0_usize;
        self.peek()?;
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => drop(self.text()?),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => self.word(),
            }
            if depth == 0 {
                return self.json.get(start..self.at);
            }
        }
    }

    /// Goes past a number, `true`, `false` or `null`.
    fn word(&mut self) {
        let rest = self.json.as_bytes().get(self.at..).unwrap_or_default();
        let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte);
        self.at += rest.iter().position(is_end).unwrap_or(rest.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(json: &str) -> Option<(String, bool)> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        usual(&raw).map(|answer| (answer.text.decode().into_owned(), answer.is_error))
    }

    #[test]
    fn one_text_is_read_in_whatever_order_it_is_written() {
        for (json, is_error) in [
            (r#"{"content":[{"type":"text","text":"a \"b\" \\"}]}"#, false),
            (
                r#"{ "isError" : true , "content" : [ { "text" : "a \"b\" \\" , "type" : "text" } ] }"#,
                true,
            ),
            (
                r#"{"resultType":"complete","content":[{"type":"text","text":"a \"b\" \\","annotations":{"x":[1,"]}"]}}],"isError":false,"_meta":{"y":{}}}"#,
                false,
            ),
        ] {
            assert_eq!(read(json), Some(("a \"b\" \\".to_owned(), is_error)), "{json}");
        }
    }

    #[test]
    fn whatever_else_there_is_is_left_to_the_other_reader() {
        for json in [
            "[]",
            "{}",
            r#"{"content":null}"#,
            r#"{"content":[]}"#,
            r#"{"content":[{"type":"text","text":null}]}"#,
            r#"{"content":[{"type":"text"}]}"#,
            r#"{"content":[{"type":"image","text":"a"}]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#,
            r#"{"content":[{"type":"text","text":"a","data":"b"}]}"#,
            r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{}}"#,
            r#"{"content":[{"type":"text","text":"a"}],"structured\u0043ontent":{}}"#,
            r#"{"content":[{"type":"text","text":"a"}],"isError":true,"isError":false}"#,
        ] {
            assert_eq!(read(json), None, "{json}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a\"\\\\\\]}é]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a\"}]{0,2}", inner, 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_text_is_read_beside_anything(text in "(.|\n|\"|\\\\){0,40}", is_error: bool, meta in any_json()) {
            let part = json!({ "type": "text", "annotations": meta, "text": text });
            let answer = json!({ "_meta": meta, "content": [part], "isError": is_error });
            let expected = Some((text, is_error));
            prop_assert_eq!(&read(&answer.to_string()), &expected);
            prop_assert_eq!(read(&serde_json::to_string_pretty(&answer).unwrap()), expected);
        }
    }
}
