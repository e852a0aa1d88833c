//! Parses YAML into a JSON value, for programs with YAML files. Anchors and tags are rejected: no
//! program writes them into its settings.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde_json::{Map, Value};

/// The maximum nesting.
const MAX_DEPTH: usize = 32;

/// Parses one document. An error names only the line: the text may contain credentials.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut events = Events { parser: Parser::new_from_str(text), line: 1 };
    let parsed = events.document();
    parsed.ok_or_else(|| format!("invalid YAML, line {}", events.line))
}

struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// The line of the last event.
    line: usize,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Option<Event<'a>> {
        let event: Result<(Event<'a>, Span), ScanError> = self.parser.next_event()?;
        let (event, span) = event.inspect_err(|error| self.line = error.marker().line()).ok()?;
        self.line = span.start.line();
        Some(event)
    }

    fn document(&mut self) -> Option<Value> {
        loop {
            match self.next()? {
                Event::StreamStart | Event::DocumentStart(_) => {}
                // An empty file.
                Event::StreamEnd => return Some(Value::Object(Map::new())),
                event => return self.value(event, 0),
            }
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Option<Value> {
        if depth == MAX_DEPTH {
            return None;
        }
        match event {
            Event::Scalar(text, style, 0, None) => Some(scalar(&text, style)),
            Event::SequenceStart(0, None) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Some(Value::Array(items)),
                        event => items.push(self.value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(0, None) => {
                let mut members = Map::new();
                loop {
                    let key = match self.next()? {
                        Event::MappingEnd => return Some(Value::Object(members)),
                        Event::Scalar(key, _, 0, None) => key.into_owned(),
                        _ => return None,
                    };
                    let event = self.next()?;
                    members.insert(key, self.value(event, depth + 1)?);
                }
            }
            _ => None,
        }
    }
}

/// Converts a scalar by the core schema of YAML 1.2.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => text.parse().map_or_else(|_| text.into(), Value::Number),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_becomes_json() {
        let text = "# c\na: {b: [1, 'x', true, ~]}\nd:\n  - e: \"1\"\n    f: g h\n";
        let value = json!({ "a": { "b": [1, "x", true, null] }, "d": [{ "e": "1", "f": "g h" }] });
        assert_eq!(parse(text), Ok(value));
        assert_eq!(parse("# nothing\n"), Ok(json!({})));
    }

    #[test]
    fn an_invalid_document_is_reported_by_its_line() {
        assert_eq!(parse("a: 1\nb: [\"s3cret\"\nc: 2\n").unwrap_err().find("s3cret"), None);
        assert!(parse("a: &x 1\nb: *x\n").is_err());
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(parse(&deep).is_err());
    }
}
