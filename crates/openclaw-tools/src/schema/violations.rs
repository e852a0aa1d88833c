//! Error messages for invalid arguments, for the model that made them, and for invalid results.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use openclaw_content::{Untrusted, clean_line};
use serde_json::Value;

/// Maximum number of violations listed; further ones are counted.
const MAX_LINES: usize = 5;
/// Maximum length of a line.
const MAX_LINE: usize = 280;
/// Maximum length of a quoted value or name.
const MAX_SHOWN: usize = 40;
/// Maximum length of a path.
const MAX_PLACE: usize = 80;
/// Maximum number of choices listed.
const MAX_CHOICES: usize = 8;

/// What is validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValidatedKind {
    /// The arguments of a call.
    Arguments,
    /// The structured content of a result.
    Result,
}

impl ValidatedKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Arguments => "the arguments",
            Self::Result => "the structured content",
        }
    }
}

/// The violations in a value: at most five lines, each with the path and what was expected, and the
/// number of further ones. Names and choices come from the schema, which the model knows, or from
/// the value; they are sanitized and truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations {
    lines: Vec<String>,
    more: usize,
}

impl std::error::Error for Violations {}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl Violations {
    pub(super) fn new<'e>(
        subject: ValidatedKind,
        errors: impl IntoIterator<Item = ValidationError<'e>>,
    ) -> Self {
        let mut errors = errors.into_iter();
        let lines = errors.by_ref().take(MAX_LINES).map(|error| line_about(subject, &error));
        Self { lines: lines.collect(), more: errors.count() }
    }

    pub(super) fn not_an_object(subject: ValidatedKind) -> Self {
        Self { lines: vec![format!("{} must be an object", subject.name())], more: 0 }
    }

    pub(super) fn unreadable(subject: ValidatedKind) -> Self {
        let is = match subject {
            ValidatedKind::Arguments => "are",
            ValidatedKind::Result => "is",
        };
        let line = format!("{} {is} nested too deeply, or not valid JSON", subject.name());
        Self { lines: vec![line], more: 0 }
    }

    /// Describes what is wrong with a schema: for users rather than models, but in the same format.
    pub(super) fn of_schema(error: &ValidationError<'_>) -> String {
        line(ValidatedKind::Arguments, error)
    }
}

/// Like [`line`], except that missing and unknown arguments are reported as such.
fn line_about(subject: ValidatedKind, error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let words = match (subject, error.kind(), error.instance_path().as_str()) {
        (ValidatedKind::Arguments, Kind::Required { property }, "") => {
            format!("missing argument {}", named(property.as_str().unwrap_or_default()))
        }
        (ValidatedKind::Arguments, Kind::AdditionalProperties { unexpected }, "") => {
            let s = if unexpected.len() == 1 { "" } else { "s" };
            format!("unknown argument{s} {}", list(unexpected.iter().map(|name| named(name))))
        }
        _ => return line(subject, error),
    };
    clean_line(Untrusted::new(&words), MAX_LINE)
}

/// Formats a number of things: "1 item", "2 items".
fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Formats the path and what is wrong there.
fn line(subject: ValidatedKind, error: &ValidationError<'_>) -> String {
    let place = error.instance_path().as_str();
    let place = match (place, subject) {
        // One thing, as the words that follow.
        ("", ValidatedKind::Arguments) => "the set of arguments".to_owned(),
        ("", ValidatedKind::Result) => subject.name().to_owned(),
        (place, _) => clean_line(Untrusted::new(place), MAX_PLACE),
    };
    let words = format!("{place} {}", words(error.kind(), error.instance(), true));
    clean_line(Untrusted::new(&words), MAX_LINE)
}

/// Describes the violation, to follow the path.
fn words(kind: &ValidationErrorKind, value: &Value, may_look_inside: bool) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::Required { property } => format!("must have the property {}", shown(property)),
        Kind::AdditionalProperties { unexpected }
        | Kind::UnevaluatedProperties { unexpected }
        | Kind::UnevaluatedItems { unexpected } => {
            format!("must not have {}", list(unexpected.iter().map(|name| quoted(name))))
        }
        Kind::Type { kind } => format!("must be {}, but is {}", type_words(kind), described(value)),
        Kind::Enum { options } => {
            let options = options.as_array().map_or(&[][..], Vec::as_slice);
            format!(
                "must be one of {}, but is {}",
                list(options.iter().map(shown)),
                described(value)
            )
        }
        Kind::Constant { expected_value } => format!("must be {}", shown(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {}", shown(limit)),
        Kind::Maximum { limit } => format!("must be at most {}", shown(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {}", shown(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {}", shown(limit)),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {}", count(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", count(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", count(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", count(*limit, "item")),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} properties"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} properties"),
        Kind::UniqueItems => "must not have duplicate items".to_owned(),
        Kind::Contains => "lacks a required item".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern {}", quoted(pattern)),
        Kind::Format { format } => match format_words(format) {
            Some(words) => format!("must be {words}"),
            None => format!("must have the format {}", quoted(format)),
        },
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::PropertyNames { error } if may_look_inside => {
            let inner = words(error.kind(), error.instance(), false);
            format!("has an invalid property name: it {inner}")
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let forms = format!("matches none of its {} allowed forms", context.len());
            match closest(context).filter(|_| may_look_inside) {
                Some(error) => {
                    let place = match error.instance_path().as_str() {
                        "" => "it".to_owned(),
                        place => clean_line(Untrusted::new(place), MAX_PLACE),
                    };
                    let inner = words(error.kind(), error.instance(), false);
                    format!("{forms}; for the closest, {place} {inner}")
                }
                None => forms,
            }
        }
        Kind::OneOfMultipleValid { .. } => {
            "matches more than one of its allowed forms; it must match exactly one".to_owned()
        }
        Kind::Not { .. } => "has a form that is not allowed".to_owned(),
        other => format!("violates the rule {}", quoted(other.keyword())),
    }
}

/// Describes a well-known `format`, with an example.
pub fn format_words(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "a date, such as 2026-07-28",
        "date-time" => "a date and time, such as 2026-07-28T12:00:00Z",
        "time" => "a time, such as 12:00:00Z",
        "duration" => "a duration, such as P1DT2H",
        "email" => "an email address",
        "uri" => "a URI, such as https://example.com",
        "uuid" => "a UUID",
        "hostname" => "a host name",
        "ipv4" => "an IPv4 address",
        "ipv6" => "an IPv6 address",
        _ => return None,
    })
}

/// Of several failed alternatives, returns the error of the closest one: that with the deepest
/// path, then the fewest errors. A wrong type at the top means that this alternative was not
/// intended.
fn closest<'e>(
    context: &'e [Vec<ValidationError<'static>>],
) -> Option<&'e ValidationError<'static>> {
    let meant = |errors: &&Vec<ValidationError<'static>>| {
        let is_type =
            |error: &ValidationError<'_>| matches!(error.kind(), ValidationErrorKind::Type { .. });
        let depth = errors.first().map_or(0, |error| error.instance_path().as_str().len());
        (!errors.first().is_some_and(is_type), depth, std::cmp::Reverse(errors.len()))
    };
    context.iter().filter(|errors| !errors.is_empty()).max_by_key(meant)?.first()
}

fn type_words(kind: &TypeKind) -> String {
    let name = |kind: JsonType| match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    };
    match kind {
        TypeKind::Single(kind) => name(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

/// A value with its type.
fn described(value: &Value) -> String {
    match value {
        Value::Number(_) => format!("the number {}", shown(value)),
        Value::String(_) => format!("the string {}", shown(value)),
        _ => shown(value),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", clean_line(Untrusted::new(text), MAX_SHOWN))
}

fn named(argument: &str) -> String {
    format!("`{}`", clean_line(Untrusted::new(argument), MAX_SHOWN))
}

fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(MAX_CHOICES);
    let listed = items.take(MAX_CHOICES).collect::<Vec<_>>().join(", ");
    if more == 0 { listed } else { format!("{listed} … ({more} more)") }
}
