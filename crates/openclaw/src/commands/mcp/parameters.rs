//! The arguments of a tool as rows of a table. Everything in a schema is untrusted.

use std::fmt::Write as _;

use openclaw_content::{Untrusted, clean_line};
use serde_json::{Map, Value};

/// The maximum length of a name or type.
const NAME_CHARS: usize = 60;
/// The maximum length of a description.
const DESCRIPTION_CHARS: usize = 1_000;
/// The maximum number of rows.
const MAX_ROWS: usize = 200;
/// The maximum nesting of objects that are shown.
const MAX_DEPTH: usize = 4;
/// The maximum number of allowed values in a row.
const MAX_VALUES: usize = 12;

/// One argument.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParameterRow {
    /// Its name; of a member of an object `object.member`.
    pub(super) name: String,
    pub(super) kind: String,
    /// Whether it is required, or its default.
    pub(super) remark: String,
    pub(super) description: String,
}

/// Returns a row for each argument, required ones first, and for the members of objects.
pub(super) fn rows(schema: &Value) -> Vec<ParameterRow> {
    let mut rows = Vec::new();
    add("", schema, schema, MAX_DEPTH, &mut rows);
    rows
}

/// Returns the required arguments as they are written on the command line. One with a default value
/// need not be given.
pub(super) fn example(schema: &Value) -> String {
    let mut words = String::new();
    for (name, property) in members(schema, schema) {
        let property = resolved(property, schema);
        let kind = kind(property, schema);
        let kind = kind.split(" (").next().unwrap_or_default();
        if is_required(name, schema) && property.get("default").is_none() {
            let _ = write!(words, " {}=<{kind}>", line(name, NAME_CHARS));
        }
    }
    words
}

fn add(prefix: &str, object: &Value, root: &Value, depth: usize, rows: &mut Vec<ParameterRow>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let mut properties = members(object, root);
    properties.sort_by_key(|(name, _)| !is_required(name, resolved(object, root)));
    for (key, property) in properties {
        if rows.len() == MAX_ROWS {
            return;
        }
        let property = resolved(property, root);
        let name = format!("{prefix}{}", line(key, NAME_CHARS));
        let remark = match property.get("default") {
            Some(default) => format!("default {}", line(&default.to_string(), NAME_CHARS)),
            None if is_required(key, resolved(object, root)) => "required".to_owned(),
            None => String::new(),
        };
        let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut description = line(description, DESCRIPTION_CHARS);
        if let Some(values) = values(property) {
            let separator = match description.chars().last() {
                None => "",
                Some('.' | '!' | '?' | ':') => " ",
                Some(_) => ". ",
            };
            let _ = write!(description, "{separator}One of {values}.");
        }
        rows.push(ParameterRow {
            name: name.clone(),
            kind: kind(property, root),
            remark,
            description,
        });
        let inner = resolved(property.get("items").unwrap_or(property), root);
        let list = if property.get("items").is_some() { "[]" } else { "" };
        add(&format!("{name}{list}."), inner, root, depth, rows);
    }
}

fn members<'s>(object: &'s Value, root: &'s Value) -> Vec<(&'s String, &'s Value)> {
    let properties = resolved(object, root).get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::iter).collect()
}

fn is_required(name: &str, object: &Value) -> bool {
    let required = object.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)))
}

/// Follows a reference inside of the schema, and a choice between a type and null.
fn resolved<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let pointer = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'));
    let schema = pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema);
    let is_null = |it: &Value| it.get("type").and_then(Value::as_str) == Some("null");
    let has_properties = schema.get("properties").is_some();
    match schema.get("anyOf").and_then(Value::as_array).map(|it| &it[..]) {
        // The choice itself has the description and the default.
        Some([one, null])
            if is_null(null) && one.get("properties").is_some() && !has_properties =>
        {
            one
        }
        _ => schema,
    }
}

/// Describes the type of a value: `string`, `list of number`, `string or null`.
fn kind(schema: &Value, root: &Value) -> String {
    let schema = resolved(schema, root);
    let named = |kind: &str| match kind {
        "array" => match schema.get("items") {
            Some(items) if items.get("items").is_none() => {
                format!("list of {}", kind_or_value(resolved(items, root)))
            }
            _ => "list".to_owned(),
        },
        other => line(other, NAME_CHARS),
    };
    // That of a number is an internal matter of the server.
    let is_text = schema.get("type").is_none_or(|kind| kind.to_string().contains("string"));
    let format = schema.get("format").and_then(Value::as_str).filter(|_| is_text);
    let format = format.map(|format| format!(" ({})", line(format, NAME_CHARS)));
    let kinds: Vec<String> = match schema.get("type") {
        Some(Value::String(kind)) => vec![named(kind)],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(named).collect(),
        _ => {
            let variants = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array());
            let mut kinds: Vec<String> =
                variants.flatten().map(|it| kind_or_value(resolved(it, root))).collect();
            kinds.dedup();
            kinds
        }
    };
    match kinds.is_empty() {
        true => "any".to_owned(),
        false => kinds.join(" or ") + &format.unwrap_or_default(),
    }
}

/// The type of a schema, without following it further.
fn kind_or_value(schema: &Value) -> String {
    match (schema.get("type"), schema.get("const")) {
        (Some(Value::String(kind)), _) => {
            line(if kind == "array" { "list" } else { kind }, NAME_CHARS)
        }
        (_, Some(value)) => line(&value.to_string(), NAME_CHARS),
        _ => "any".to_owned(),
    }
}

/// Lists the allowed values.
fn values(schema: &Value) -> Option<String> {
    let items = schema.get("items").filter(|_| schema.get("enum").is_none()).unwrap_or(schema);
    let values = items.get("enum").and_then(Value::as_array).filter(|it| !it.is_empty())?;
    let mut words: Vec<String> = values
        .iter()
        .take(MAX_VALUES)
        .map(|value| match value {
            Value::String(text) => line(text, NAME_CHARS),
            other => line(&other.to_string(), NAME_CHARS),
        })
        .collect();
    if values.len() > MAX_VALUES {
        words.push(format!("{} more", values.len() - MAX_VALUES));
    }
    Some(words.join(", "))
}

fn line(text: &str, chars: usize) -> String {
    clean_line(Untrusted::new(text), chars)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(schema: &Value) -> Vec<String> {
        let row = |row: ParameterRow| [row.name, row.kind, row.remark, row.description].join("|");
        rows(schema).into_iter().map(row).collect()
    }

    #[test]
    fn arguments_are_shown_with_their_types_required_ones_first() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": { "type": "integer", "default": 5, "description": "How many." },
                "scale": { "type": "string", "description": "The scale", "enum": ["a"] },
                "mode": { "type": "string", "enum": ["a", "b"] },
                "tags": { "type": "array", "items": { "type": "string" } },
                "query": { "type": "string", "description": "What to\nsearch" },
                "since": { "type": ["string", "null"], "format": "date" },
                "either": { "anyOf": [{ "type": "string" }, { "type": "number" }] },
                "free": {},
            },
            "required": ["query"],
        });
        assert_eq!(
            shown(&schema),
            [
                "query|string|required|What to search",
                "limit|integer|default 5|How many.",
                "scale|string||The scale. One of a.",
                "mode|string||One of a, b.",
                "tags|list of string||",
                "since|string or null (date)||",
                "either|string or number||",
                "free|any||",
            ]
        );
        assert_eq!(example(&schema), " query=<string>");
        let scale = json!({ "type": "string", "default": "css" });
        let schema = json!({ "properties": { "scale": scale }, "required": ["scale"] });
        assert_eq!(example(&schema), "", "the default value is filled in");
    }

    #[test]
    fn members_of_objects_and_references_are_followed_to_a_depth() {
        let schema = json!({
            "$defs": { "P": { "type": "object", "required": ["x"], "properties": {
                "x": { "type": "number" }, "next": { "$ref": "#/$defs/P" } } } },
            "properties": {
                "at": { "$ref": "#/$defs/P" },
                "list": { "type": "array", "items": { "$ref": "#/$defs/P" } },
            },
        });
        let shown = shown(&schema);
        assert_eq!(shown[..2], ["at|object||", "at.x|number|required|"]);
        assert!(shown.contains(&"list[].x|number|required|".to_owned()), "{shown:?}");
        assert!(shown.len() < 20, "{shown:?}");
        assert!(rows(&json!(true)).is_empty());
    }
}
