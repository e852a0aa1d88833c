//! The usual answer, one part of text and nothing else to look at, read in the quickest way. Whatever is not
//! quite usual is left to the reader that knows all cases.

use super::text::Token;
use crate::json::{Json, Walk};

/// An answer of one text.
#[derive(Debug)]
pub(super) struct Usual<'a> {
    pub(super) text: Token<'a>,
    pub(super) is_error: bool,
}

/// The text of an answer that has just one. `None` means that the full reader must look at it.
pub(super) fn usual(raw: &Json) -> Option<Usual<'_>> {
    let mut walk = Walk::over(raw.get());
    let (mut text, mut is_error) = (None, None);
    walk.members(|walk, name| match name {
        "content" if text.is_none() => {
            text = Some(only_part(walk)?);
            Some(())
        }
        "isError" if is_error.is_none() => {
            is_error = Some(walk.value()?.get() == "true");
            Some(())
        }
        "resultType" | "_meta" => walk.value().map(drop),
        _ => None,
    })?;
    Some(Usual { text: text?, is_error: is_error.unwrap_or(false) })
}

/// The text of the only part in a list of parts.
fn only_part<'a>(walk: &mut Walk<'a>) -> Option<Token<'a>> {
    let (mut kind, mut text) = (None, None);
    walk.take(b'[')?;
    walk.members(|walk, name| match name {
        "type" if kind.is_none() => {
            kind = Some(walk.string()?);
            Some(())
        }
        "text" if text.is_none() => {
            text = Some(walk.string()?);
            Some(())
        }
        "annotations" | "_meta" => walk.value().map(drop),
        _ => None,
    })?;
    walk.take(b']')?;
    text.filter(|_| kind == Some("text")).map(Token::bare)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    fn read(json: &str) -> Option<(String, bool)> {
        let raw = Json::from(RawValue::from_string(json.to_owned()).unwrap());
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
