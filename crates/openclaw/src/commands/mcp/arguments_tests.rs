//! Tests of parsing arguments.

use openclaw_gateway::mcp::fit_texts;
use serde_json::json;

use super::*;

fn schema() -> Map<String, Value> {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "where": {"$ref": "#/$defs/place"},
            "maybe": {"type": ["integer", "null"]},
            "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            "level": {"enum": [1, 2, "3"]},
            "loop": {"$ref": "#/$defs/loop"},
            "anything": {},
        },
        "$defs": {"place": {"type": "object"}, "loop": {"$ref": "#/$defs/loop"}},
    });
    schema.as_object().unwrap().clone()
}

fn read_words(words: &[&str], stdin: &str) -> Result<Value, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let file = |path: &Path| match path.to_str() {
        Some("letter.txt") => Ok("Dear all\n".to_owned()),
        Some("list.json") => Ok("[1, 2]".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let given = read(&words, TextSources { stdin, file: &file })?;
    fit_texts(given.values, &given.texts, &schema()).map(Value::Object)
}

#[test]
fn a_value_is_converted_to_the_type_in_the_schema() {
    for (word, expected) in [
        ("text=5", json!({"text": "5"})),
        ("text=true", json!({"text": "true"})),
        ("text=", json!({"text": ""})),
        ("text=a=b", json!({"text": "a=b"})),
        ("count=5", json!({"count": 5})),
        ("count=-5", json!({"count": -5})),
        ("share=0.5", json!({"share": 0.5})),
        ("deep=true", json!({"deep": true})),
        ("tags=[\"a\"]", json!({"tags": ["a"]})),
        ("where={\"x\":1}", json!({"where": {"x": 1}})),
        ("maybe=null", json!({"maybe": null})),
        ("maybe=7", json!({"maybe": 7})),
        ("either=7", json!({"either": 7})),
        ("either=seven", json!({"either": "seven"})),
        ("level=2", json!({"level": 2})),
        ("level=3", json!({"level": "3"})),
        ("loop=x", json!({"loop": "x"})),
        ("anything=5", json!({"anything": "5"})),
        ("unknown=5", json!({"unknown": "5"})),
        ("text:=5", json!({"text": 5})),
        ("anything:=[1]", json!({"anything": [1]})),
        ("text=@letter.txt", json!({"text": "Dear all\n"})),
        ("tags=@list.json", json!({"tags": [1, 2]})),
    ] {
        assert_eq!(read_words(&[word], ""), Ok(expected), "{word}");
    }
}

#[test]
fn all_arguments_may_be_one_object() {
    let expected = json!({"count": 1, "text": "x"});
    let text = expected.to_string();
    assert_eq!(read_words(&[&text], ""), Ok(expected.clone()));
    assert_eq!(read_words(&["-"], &text), Ok(expected.clone()));
    assert_eq!(read_words(&["count=1", "text=x"], ""), Ok(expected));
    assert_eq!(read_words(&[], ""), Ok(json!({})));
}

#[test]
fn invalid_arguments_are_reported() {
    for (words, expected) in [
        (&["count=many"][..], "`count` expects a whole number; use `count:=…` to pass JSON"),
        (&["deep=perhaps"], "`deep` expects true or false"),
        (&["tags=a"], "`tags` expects a list"),
        (&["where=a"], "`where` expects an object"),
        (&["count=1", "count=2"], "`count` is given twice"),
        (&["count"], "invalid argument `count`"),
        (&["=5"], "invalid argument `=5`"),
        (&["text:=x"], "the value of `text` is not valid JSON"),
        (&["text=@nowhere"], "cannot read nowhere"),
        (&["{"], "the argument is not valid JSON"),
        (&["-"], "stdin is not a JSON object"),
    ] {
        let error = read_words(words, "[]").unwrap_err();
        assert!(error.starts_with(expected), "{words:?}: {error}");
    }
}

#[test]
fn arguments_of_prompts_are_texts_also_in_an_object() {
    let read = |words: &[&str]| {
        texts(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
            .map(|arguments| arguments.into_iter().collect::<Vec<_>>())
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let expected = vec![pair("a", "x"), pair("b", "5")];
    assert_eq!(read(&[r#"{"a": "x", "b": 5}"#]), Ok(expected.clone()));
    assert_eq!(read(&["a=x", "b=5"]), Ok(expected));
    assert!(read(&["{"]).unwrap_err().starts_with("the argument is not valid JSON"));
    assert!(read(&["x"]).unwrap_err().ends_with("expected key=value or one JSON object"));
    assert!(read(&["a=1", "a=2"]).unwrap_err().contains("twice"));
}

#[test]
fn pairs_and_an_object_are_not_mixed() {
    for words in [&["{\"text\": \"x\"}", "extra"][..], &["-", "text=1"], &["text=1", "-"]] {
        let refused = read_words(words, "{}").unwrap_err();
        assert!(refused.contains("either key=value pairs or one JSON object"), "{refused}");
    }
    let words = ["{}", "language=French"].map(str::to_owned);
    assert!(texts(&words).unwrap_err().contains("not both"));
}

#[test]
fn a_byte_order_mark_before_the_object_is_skipped() {
    let marked = "\u{feff}{\"text\": \"a\"}";
    assert_eq!(read_words(&["-"], marked), Ok(json!({"text": "a"})));
}

#[test]
fn prompts_do_not_read_stdin() {
    let problem = texts(&["-".to_owned()]).unwrap_err();
    assert!(problem.contains("`-` is not supported here"), "{problem}");
}
