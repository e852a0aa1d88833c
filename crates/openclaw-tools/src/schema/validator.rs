//! Validates arguments against the schema of a tool (B4).

use jsonschema::{Draft, PatternOptions};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Unusable;
use super::cost::{Cost, MAX_STEPS};
use super::shape::for_each_subschema_mut;
use super::tidy::{NormalizedSchema, tidy};
use super::violations::{ValidatedKind, Violations};

/// Maximum memory of a compiled `pattern`, in bytes.
const MAX_PATTERN: usize = 512 * 1024;
/// Above this cost only the first violation is reported.
const STEPS_FOR_ALL_VIOLATIONS: u64 = 1 << 16;

/// Validates arguments against one schema.
///
/// Arguments that exceed its limits are accepted: nested deeper than 64 levels, or too costly to
/// validate. The server validates them as well.
///
/// ```
/// use openclaw_tools::schema::Validator;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
/// let validator = Validator::compile(schema.as_object().ok_or("no object")?)?;
/// assert!(validator.check(&json!({"path": "a.txt"})).is_ok());
/// let violations = validator.check(&json!({"path": 5})).unwrap_err();
/// assert_eq!(violations.to_string(), "/path must be a string, but is the number 5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Validator {
    /// `None` if every object is valid.
    rules: Option<Rules>,
    dropped_refs: usize,
    has_lost_patterns: bool,
}

/// What to do with `format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Formats {
    Ignored,
    Checked,
}

#[derive(Debug)]
struct Rules {
    validator: jsonschema::Validator,
    cost: Cost,
}

impl Validator {
    /// Compiles a schema. Without `$schema`, draft 2020-12 is tried first, then older drafts.
    ///
    /// External and broken references are dropped; so are all `pattern`s if one of them is not a
    /// plain regular expression. All other keywords apply.
    ///
    /// # Errors
    /// If it is invalid, too large, too deep or infinite.
    pub fn compile(schema: &Map<String, Value>) -> Result<Self, Unusable> {
        Self::compile_adjusted(schema, |_| {}, Formats::Ignored)
    }

    /// Like [`compile`](Self::compile), for the answer of a user: a `format`, such as that of a date,
    /// applies, too. A program is free to ignore it, but a user may be asked again.
    ///
    /// # Errors
    /// As for [`compile`](Self::compile).
    pub fn compile_for_answers(schema: &Map<String, Value>) -> Result<Self, Unusable> {
        Self::compile_adjusted(schema, |_| {}, Formats::Checked)
    }

    /// Like [`compile`](Self::compile), for the arguments of a call: a required property with a
    /// `default` may be absent, because the server fills it in.
    ///
    /// # Errors
    /// As for [`compile`](Self::compile).
    pub fn compile_for_arguments(schema: &Map<String, Value>) -> Result<Self, Unusable> {
        let adjust = |root: &mut Value| for_each_subschema_mut(root, &mut allow_defaults);
        Self::compile_adjusted(schema, adjust, Formats::Ignored)
    }

    fn compile_adjusted(
        schema: &Map<String, Value>,
        adjust: fn(&mut Value),
        formats: Formats,
    ) -> Result<Self, Unusable> {
        if is_any_object(schema) {
            return Ok(Self { rules: None, dropped_refs: 0, has_lost_patterns: false });
        }
        let mut tidy = tidy(schema)?;
        adjust(&mut tidy.root);
        let cost = Cost::of(&tidy)?;
        let dropped_refs = tidy.dropped_refs;
        let (validator, has_lost_patterns) = match build(&tidy, formats) {
            Ok(validator) => (validator, false),
            Err(first) => {
                if !drop_patterns(&mut tidy.root) {
                    return Err(first);
                }
                (build(&tidy, formats).map_err(|_| first)?, true)
            }
        };
        Ok(Self { rules: Some(Rules { validator, cost }), dropped_refs, has_lost_patterns })
    }

    /// Checks that a schema is within limits, terminates, and declares known types, at a fraction
    /// of the cost of compiling it. A schema that passes may still be invalid.
    ///
    /// # Errors
    /// If it is too large, too deep or infinite, or declares an unknown type.
    pub fn look_at(schema: &Map<String, Value>) -> Result<(), Unusable> {
        if is_any_object(schema) {
            return Ok(());
        }
        let mut tidy = tidy(schema)?;
        Cost::of(&tidy)?;
        let mut names_types = true;
        for_each_subschema_mut(&mut tidy.root, &mut |schema| {
            names_types &= schema.get("type").is_none_or(names_type);
        });
        let nonsense = || Unusable::Invalid("`type` is not a known type".to_owned());
        if names_types { Ok(()) } else { Err(nonsense()) }
    }

    /// Returns the number of external or broken references, which are not followed.
    pub fn dropped_refs(&self) -> usize {
        self.dropped_refs
    }

    /// Returns whether `pattern`s are ignored because one of them is not a plain regular
    /// expression.
    pub fn has_lost_patterns(&self) -> bool {
        self.has_lost_patterns
    }

    /// Returns whether every object is valid.
    pub(crate) fn accepts_any_object(&self) -> bool {
        self.rules.is_none()
    }

    /// Validates arguments.
    ///
    /// # Errors
    /// The violations, if they are invalid.
    pub fn check(&self, arguments: &Value) -> Result<(), Violations> {
        self.check_as(ValidatedKind::Arguments, arguments)
    }

    fn check_as(&self, subject: ValidatedKind, value: &Value) -> Result<(), Violations> {
        let Some(Rules { validator, cost }) = &self.rules else {
            let is_object = value.is_object();
            return if is_object { Ok(()) } else { Err(Violations::not_an_object(subject)) };
        };
        let (depth, parts) = measure(value);
        let steps = cost.steps(depth, parts);
        if steps > MAX_STEPS || validator.is_valid(value) {
            return Ok(());
        }
        if steps > STEPS_FOR_ALL_VIOLATIONS {
            return validator.validate(value).map_err(|error| Violations::new(subject, [error]));
        }
        Err(Violations::new(subject, validator.iter_errors(value)))
    }

    /// Validates raw arguments. If every object is valid, nothing is parsed.
    ///
    /// # Errors
    /// The violations, if they are invalid.
    pub fn check_raw(&self, arguments: &RawValue) -> Result<(), Violations> {
        self.check_raw_as(ValidatedKind::Arguments, arguments)
    }

    /// Like [`check_raw`](Self::check_raw), for the structured content of a result.
    ///
    /// # Errors
    /// The violations, if it is invalid.
    pub fn check_result(&self, structured: &RawValue) -> Result<(), Violations> {
        self.check_raw_as(ValidatedKind::Result, structured)
    }

    fn check_raw_as(&self, subject: ValidatedKind, raw: &RawValue) -> Result<(), Violations> {
        // Raw JSON starts with its first token.
        if self.rules.is_none() {
            let is_object = raw.get().starts_with('{');
            return if is_object { Ok(()) } else { Err(Violations::not_an_object(subject)) };
        }
        match serde_json::from_str(raw.get()) {
            Ok(value) => self.check_as(subject, &value),
            Err(_) => Err(Violations::unreadable(subject)),
        }
    }
}

/// Returns whether the value of `type` is a known type, or several.
fn names_type(value: &Value) -> bool {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    match value {
        Value::String(name) => TYPES.contains(&name.as_str()),
        // In draft 4 it may contain schemas.
        Value::Array(items) => items.iter().all(|item| item.is_object() || names_type(item)),
        _ => false,
    }
}

/// Returns whether a schema accepts every object, and nothing else.
fn is_any_object(schema: &Map<String, Value>) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let says_nothing = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "type" => value == "object",
        "title" | "description" | "$schema" | "$comment" => value.is_string(),
        "properties" | "required" => is_empty(value),
        "additionalProperties" => value == true || is_empty(value),
        _ => false,
    };
    schema.get("type").is_some() && schema.iter().all(says_nothing)
}

fn build(tidy: &NormalizedSchema, formats: Formats) -> Result<jsonschema::Validator, Unusable> {
    let only = tidy.draft.map(|draft| [draft; 1]);
    let all = [Draft::Draft202012, Draft::Draft7, Draft::Draft4];
    let mut first = None;
    for draft in only.as_ref().map_or(&all[..], |only| only) {
        let built = jsonschema::options()
            .with_draft(*draft)
            .offline()
            .should_validate_formats(formats == Formats::Checked)
            .with_pattern_options(
                PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN),
            )
            .build(&tidy.root);
        match built {
            Ok(validator) => return Ok(validator),
            Err(error) => {
                first.get_or_insert_with(|| Violations::of_schema(&error));
            }
        }
    }
    Err(Unusable::Invalid(first.unwrap_or_default()))
}

/// Removes properties with a `default` from `required`.
fn allow_defaults(schema: &mut Map<String, Value>) {
    let Some(Value::Array(mut required)) = schema.remove("required") else { return };
    let properties = schema.get("properties");
    let has_default = |name: &Value| {
        let property = name.as_str().and_then(|name| properties?.get(name));
        property.is_some_and(|property| property.get("default").is_some())
    };
    required.retain(|name| !has_default(name));
    // Draft 4 does not allow an empty list.
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
}

/// Removes all `pattern`s, and keywords that would be stricter without them. Returns whether there
/// were any.
fn drop_patterns(root: &mut Value) -> bool {
    let mut had_any = false;
    for_each_subschema_mut(root, &mut |schema| {
        had_any |= schema.remove("pattern").is_some();
        if schema.remove("patternProperties").is_some() {
            had_any = true;
            schema.remove("additionalProperties");
            schema.remove("unevaluatedProperties");
        }
    });
    had_any
}

/// Returns the depth of a value and the number of its parts. The parser has bounded the depth.
fn measure(value: &Value) -> (usize, usize) {
    fn add(value: &Value, depth: usize, deepest: &mut usize, parts: &mut usize) {
        *deepest = depth.max(*deepest);
        *parts += 1;
        match value {
            Value::Array(items) => {
                items.iter().for_each(|item| add(item, depth + 1, deepest, parts));
            }
            Value::Object(members) => {
                members.values().for_each(|member| add(member, depth + 1, deepest, parts));
            }
            _ => {}
        }
    }
    let (mut deepest, mut parts) = (0, 0);
    add(value, 0, &mut deepest, &mut parts);
    (deepest, parts)
}

#[cfg(test)]
#[path = "validator_tests.rs"]
mod tests;
