//! The subset of `OpenAPI` 3.0 that Gemini's function declarations support. Any other keyword makes
//! it reject the whole request.

use serde_json::{Map, Number, Value, json};

use super::provider::{flatten, merge};

/// Maximum number of choices listed in a description.
const MAX_CHOICES: usize = 20;

/// Translates a schema without references. Its nesting is bounded, and so is the recursion.
pub(super) fn gemini(mut schema: Map<String, Value>) -> Map<String, Value> {
    merge_all_of(&mut schema);
    let mut variants = variants(&mut schema);
    match variants.len() {
        0 => one(schema),
        1 => variants.pop().map(gemini).unwrap_or_default(),
        _ => several(variants),
    }
}

/// Merges the members of `allOf` below the schema itself.
fn merge_all_of(schema: &mut Map<String, Value>) {
    let Some(Value::Array(members)) = schema.remove("allOf") else { return };
    for member in members {
        if let Value::Object(mut member) = member {
            merge_all_of(&mut member);
            let own = std::mem::replace(schema, member);
            merge(schema, own);
        }
    }
}

/// Returns the alternatives of a schema, each complete: Gemini allows no keywords beside them.
/// Alternatives of an object only refine its properties, and are merged into it.
fn variants(schema: &mut Map<String, Value>) -> Vec<Map<String, Value>> {
    let is_object = schema.contains_key("properties")
        || schema.get("type").is_some_and(|kind| kind == "object");
    if is_object {
        flatten(schema);
        schema.insert("type".to_owned(), "object".into());
        return Vec::new();
    }
    let mut members = Vec::new();
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(alternatives)) = schema.remove(keyword) {
            members.extend(alternatives);
        }
    }
    match schema.remove("type") {
        Some(Value::Array(kinds)) if members.is_empty() => {
            members.extend(kinds.into_iter().map(|kind| json!({ "type": kind })));
        }
        Some(kind @ Value::String(_)) => {
            schema.insert("type".to_owned(), kind);
        }
        _ => {}
    }
    let count = members.len();
    members.retain(|member| member.get("type").is_none_or(|kind| kind != "null"));
    if members.len() < count {
        schema.insert("nullable".to_owned(), true.into());
    }
    let complete = |member| {
        let mut whole = schema.clone();
        match member {
            Value::Object(member) => merge(&mut whole, member),
            Value::Bool(false) => return None,
            _ => {}
        }
        Some(whole)
    };
    members.into_iter().filter_map(complete).collect()
}

fn several(variants: Vec<Map<String, Value>>) -> Map<String, Value> {
    let mut translated: Vec<Value> = Vec::new();
    for variant in variants {
        let mut variant = gemini(variant);
        // Flatten nested alternatives.
        let inner = match variant.remove("anyOf") {
            Some(Value::Array(inner)) => inner,
            _ => vec![Value::Object(variant)],
        };
        for one in inner {
            if !translated.contains(&one) {
                translated.push(one);
            }
        }
    }
    match translated.as_slice() {
        [Value::Object(only)] => only.clone(),
        _ => Map::from_iter([("anyOf".to_owned(), Value::Array(translated))]),
    }
}

/// Translates a schema of one type.
fn one(mut schema: Map<String, Value>) -> Map<String, Value> {
    let Some(kind) = kind_of(&schema) else { return anything(&schema) };
    let mut built = Map::new();
    let (kind, kept): (_, &[&str]) = match kind {
        "object" => (kind, &[]),
        "array" => (kind, &["minItems", "maxItems"]),
        "integer" | "number" => (kind, &["minimum", "maximum"]),
        "boolean" => (kind, &[]),
        "null" => {
            schema.insert("nullable".to_owned(), true.into());
            ("string", &[])
        }
        _ => ("string", &["minLength", "maxLength", "pattern"]),
    };
    built.insert("type".to_owned(), kind.into());
    for keyword in ["description", "nullable"].iter().chain(kept) {
        if let Some(value) = schema.remove(*keyword) {
            built.insert((*keyword).to_owned(), value);
        }
    }
    match kind {
        "object" => object(schema, &mut built),
        "array" => array(schema, &mut built),
        _ => scalar(kind, &schema, &mut built),
    }
    built
}

/// Returns the type of a schema, if it is declared or implied.
fn kind_of(schema: &Map<String, Value>) -> Option<&'static str> {
    const KINDS: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];
    if let Some(kind) = schema.get("type").and_then(Value::as_str) {
        return KINDS.into_iter().find(|known| *known == kind);
    }
    let has = |keyword: &str| schema.contains_key(keyword);
    let is_number = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
    if has("properties") {
        Some("object")
    } else if has("items") || has("prefixItems") {
        Some("array")
    } else if ["pattern", "minLength", "maxLength"].into_iter().any(has)
        || choices(schema).is_some_and(|choices| choices.iter().any(Value::is_string))
    {
        Some("string")
    } else {
        is_number.into_iter().any(has).then_some("number")
    }
}

/// Gemini requires a type. Arrays and objects would need more keywords, so this is as permissive as
/// possible.
fn anything(schema: &Map<String, Value>) -> Map<String, Value> {
    let kinds = ["string", "number", "boolean"].map(|kind| {
        let mut built = Map::from_iter([("type".to_owned(), kind.into())]);
        for keyword in ["description", "nullable"] {
            if let Some(value) = schema.get(keyword) {
                built.insert(keyword.to_owned(), value.clone());
            }
        }
        Value::Object(built)
    });
    Map::from_iter([("anyOf".to_owned(), Value::Array(kinds.to_vec()))])
}

fn object(mut schema: Map<String, Value>, built: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = schema.remove("properties") else { return };
    let translate = |(name, property)| match property {
        Value::Object(property) => Some((name, Value::Object(gemini(property)))),
        Value::Bool(true) => Some((name, Value::Object(gemini(Map::new())))),
        _ => None,
    };
    let properties: Map<String, Value> = properties.into_iter().filter_map(translate).collect();
    if let Some(Value::Array(mut required)) = schema.remove("required") {
        required.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
        if !required.is_empty() {
            built.insert("required".to_owned(), Value::Array(required));
        }
    }
    built.insert("properties".to_owned(), Value::Object(properties));
}

fn array(mut schema: Map<String, Value>, built: &mut Map<String, Value>) {
    let items = match (schema.remove("items"), schema.remove("prefixItems")) {
        (_, Some(Value::Array(places))) => {
            gemini(Map::from_iter([("anyOf".to_owned(), Value::Array(places))]))
        }
        (Some(Value::Object(items)), _) => gemini(items),
        _ => gemini(Map::new()),
    };
    built.insert("items".to_owned(), Value::Object(items));
}

fn scalar(kind: &str, schema: &Map<String, Value>, built: &mut Map<String, Value>) {
    let formats: &[&str] = match kind {
        "string" => &["enum", "date-time"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    let format = schema.get("format").filter(|format| formats.iter().any(|known| format == known));
    if let Some(format) = format {
        built.insert("format".to_owned(), format.clone());
    }
    if matches!(kind, "integer" | "number") {
        bound(kind, schema, built, ("exclusiveMinimum", "minimum", 1));
        bound(kind, schema, built, ("exclusiveMaximum", "maximum", -1));
    }
    let Some(choices) = choices(schema) else { return };
    if choices.contains(&Value::Null) {
        built.insert("nullable".to_owned(), true.into());
    }
    let choices = choices.iter().filter(|choice| !choice.is_null());
    let is_good = |choice: &Value| choice.as_str().is_some_and(|text| !text.is_empty());
    if kind == "string" && choices.clone().all(is_good) {
        let choices: Vec<Value> = choices.cloned().collect();
        if !choices.is_empty() {
            built.insert("enum".to_owned(), Value::Array(choices));
        }
        return;
    }
    // Gemini supports choices of strings only: others are listed in the description.
    let listed: Vec<String> = choices.take(MAX_CHOICES).map(Value::to_string).collect();
    let before = built.get("description").and_then(Value::as_str).unwrap_or_default();
    let words = format!("{before} One of: {}.", listed.join(", "));
    built.insert("description".to_owned(), words.trim_start().into());
}

/// Converts an exclusive bound to an inclusive one: the next integer, or the same bound.
fn bound(
    kind: &str,
    schema: &Map<String, Value>,
    built: &mut Map<String, Value>,
    (exclusive, inclusive, step): (&str, &str, i64),
) {
    let Some(limit) = schema.get(exclusive).filter(|_| !built.contains_key(inclusive)) else {
        return;
    };
    let next = limit.as_i64().filter(|_| kind == "integer").and_then(|at| at.checked_add(step));
    let limit = next.map_or_else(|| limit.clone(), |next| Value::Number(Number::from(next)));
    built.insert(inclusive.to_owned(), limit);
}

fn choices(schema: &Map<String, Value>) -> Option<Vec<Value>> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(choices)), _) => Some(choices.clone()),
        (_, Some(only)) => Some(vec![only.clone()]),
        _ => None,
    }
}
