//! Converts arguments given as text to the types in the tool's schema.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Maximum nesting of references and variants.
const MAX_REFERENCES: usize = 16;

/// Adds text arguments to the arguments of a tool with this schema. A key that begins with `--` must
/// be one of the tool, which may be spelled with dashes instead of underscores or capitals.
///
/// # Errors
/// Names the argument that does not fit, is unknown or is given twice.
pub fn fit_texts(
    mut arguments: Map<String, Value>,
    texts: &BTreeMap<String, String>,
    schema: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    for (written, text) in texts {
        let key = &key_of(written, schema)?;
        let value = ExpectedValue::new(key, schema)
            .value(text)
            .map_err(|kind| format!("`{key}` expects {kind}; use `{key}:=…` to pass JSON"))?;
        if arguments.insert(key.clone(), value).is_some() {
            return Err(format!("`{key}` is given twice"));
        }
    }
    Ok(arguments)
}

/// Returns the name of an argument that was given as `--name`. Other names are returned as they are.
fn key_of(written: &str, schema: &Map<String, Value>) -> Result<String, String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let has = |key: &str| properties.is_some_and(|properties| properties.contains_key(key));
    let Some(name) = written.strip_prefix("--").filter(|_| !has(written)) else {
        return Ok(written.to_owned());
    };
    if has(name) {
        return Ok(name.to_owned());
    }
    let folded = |key: &str| key.replace(['-', '_'], "").to_lowercase();
    let names: Vec<&String> = properties.into_iter().flat_map(Map::keys).collect();
    let alike: Vec<&&String> = names.iter().filter(|key| folded(key) == folded(name)).collect();
    if let [only] = alike[..] {
        return Ok((**only).clone());
    }
    // A schema that names no property may take any.
    if names.is_empty() && schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    let similar = openclaw_config::nearest(name, &names);
    let similar = similar.map(|similar| format!("; did you mean `--{similar}`?"));
    Err(format!("the tool has no argument `{name}`{}", similar.unwrap_or_default()))
}

/// What a schema allows for a key.
#[derive(Debug, Default)]
struct ExpectedValue<'s> {
    types: BTreeSet<&'s str>,
    values: Vec<&'s Value>,
}

impl<'s> ExpectedValue<'s> {
    fn new(key: &str, schema: &'s Map<String, Value>) -> Self {
        let mut wanted = Self::default();
        let property = schema.get("properties").and_then(|properties| properties.get(key));
        if let Some(property) = property.or_else(|| schema.get("additionalProperties")) {
            wanted.add(property, schema, MAX_REFERENCES);
        }
        wanted
    }

    fn add(&mut self, schema: &'s Value, root: &'s Map<String, Value>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match schema.get("type") {
            Some(Value::String(kind)) => drop(self.types.insert(kind)),
            Some(Value::Array(kinds)) => self.types.extend(kinds.iter().filter_map(Value::as_str)),
            _ => {}
        }
        self.values.extend(schema.get("enum").and_then(Value::as_array).into_iter().flatten());
        self.values.extend(schema.get("const"));
        for key in ["anyOf", "oneOf", "allOf"] {
            let variants = schema.get(key).and_then(Value::as_array);
            variants.into_iter().flatten().for_each(|variant| self.add(variant, root, depth));
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        let path = reference.and_then(|reference| reference.strip_prefix("#/"));
        if let Some(there) = path.and_then(|path| find(path, root)) {
            self.add(there, root, depth);
        }
    }

    /// Converts the text to a value that fits. If the schema allows both a number and a string, a
    /// number is preferred.
    fn value(&self, text: &str) -> Result<Value, &'static str> {
        let spells = |value: &&&Value| match value {
            Value::String(known) => known == text,
            other => other.to_string() == text,
        };
        if let Some(value) = self.values.iter().find(spells) {
            return Ok((**value).clone());
        }
        let parsed = serde_json::from_str::<Value>(text.trim()).ok();
        let takes = |kind| self.types.contains(kind);
        if let Some(value) = parsed.filter(|value| {
            match value {
                Value::Number(_) => takes("number") || takes("integer"),
                Value::Bool(_) => takes("boolean"),
                Value::Array(_) => takes("array"),
                Value::Object(_) => takes("object"),
                // `null` is a text where a string is allowed.
                Value::Null => takes("null") && !takes("string"),
                Value::String(_) => false,
            }
        }) {
            return Ok(value);
        }
        let only = |kind| takes(kind) && !takes("string");
        match () {
            // The type is unknown or may be a string: left to validation.
            () if self.types.is_empty() || takes("string") => Ok(text.into()),
            () if only("integer") && !takes("number") => Err("a whole number"),
            () if only("number") => Err("a number"),
            () if only("boolean") => Err("true or false"),
            () if only("array") => Err("a list"),
            () if only("object") => Err("an object"),
            () => Ok(text.into()),
        }
    }
}

/// Resolves a JSON pointer, given without its leading `#/`.
fn find<'s>(path: &str, root: &'s Map<String, Value>) -> Option<&'s Value> {
    let mut parts = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    let first = root.get(&parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(&part))
}
