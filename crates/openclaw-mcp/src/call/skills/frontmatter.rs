//! The front matter of a skill's `SKILL.md`, compared with the one that the server listed.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};

/// The maximum size of a front matter, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// The maximum nesting.
const MAX_DEPTH: usize = 32;

/// Whether a file has exactly this front matter. Order does not matter, and an absent key is the same
/// as one that is null.
///
/// A plain scalar such as `1.0` is equal to the number and to the text: SEP-2640 leaves the types of
/// YAML open, and servers differ.
pub(super) fn is_same(file: &str, expected: &Map<String, Value>) -> bool {
    let parsed = section(file).filter(|yaml| yaml.len() <= MAX_BYTES).and_then(parse);
    parsed.is_some_and(|node| node.equals_object(expected))
}

/// Returns the lines between the first two `---`.
fn section(file: &str) -> Option<&str> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let start = file.split_inclusive('\n').next()?;
    let body = file.get(start.len()..)?;
    let mut end = 0;
    for line in body.split_inclusive('\n') {
        if is_fence(line) {
            return body.get(..end).filter(|_| is_fence(start) && start.ends_with('\n'));
        }
        end += line.len();
    }
    None
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty())
}

/// A YAML value. Its texts are as they are written.
#[derive(Debug)]
enum Node {
    /// A scalar, and whether it is without quotes, so that it may be a number.
    Scalar(String, bool),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// Parses one document. Anchors, aliases and keys that occur twice are rejected: what they mean
/// depends on the parser.
fn parse(yaml: &str) -> Option<Node> {
    let mut events = Events(Parser::new_from_str(yaml));
    let begins = |event: &Event<'_>| matches!(event, Event::StreamStart | Event::DocumentStart(_));
    if !begins(&events.next()?) || !begins(&events.next()?) {
        return None;
    }
    let first = events.next()?;
    let node = events.node(first, 0)?;
    let ends = matches!(events.next()?, Event::DocumentEnd);
    (ends && matches!(events.next()?, Event::StreamEnd)).then_some(node)
}

struct Events<'a>(Parser<'a, StrInput<'a>>);

impl<'a> Events<'a> {
    fn next(&mut self) -> Option<Event<'a>> {
        self.0.next_event()?.ok().map(|(event, _)| event)
    }

    fn node(&mut self, event: Event<'a>, depth: usize) -> Option<Node> {
        if depth == MAX_DEPTH {
            return None;
        }
        match event {
            Event::Scalar(text, style, 0, None) => {
                Some(Node::Scalar(text.into_owned(), style == ScalarStyle::Plain))
            }
            Event::SequenceStart(0, None) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Some(Node::List(items)),
                        event => items.push(self.node(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(0, None) => {
                let mut members: Vec<(String, Node)> = Vec::new();
                loop {
                    let key = match self.next()? {
                        Event::MappingEnd => return Some(Node::Object(members)),
                        Event::Scalar(key, _, 0, None) => key.into_owned(),
                        _ => return None,
                    };
                    if members.iter().any(|(known, _)| *known == key) {
                        return None;
                    }
                    let event = self.next()?;
                    members.push((key, self.node(event, depth + 1)?));
                }
            }
            _ => None,
        }
    }
}

impl Node {
    fn equals(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Scalar(text, _), Value::String(expected)) if text == expected => true,
            (Self::Scalar(text, true), value) => is_written(text, value),
            (Self::List(items), Value::Array(values)) => {
                let mut pairs = items.iter().zip(values);
                items.len() == values.len() && pairs.all(|(item, value)| item.equals(value))
            }
            (Self::Object(_), Value::Object(members)) => self.equals_object(members),
            _ => false,
        }
    }

    fn equals_object(&self, expected: &Map<String, Value>) -> bool {
        let Self::Object(members) = self else { return false };
        let is_listed =
            |(key, node): &(String, Self)| node.equals(expected.get(key).unwrap_or(&Value::Null));
        let is_known = |(key, value): (&String, &Value)| {
            value.is_null() || members.iter().any(|(known, _)| known == key)
        };
        members.iter().all(is_listed) && expected.iter().all(is_known)
    }
}

/// Whether a plain scalar is this value in the core schema of YAML 1.2, or is a flag of YAML 1.1.
fn is_written(text: &str, value: &Value) -> bool {
    let is_one_of = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match value {
        Value::Null => matches!(text, "" | "~" | "null" | "Null" | "NULL"),
        Value::Bool(true) => is_one_of(["true", "yes", "on"]),
        Value::Bool(false) => is_one_of(["false", "no", "off"]),
        Value::Number(number) => match number.as_i64() {
            Some(number) => integer(text) == Some(number) || float(text) == Some(number as f64),
            None => number.as_f64().is_some_and(|number| float(text) == Some(number)),
        },
        _ => false,
    }
}

fn integer(text: &str) -> Option<i64> {
    match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(hex), _) => i64::from_str_radix(hex, 16).ok(),
        (_, Some(octal)) => i64::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}

fn float(text: &str) -> Option<f64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn same(yaml: &str, expected: &Value) -> bool {
        is_same(&format!("---\n{yaml}\n---\n\nBody.\n"), expected.as_object().unwrap())
    }

    #[test]
    fn the_same_content_is_equal_in_any_notation() {
        let expected = json!({
            "name": "pdf", "description": "Fill: forms", "version": 1.5, "beta": true,
            "none": null, "list": ["a", 1], "metadata": {"author": "x"},
        });
        for yaml in [
            "name: pdf\ndescription: 'Fill: forms'\nversion: 1.5\nbeta: true\nlist: [a, 1]\nmetadata:\n  author: x",
            "beta: True\ndescription: >-\n  Fill:\n  forms\nlist:\n- a\n- 1\nmetadata: {author: x}\nname: \"pdf\"\nnone: ~\nversion: 1.5 # c",
        ] {
            assert!(same(yaml, &expected), "{yaml}");
        }
        assert!(same(
            "a: 1.0\nb: 2026-01-01\nc: yes",
            &json!({"a": "1.0", "b": "2026-01-01", "c": "yes"})
        ));
        assert!(same("a: yes\nb: Off", &json!({"a": true, "b": false})), "YAML 1.1");
        assert!(same("a: 0x10\nb: 1e3", &json!({"a": 16, "b": 1000})));
    }

    #[test]
    fn every_difference_is_found() {
        let expected = json!({"name": "pdf", "tags": ["a"]});
        for yaml in [
            "name: pdf",
            "name: pdf\ntags: [a, b]",
            "name: pdf\ntags: [b]",
            "name: PDF\ntags: [a]",
            "name: pdf\ntags: [a]\nallowed-tools: exec",
            "name: pdf\ntags: {a: 1}",
            "name: pdf\nname: pdf\ntags: [a]",
            "name: &x pdf\ntags: [*x]",
            "name: !!str pdf\ntags: [a]",
            "- name",
            "name: [",
            "",
        ] {
            assert!(!same(yaml, &expected), "{yaml}");
        }
        assert!(!same("a: '1'", &json!({"a": 1})), "a quoted number is a text");
        assert!(!same("a: 1", &json!({"a": true})));
    }

    #[test]
    fn the_front_matter_is_between_the_first_two_fences() {
        let name = json!({"name": "a"});
        let name = name.as_object().unwrap();
        for file in ["---\nname: a\n---", "\u{feff}---\r\nname: a\r\n--- \r\nx: 1\n---\n"] {
            assert!(is_same(file, name), "{file:?}");
        }
        for file in ["name: a\n---\n", "---\nname: a\n", "--- x\nname: a\n---\n", "---", "", "a"] {
            assert!(!is_same(file, name), "{file:?}");
        }
        let large = format!("---\nname: a # {}\n---\n", "x".repeat(MAX_BYTES));
        assert!(!is_same(&large, name));
        assert!(!same(&format!("a: {}1{}", "[".repeat(100), "]".repeat(100)), &json!({"a": 1})));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), yaml in "[-a:\\[\\]{}&*!|>'\"#%@`,? \n\t]{0,60}") {
            is_same(&text, &Map::new());
            is_same(&format!("---\n{yaml}\n---\n"), &Map::new());
        }
    }
}
