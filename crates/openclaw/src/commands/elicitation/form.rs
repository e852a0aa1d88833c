//! The fields of a form elicitation, one prompt each (T11).

use openclaw_tools::schema::{Validator, format_words};
use serde_json::{Number, Value, json};

/// The maximum number of fields; further ones are dropped.
const MAX_FIELDS: usize = 50;

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormField {
    /// The key in the response.
    pub(super) name: String,
    title: Option<String>,
    description: Option<String>,
    kind: Kind,
    default: Option<Value>,
    required: bool,
    /// The schema of the value.
    schema: Value,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text,
    Number {
        whole: bool,
    },
    YesOrNo,
    /// One of these, each a value and its title.
    Choice(Vec<(String, String)>),
    /// Several of these.
    Choices(Vec<(String, String)>),
}

/// The result of parsing a typed line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filled {
    /// A valid value.
    Value(Value),
    /// Empty, and optional.
    LeftOut,
    /// Empty, but required.
    Declined,
    /// Invalid, with the reason.
    Wrong(String),
}

impl FormField {
    /// Returns the fields of a schema, which describes an object of primitive values.
    pub(super) fn all(schema: &Value) -> Vec<Self> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten().take(MAX_FIELDS);
        let text = |schema: &Value, key| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        properties
            .map(|(name, schema)| Self {
                name: name.clone(),
                title: text(schema, "title"),
                description: text(schema, "description"),
                kind: Kind::of(schema),
                default: schema.get("default").cloned(),
                required: is_required(name),
                schema: schema.clone(),
            })
            .collect()
    }

    /// Returns the prompt: `Size (how large; small | large) [small]`.
    pub(super) fn question(&self) -> String {
        let mut remarks: Vec<String> = self.description.iter().cloned().collect();
        remarks.extend(self.kind.remark());
        remarks.extend(self.bounds());
        if self.kind == Kind::Text {
            let format = self.schema.get("format").and_then(Value::as_str);
            remarks.extend(format.and_then(format_words).map(str::to_owned));
        }
        if !self.required && self.default.is_none() {
            remarks.push("optional".to_owned());
        }
        let mut question = self.title.as_ref().unwrap_or(&self.name).clone();
        if !remarks.is_empty() {
            question += &format!(" ({})", remarks.join("; "));
        }
        if let Some(default) = &self.default {
            let shown =
                |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let shown = match default {
                // As it is typed.
                Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
                one => shown(one),
            };
            question += &format!(" [{shown}]");
        }
        question
    }

    /// Returns the bounds of a number.
    fn bounds(&self) -> Option<String> {
        let bound = |key: &str| self.schema.get(key).filter(|it| it.is_number());
        match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}")),
            (Some(least), None) => Some(format!("at least {least}")),
            (None, Some(most)) => Some(format!("at most {most}")),
            (None, None) => None,
        }
    }

    /// Parses a typed line.
    pub(super) fn read(&self, line: &str) -> Filled {
        if line.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Filled::Value(default.clone()),
                (None, true) => Filled::Declined,
                (None, false) => Filled::LeftOut,
            };
        }
        let fitting = |value: Value| self.check(&value).map(|()| value);
        match self.kind.read(line).and_then(fitting) {
            Ok(value) => Filled::Value(value),
            Err(why) => Filled::Wrong(why),
        }
    }

    /// Validates bounds, lengths, patterns and formats. An invalid schema accepts any value.
    fn check(&self, value: &Value) -> Result<(), String> {
        let form = json!({ "type": "object", "properties": { &*self.name: self.schema } });
        let compiled = form.as_object().map(Validator::compile_for_answers);
        let Some(Ok(validator)) = compiled else { return Ok(()) };
        let filled_in = json!({ &*self.name: value });
        validator.check(&filled_in).map_err(|violations| {
            // The field has just been named, in its own words.
            let place = format!("/{} ", self.name);
            let violations = violations.to_string();
            let lines = violations.lines().map(|line| line.strip_prefix(&place).unwrap_or(line));
            lines.collect::<Vec<_>>().join("\n")
        })
    }
}

impl Kind {
    fn of(schema: &Value) -> Self {
        if let Some(choices) = choices(schema) {
            return Self::Choice(choices);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => Self::YesOrNo,
            Some("integer") => Self::Number { whole: true },
            Some("number") => Self::Number { whole: false },
            Some("array") => match schema.get("items").and_then(choices) {
                Some(choices) => Self::Choices(choices),
                None => Self::Text,
            },
            _ => Self::Text,
        }
    }

    fn remark(&self) -> Option<String> {
        let shown = |choices: &[(String, String)]| {
            let shown = choices.iter().map(|(value, title)| match value == title {
                true => value.clone(),
                false => format!("{value} = {title}"),
            });
            shown.collect::<Vec<_>>().join(" | ")
        };
        match self {
            Self::Text => None,
            Self::Number { whole: true } => Some("a whole number".to_owned()),
            Self::Number { whole: false } => Some("a number".to_owned()),
            Self::YesOrNo => Some("yes or no".to_owned()),
            Self::Choice(choices) => Some(shown(choices)),
            Self::Choices(choices) => {
                Some(format!("any of {}, separated by commas", shown(choices)))
            }
        }
    }

    fn read(&self, line: &str) -> Result<Value, String> {
        match self {
            Self::Text => Ok(line.into()),
            Self::YesOrNo => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("enter yes or no".to_owned()),
            },
            Self::Number { whole } => {
                let number = line.parse::<Number>().ok();
                let fits = |number: &Number| !whole || number.is_i64() || number.is_u64();
                number.filter(fits).map(Value::Number).ok_or_else(|| {
                    format!("not {}", if *whole { "a whole number" } else { "a number" })
                })
            }
            Self::Choice(choices) => chosen(line, choices).map(Value::String),
            Self::Choices(choices) => {
                let words = line.split(',').map(str::trim).filter(|word| !word.is_empty());
                let values = words.map(|word| chosen(word, choices).map(Value::String));
                values.collect::<Result<_, _>>().map(Value::Array)
            }
        }
    }
}

fn chosen(word: &str, choices: &[(String, String)]) -> Result<String, String> {
    let found = choices.iter().find(|(value, title)| value == word || title == word);
    found
        .map(|(value, _)| value.clone())
        .ok_or_else(|| format!("`{word}` is not one of the choices"))
}

/// Returns the choices of a schema: `enum` with `enumNames`, or `oneOf` or `anyOf` with `const`.
fn choices(schema: &Value) -> Option<Vec<(String, String)>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        let title = |at: usize| titles.and_then(|titles| text(titles.get(at)?));
        let values = values.iter().filter_map(text).enumerate();
        return Some(values.map(|(at, v)| (v.clone(), title(at).unwrap_or(v))).collect());
    }
    let variants = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let variant = |variant: &Value| {
        let value = text(variant.get("const")?)?;
        let title = variant.get("title").and_then(text).unwrap_or_else(|| value.clone());
        Some((value, title))
    };
    variants.iter().map(variant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(schema: &Value, required: bool) -> FormField {
        let required = if required { json!(["x"]) } else { json!([]) };
        let form = json!({ "properties": { "x": schema }, "required": required });
        FormField::all(&form).remove(0)
    }

    #[test]
    fn a_prompt_names_the_choices_and_the_default() {
        for (schema, required, question) in [
            (json!({"type": "string"}), true, "x"),
            (json!({"type": "string", "title": "Name"}), false, "Name (optional)"),
            (json!({"type": "integer", "default": 5}), true, "x (a whole number) [5]"),
            (
                json!({"type": "integer", "minimum": 1, "maximum": 9}),
                true,
                "x (a whole number; 1 to 9)",
            ),
            (
                json!({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a", "b"]}),
                true,
                "x (any of a | b, separated by commas) [a, b]",
            ),
            (json!({"type": "string", "format": "date"}), true, "x (a date, such as 2026-07-28)"),
            (
                json!({"enum": ["s", "l"], "enumNames": ["small", "l"], "description": "size"}),
                true,
                "x (size; s = small | l)",
            ),
            (
                json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}),
                true,
                "x (any of a = A, separated by commas)",
            ),
        ] {
            assert_eq!(field(&schema, required).question(), question);
        }
    }

    #[test]
    fn a_line_becomes_a_value_of_the_right_type() {
        for (schema, line, expected) in [
            (json!({"type": "string"}), "5", json!("5")),
            (json!({"type": "integer"}), "5", json!(5)),
            (json!({"type": "number"}), "-1.5", json!(-1.5)),
            (json!({"type": "boolean"}), "Yes", json!(true)),
            (json!({"oneOf": [{"const": "a", "title": "Alpha"}]}), "Alpha", json!("a")),
            (json!({"type": "array", "items": {"enum": ["a", "b"]}}), "b, a", json!(["b", "a"])),
        ] {
            assert_eq!(field(&schema, true).read(line), Filled::Value(expected));
        }
        for (schema, line) in [
            (json!({"type": "integer"}), "1.5"),
            (json!({"type": "boolean"}), "perhaps"),
            (json!({"enum": ["a"]}), "b"),
            (json!({"type": "integer", "maximum": 100}), "101"),
            (json!({"type": "string", "minLength": 2}), "a"),
            (json!({"type": "string", "format": "date"}), "tomorrow"),
            (json!({"type": "string", "format": "email"}), "somewhere"),
            (json!({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}), "a, b"),
        ] {
            assert!(matches!(field(&schema, true).read(line), Filled::Wrong(_)), "{line}");
        }
        let date = json!({"type": "string", "format": "date"});
        let words = "must be a date, such as 2026-07-28".to_owned();
        assert_eq!(field(&date, true).read("tomorrow"), Filled::Wrong(words));
    }

    #[test]
    fn an_empty_line_means_the_default_or_skips_or_declines() {
        let text = json!({"type": "string"});
        assert_eq!(field(&text, true).read(""), Filled::Declined);
        assert_eq!(field(&text, false).read(""), Filled::LeftOut);
        let with_default = json!({"type": "boolean", "default": false});
        assert_eq!(field(&with_default, true).read(""), Filled::Value(json!(false)));
    }
}
