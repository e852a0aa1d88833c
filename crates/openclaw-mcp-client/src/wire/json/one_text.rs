//! Detects tool results with a single text part, the most common kind, while their JSON is
//! validated, which saves a second pass.

use super::{JsonCursor, JsonRef};

/// The position of the text in a result whose only part is a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct OneText {
    start: u32,
    end: u32,
    is_error: bool,
}

impl OneText {
    /// Returns the text between the quotes, with its escapes, and `isError`.
    pub(super) fn text_in(self, json: &str) -> Option<(&str, bool)> {
        Some((json.get(self.start as usize..self.end as usize)?, self.is_error))
    }
}

impl<'a> JsonCursor<'a> {
    /// Returns the next value and, if it is a tool result with a single text, the text's position.
    pub(crate) fn result(&mut self) -> Option<JsonRef<'a>> {
        if self.peek()? != b'{' {
            return self.value();
        }
        let start = self.at;
        let mut text = None;
        let mut is_error = None;
        let mut is_usual = true;
        self.members(|walk, name| {
            match name {
                "content" if text.is_none() => {
                    let mut ahead = *walk;
                    if let Some(part) = ahead.only_part() {
                        *walk = ahead;
                        text = Some(part);
                        return Some(());
                    }
                    is_usual = false;
                }
                "isError" if is_error.is_none() => {
                    is_error = Some(walk.value()?.get() == "true");
                    return Some(());
                }
                "resultType" | "_meta" => {}
                _ => is_usual = false,
            }
            walk.skip(1)
        })?;
        let one_text = text.filter(|_| is_usual).and_then(|(from, to)| {
            let [start, end] = [from, to].map(|at: usize| u32::try_from(at - start).ok());
            Some(OneText { start: start?, end: end?, is_error: is_error.unwrap_or(false) })
        });
        Some(JsonRef { text: self.json.get(start..self.at)?, one_text })
    }

    /// Returns the range of the text in a list that consists of one text part.
    fn only_part(&mut self) -> Option<(usize, usize)> {
        let mut kind = None;
        let mut text = None;
        self.take(b'[')?;
        self.members(|walk, name| match name {
            "type" if kind.is_none() => {
                kind = Some(walk.string()?);
                Some(())
            }
            "text" if text.is_none() => {
                let inside = walk.string()?;
                let end = walk.at - 1;
                text = Some((end - inside.len(), end));
                Some(())
            }
            // A part for the user or the model only is read in full.
            "annotations" => walk.value().filter(|it| !it.get().contains("audience")).map(drop),
            "_meta" => walk.value().map(drop),
            _ => None,
        })?;
        self.take(b']')?;
        text.filter(|_| kind == Some("text"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use crate::wire::json::Json;

    fn read(json: &str) -> Option<(String, bool)> {
        let result = Json::from(RawValue::from_string(json.to_owned()).unwrap());
        let (text, is_error) = result.one_text()?;
        Some((serde_json::from_str(&format!("\"{text}\"")).unwrap(), is_error))
    }

    #[test]
    fn one_text_is_found_in_any_member_order() {
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
    fn a_result_with_other_members_has_no_one_text() {
        for json in [
            "[]",
            "{}",
            r#"{"content":null}"#,
            r#"{"content":[]}"#,
            r#"{"content":[{"type":"text","text":null}]}"#,
            r#"{"content":[{"type":"text"}]}"#,
            r#"{"content":[{"type":"image","text":"a"}]}"#,
            r#"{"content":[{"type":"text","text":"a","annotations":{"audience":["user"]}}]}"#,
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
        fn any_text_is_found_beside_anything(text in "(.|\n|\"|\\\\){0,40}", is_error: bool, meta in any_json()) {
            let part = json!({ "type": "text", "annotations": meta, "text": text });
            let answer = json!({ "_meta": meta, "content": [part], "isError": is_error });
            let expected = Some((text, is_error));
            prop_assert_eq!(&read(&answer.to_string()), &expected);
            prop_assert_eq!(read(&serde_json::to_string_pretty(&answer).unwrap()), expected);
        }
    }
}
