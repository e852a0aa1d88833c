//! Rebuilds a tidy schema: references are inlined, and only keywords that are well-formed in draft
//! 2020-12 are kept.

use serde_json::{Map, Number, Value};

use super::tidy::{NormalizedSchema, pointer_of, weigh};

/// Maximum nesting of schemas; deeper ones accept anything.
const MAX_NESTING: usize = 40;
/// Maximum nesting of references.
const MAX_REFERENCES: usize = 40;
/// Maximum weight of the result: references can make a small schema infinite. Beyond it, anything
/// is accepted.
const MAX_WEIGHT: usize = 256 * 1024;

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Rebuilds the schema.
pub(super) fn rebuild(tidy: &NormalizedSchema) -> Map<String, Value> {
    let mut rebuilder = Rebuilder { root: &tidy.root, following: Vec::new(), weight: 0 };
    match rebuilder.schema(&tidy.root, 0) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

struct Rebuilder<'t> {
    root: &'t Value,
    /// The references being inlined, which must not be followed again.
    following: Vec<String>,
    weight: usize,
}

impl Rebuilder<'_> {
    fn schema(&mut self, schema: &Value, nesting: usize) -> Value {
        let Value::Object(members) = schema else { return Value::Bool(*schema != false) };
        if nesting > MAX_NESTING || self.weight > MAX_WEIGHT {
            return anything(members);
        }
        let Some(reference) = members.get("$ref").and_then(Value::as_str) else {
            return Value::Object(self.members(members, nesting));
        };
        let pointer = pointer_of(reference);
        let target = self.root.pointer(&pointer);
        let own = self.members(members, nesting);
        let is_circular = pointer.is_empty() || self.following.contains(&pointer);
        let Some(target) = target.filter(|_| !is_circular) else {
            let target = target.and_then(Value::as_object).map(anything);
            return overlay(target.unwrap_or_default(), own);
        };
        if self.following.len() >= MAX_REFERENCES {
            return Value::Object(own);
        }
        self.following.push(pointer);
        let target = self.schema(target, nesting);
        self.following.pop();
        overlay(target, own)
    }

    fn members(&mut self, members: &Map<String, Value>, nesting: usize) -> Map<String, Value> {
        let mut built = Map::new();
        for (keyword, value) in members {
            if let Some((keyword, value)) = self.member(keyword, value, nesting + 1) {
                built.insert(keyword.to_owned(), value);
            }
        }
        modernize(members, &mut built);
        built
    }

    /// Returns a keyword with its value, if it is known and well-formed.
    fn member<'k>(
        &mut self,
        keyword: &'k str,
        value: &Value,
        nesting: usize,
    ) -> Option<(&'k str, Value)> {
        let built = match keyword {
            "properties" | "patternProperties" | "dependentSchemas" => {
                let named = value.as_object()?.iter().filter(|(_, value)| is_schema(value));
                let named = named.map(|(name, value)| {
                    self.weight += name.len();
                    (name.clone(), self.schema(value, nesting))
                });
                Value::Object(named.collect())
            }
            "items" | "additionalItems" if value.is_array() => {
                return (keyword == "items")
                    .then(|| self.list(value, nesting))
                    .flatten()
                    .map(|list| ("prefixItems", list));
            }
            "additionalProperties"
            | "unevaluatedProperties"
            | "propertyNames"
            | "items"
            | "unevaluatedItems"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else" => {
                if !is_schema(value) {
                    return None;
                }
                self.schema(value, nesting)
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.list(value, nesting)?,
            _ => plain(keyword, value)?,
        };
        self.charge(keyword, &built);
        Some((keyword, built))
    }

    fn list(&mut self, value: &Value, nesting: usize) -> Option<Value> {
        let items = value.as_array()?.iter().filter(|item| is_schema(item));
        let items: Vec<Value> = items.map(|item| self.schema(item, nesting)).collect();
        (!items.is_empty()).then_some(Value::Array(items))
    }

    /// Adds the weight of a keyword; schemas inside have been counted already.
    fn charge(&mut self, keyword: &str, value: &Value) {
        self.weight += keyword.len() + 4;
        if is_plain(keyword) {
            let mut weight = 0;
            // A value that is too large was rejected before.
            let _ = weigh(value, 0, &mut weight);
            self.weight += weight;
        }
    }
}

fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Bool(_))
}

/// Reduces a schema that cannot be inlined to its description.
fn anything(schema: &Map<String, Value>) -> Value {
    let description = schema.get("description").filter(|text| text.is_string());
    let mut left = Map::new();
    if let Some(description) = description {
        left.insert("description".to_owned(), description.clone());
    }
    Value::Object(left)
}

/// Merges the keywords beside a reference over its target.
fn overlay(target: Value, own: Map<String, Value>) -> Value {
    match target {
        Value::Object(mut target) => {
            super::provider::merge(&mut target, own);
            Value::Object(target)
        }
        Value::Bool(true) => Value::Object(own),
        _ => Value::Bool(false),
    }
}

/// Converts keywords of older drafts.
fn modernize(members: &Map<String, Value>, built: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if members.get(exclusive) == Some(&Value::Bool(true))
            && let Some(limit) = built.remove(bound)
        {
            built.insert(exclusive.to_owned(), limit);
        }
    }
    // Before 2020-12, the rest of an array was described by `additionalItems`.
    if members.get("items").is_some_and(Value::is_array) {
        let rest = members.get("additionalItems");
        if let Some(Value::Bool(rest)) = rest {
            built.insert("items".to_owned(), Value::Bool(*rest));
        }
    }
}

fn is_plain(keyword: &str) -> bool {
    matches!(
        keyword,
        "type"
            | "enum"
            | "const"
            | "default"
            | "examples"
            | "description"
            | "title"
            | "required"
            | "dependentRequired"
    )
}

/// Returns the value of a keyword that contains no schemas, if it is well-formed.
fn plain(keyword: &str, value: &Value) -> Option<Value> {
    let is_good = match keyword {
        "type" => return types(value),
        "required" => return value.as_array().map(|names| names_of(names)),
        "dependentRequired" => {
            let names = value.as_object()?.iter().filter_map(|(name, names)| {
                names.as_array().map(|names| (name.clone(), names_of(names)))
            });
            return Some(Value::Object(names.collect()));
        }
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
        "examples" => value.is_array(),
        "const" | "default" => true,
        "description" | "title" | "format" | "pattern" | "contentEncoding" | "contentMediaType" => {
            value.is_string()
        }
        "nullable" | "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => value.is_boolean(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|factor| factor > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => return whole(value),
        _ => false,
    };
    is_good.then(|| value.clone())
}

fn whole(value: &Value) -> Option<Value> {
    value.as_u64().map(|number| Value::Number(Number::from(number)))
}

fn types(value: &Value) -> Option<Value> {
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::String(_) => is_type(value).then(|| value.clone()),
        Value::Array(names) => {
            let mut known: Vec<Value> = Vec::new();
            for name in names.iter().filter(|name| is_type(name)) {
                if !known.contains(name) {
                    known.push(name.clone());
                }
            }
            match known.len() {
                0 => None,
                1 => known.pop(),
                _ => Some(Value::Array(known)),
            }
        }
        _ => None,
    }
}

/// Removes duplicates and values that are not strings.
fn names_of(names: &[Value]) -> Value {
    let mut seen = std::collections::BTreeSet::new();
    let names = names.iter().filter(|name| name.as_str().is_some_and(|name| seen.insert(name)));
    Value::Array(names.cloned().collect())
}
