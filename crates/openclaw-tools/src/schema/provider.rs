//! Adapts schemas to model providers (B3).
//!
//! A provider that rejects one schema rejects the whole conversation, without naming the tool. No
//! strictness is lost: arguments are validated against the original schema.

use serde_json::{Map, Value};

use super::gemini::gemini;
use super::rebuild::rebuild;
use super::tidy::tidy;
use super::{Unusable, for_each_subschema_mut};

/// Maximum length of a property name for Anthropic.
const MAX_PROPERTY_NAME: usize = 64;

/// The schemas that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaDialect {
    /// Draft 2020-12; no alternatives at the root; restricted property names.
    Anthropic,
    /// No alternatives, choices or negations at the root; every array has `items`.
    OpenAi,
    /// A small subset of `OpenAPI` 3.0.
    Gemini,
    /// Draft 2020-12 without references, for all other providers.
    Plain,
}

impl SchemaDialect {
    /// All dialects, in the order of their discriminants.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::Gemini, Self::Plain];
}

/// Adapts a schema to a provider: an object at the root, no references, no unsupported keywords.
/// Idempotent.
///
/// ```
/// use openclaw_tools::schema::{SchemaDialect, provider_schema};
/// use serde_json::json;
///
/// let schema = json!({
///     "$defs": {"id": {"type": ["integer", "null"], "exclusiveMinimum": 0}},
///     "properties": {"id": {"$ref": "#/$defs/id"}},
/// });
/// let schema = schema.as_object().ok_or("no object")?;
/// assert_eq!(
///     provider_schema(schema, SchemaDialect::Gemini)?,
///     json!({
///         "type": "object",
///         "properties": {"id": {"type": "integer", "nullable": true, "minimum": 1}},
///     }),
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If it is not the schema of an object, or cannot be adapted.
pub fn provider_schema(
    schema: &Map<String, Value>,
    dialect: SchemaDialect,
) -> Result<Value, Unusable> {
    let mut root = rebuild(&tidy(schema)?);
    be_an_object(&mut root)?;
    match dialect {
        SchemaDialect::Plain => {}
        SchemaDialect::Anthropic => {
            flatten_root(&mut root);
            plain_names(&mut root)?;
        }
        SchemaDialect::OpenAi => {
            flatten_root(&mut root);
            for keyword in ["enum", "const", "not", "if", "then", "else"] {
                root.remove(keyword);
            }
        }
        SchemaDialect::Gemini => {
            flatten_root(&mut root);
            root = gemini(root);
        }
    }
    let mut root = order(root);
    if dialect == SchemaDialect::OpenAi {
        for_each_subschema_mut(&mut root, &mut |schema| {
            if schema.get("type").is_some_and(|kind| kind == "array") {
                schema.entry("items").or_insert_with(|| Value::Object(Map::new()));
            }
        });
    }
    Ok(root)
}

/// Puts `type` and `properties` first, as is customary.
fn order(mut root: Map<String, Value>) -> Value {
    let mut ordered = Map::new();
    ordered.insert("type".to_owned(), "object".into());
    let properties = root.remove("properties").filter(Value::is_object);
    ordered.insert("properties".to_owned(), properties.unwrap_or_else(|| Map::new().into()));
    root.remove("type");
    ordered.extend(root);
    Value::Object(ordered)
}

fn be_an_object(root: &mut Map<String, Value>) -> Result<(), Unusable> {
    let is_object = match root.get("type") {
        None => true,
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if !is_object {
        return Err(Unusable::NotAnObject);
    }
    root.insert("type".to_owned(), "object".into());
    root.remove("nullable");
    Ok(())
}

/// Merges one schema over another: `properties` and `required` are combined; for all other keywords
/// the upper one counts.
pub(super) fn merge(lower: &mut Map<String, Value>, upper: Map<String, Value>) {
    for (keyword, value) in upper {
        match (keyword.as_str(), lower.get_mut(&keyword), value) {
            ("properties", Some(Value::Object(lower)), Value::Object(upper)) => lower.extend(upper),
            ("required", Some(Value::Array(lower)), Value::Array(upper)) => {
                for name in upper {
                    if !lower.contains(&name) {
                        lower.push(name);
                    }
                }
            }
            (_, _, value) => {
                lower.insert(keyword, value);
            }
        }
    }
}

/// Combines alternatives at the root into one object with the properties of all; required is what
/// all of them require.
fn flatten_root(root: &mut Map<String, Value>) {
    flatten(root);
    for keyword in ["allOf", "anyOf", "oneOf"] {
        root.remove(keyword);
    }
}

/// The nesting of schemas is bounded, and so is the recursion.
pub(super) fn flatten(schema: &mut Map<String, Value>) {
    for (keyword, are_all_meant) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
        let Some(Value::Array(members)) = schema.remove(keyword) else { continue };
        let members: Vec<Map<String, Value>> = members
            .into_iter()
            .filter_map(|member| match member {
                Value::Object(mut member) => {
                    flatten(&mut member);
                    Some(member)
                }
                _ => None,
            })
            .collect();
        if !are_all_meant {
            require_common(schema, &members);
        }
        for mut member in members {
            let mut taken = Map::new();
            let wanted: &[&str] =
                if are_all_meant { &["properties", "required"] } else { &["properties"] };
            for keyword in wanted {
                if let Some(value) = member.remove(*keyword) {
                    taken.insert((*keyword).to_owned(), value);
                }
            }
            // The schema's own keywords take precedence.
            let own = std::mem::replace(schema, taken);
            merge(schema, own);
        }
    }
}

/// Requires what every alternative requires.
fn require_common(schema: &mut Map<String, Value>, members: &[Map<String, Value>]) {
    let required = |member: &Map<String, Value>| {
        member.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let Some((first, others)) = members.split_first() else { return };
    let mut common = required(first);
    common.retain(|name| others.iter().all(|other| required(other).contains(name)));
    if !common.is_empty() {
        let mut upper = Map::new();
        upper.insert("required".to_owned(), Value::Array(common));
        merge(schema, upper);
    }
}

/// Anthropic accepts letters, digits, `_`, `.` and `-` in property names. Other properties are
/// dropped, if they are optional.
fn plain_names(root: &mut Map<String, Value>) -> Result<(), Unusable> {
    let fits = |name: &str| {
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        (1..=MAX_PROPERTY_NAME).contains(&name.len()) && name.chars().all(is_good)
    };
    let required = root.get("required").and_then(Value::as_array).into_iter().flatten();
    if let Some(name) = required.filter_map(Value::as_str).find(|name| !fits(name)) {
        let name = openclaw_content::clean_line(openclaw_content::Untrusted::new(name), 64);
        return Err(Unusable::PropertyName(name));
    }
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        properties.retain(|name, _| fits(name));
    }
    Ok(())
}

#[cfg(test)]
#[path = "provider_tests.rs"]
pub(super) mod tests;
