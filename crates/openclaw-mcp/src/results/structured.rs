//! Whether the text of an answer already says what its structured content says.
//!
//! Servers are asked to put their structured content into a text as well, for clients that know only
//! text. Shown twice it would cost twice.

use serde_json::Value;
use serde_json::value::RawValue;

use super::text::Token;

/// Larger content is compared as it stands, and not by its meaning.
const MAX_COMPARED: usize = 256 * 1024;

/// Whether the texts say the same as the structured content: as a whole, or as its only member (which
/// is put around what is no object), or one by one as that member's items.
pub(super) fn is_said_by(texts: &[Token<'_>], structured: &RawValue) -> bool {
    if let [text] = texts {
        let text = text.decode();
        if tokens(&text).eq(tokens(structured.get())) {
            return true;
        }
    }
    let weight = texts.iter().map(|text| text.max_len()).sum::<usize>();
    if structured.get().len().max(weight) > MAX_COMPARED {
        return false;
    }
    let Ok(structured) = serde_json::from_str::<Value>(structured.get()) else { return false };
    let inner = structured.as_object().filter(|members| members.len() == 1);
    let inner = inner.and_then(|members| members.values().next());
    match texts {
        [text] if says(*text, &structured) => true,
        [text] if inner.is_some_and(|inner| says(*text, inner)) => true,
        _ => inner.and_then(Value::as_array).is_some_and(|items| {
            items.len() == texts.len()
                && texts.iter().zip(items).all(|(text, item)| says(*text, item))
        }),
    }
}

fn says(text: Token<'_>, value: &Value) -> bool {
    let text = text.decode();
    match value {
        Value::String(value) if *value == text => true,
        value => serde_json::from_str::<Value>(&text).is_ok_and(|text| text == *value),
    }
}

/// The bytes of JSON without the white space between its tokens.
fn tokens(json: &str) -> impl Iterator<Item = u8> {
    let (mut is_string, mut is_escaped) = (false, false);
    json.bytes().filter(move |byte| {
        if is_string {
            is_string = *byte != b'"' || is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            return true;
        }
        is_string = *byte == b'"';
        !byte.is_ascii_whitespace()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str], structured: &str) -> bool {
        let raw = |json: String| RawValue::from_string(json).unwrap();
        let texts: Vec<_> =
            texts.iter().map(|text| raw(serde_json::to_string(text).unwrap())).collect();
        let texts: Vec<_> = texts.iter().map(|text| Token::of(text).unwrap()).collect();
        is_said_by(&texts, &raw(structured.to_owned()))
    }

    #[test]
    fn the_same_in_other_words_is_the_same() {
        let structured = r#"{"a":[1,2],"b":"x \" y"}"#;
        for text in [
            structured,
            "{\n  \"a\": [1, 2],\n  \"b\": \"x \\\" y\"\n}",
            r#"{"b":"x \u0022 y","a":[1,2]}"#,
        ] {
            assert!(said(&[text], structured), "{text}");
        }
        assert!(said(&["plain"], r#"{"result":"plain"}"#));
        assert!(said(&["[1]"], r#"{"result":[1]}"#));
        assert!(said(&["one", "2"], r#"{"result":["one",2]}"#));
    }

    #[test]
    fn something_else_is_something_else() {
        for (texts, structured) in [
            (&["Found 2 files."][..], r#"{"files":["a","b"]}"#),
            (&[], r#"{"a":1}"#),
            (&["{\"a\":2}"], r#"{"a":1}"#),
            (&["{\"a\":\"b c\"}"], r#"{"a":"bc"}"#),
            (&["one"], r#"{"result":["one","two"]}"#),
        ] {
            assert!(!said(texts, structured), "{structured}");
        }
    }
}
