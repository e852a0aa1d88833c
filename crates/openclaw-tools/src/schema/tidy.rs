//! Normalizes a schema: bounded in size, and without external references.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Draft;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::Unusable;
use super::shape::{for_each_child, for_each_subschema_mut};

/// Maximum weight of a schema: about its length as text.
pub(super) const MAX_WEIGHT: usize = 512 * 1024;
/// Maximum nesting of values, the same as for parsing JSON.
const MAX_DEPTH: usize = 128;
/// Weight of every value, in addition to its text.
const VALUE_WEIGHT: usize = 4;

/// A normalized schema: each `$ref` is `#` or `#/…` and refers to a schema in it; it has no `$id`,
/// no anchors, no comments.
#[derive(Debug)]
pub(super) struct NormalizedSchema {
    pub(super) root: Value,
    /// The declared draft.
    pub(super) draft: Option<Draft>,
    /// Number of broken or external references, which were dropped.
    pub(super) dropped_refs: usize,
}

/// Adds the weight of a value; fails if it is too deep or too heavy.
pub(super) fn weigh(value: &Value, depth: usize, so_far: &mut usize) -> Result<(), Unusable> {
    if depth > MAX_DEPTH {
        return Err(Unusable::TooDeep);
    }
    *so_far += VALUE_WEIGHT;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => *so_far += text.len(),
        Value::Array(items) => {
            for item in items {
                weigh(item, depth + 1, so_far)?;
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                *so_far += name.len();
                weigh(member, depth + 1, so_far)?;
            }
        }
    }
    if *so_far > MAX_WEIGHT { Err(Unusable::TooLarge) } else { Ok(()) }
}

/// Like [`weigh`], for the members of an object.
pub(super) fn weigh_all(schema: &Map<String, Value>) -> Result<(), Unusable> {
    let mut so_far = 0;
    for (name, member) in schema {
        so_far += name.len();
        weigh(member, 1, &mut so_far)?;
    }
    Ok(())
}

/// Normalizes a schema.
pub(super) fn tidy(schema: &Map<String, Value>) -> Result<NormalizedSchema, Unusable> {
    weigh_all(schema)?;
    let draft = schema.get("$schema").and_then(Value::as_str).and_then(draft_of);
    let mut root = Value::Object(schema.clone());
    let (mut pointers, mut anchors) = (BTreeSet::new(), BTreeMap::new());
    collect(&root, String::new(), &mut pointers, &mut anchors);
    let mut dropped_refs = 0;
    for_each_subschema_mut(&mut root, &mut |schema| {
        // If it were kept, references inside would be relative to it instead of the root.
        if schema.get("id").is_some_and(Value::is_string) {
            schema.remove("id");
        }
        for keyword in [
            "$schema",
            "$id",
            "$anchor",
            "$dynamicAnchor",
            "$recursiveAnchor",
            "$vocabulary",
            "$comment",
        ] {
            schema.remove(keyword);
        }
        let mut target = None;
        for keyword in ["$dynamicRef", "$recursiveRef", "$ref"] {
            let Some(reference) = schema.remove(keyword) else { continue };
            let found = reference.as_str().and_then(|text| resolve(text, &pointers, &anchors));
            dropped_refs += usize::from(found.is_none());
            target = found.or(target);
        }
        if let Some(pointer) = target {
            schema.insert("$ref".to_owned(), Value::String(fragment(&pointer)));
        }
    });
    Ok(NormalizedSchema { root, draft, dropped_refs })
}

/// Collects the pointers and anchors of all schemas.
fn collect(
    schema: &Value,
    pointer: String,
    pointers: &mut BTreeSet<String>,
    anchors: &mut BTreeMap<String, String>,
) {
    if let Value::Object(schema) = schema {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = schema.get(keyword).and_then(Value::as_str) {
                anchors.insert(name.to_owned(), pointer.clone());
            }
        }
        for_each_child(schema, |_, steps, child| {
            collect(child, join(&pointer, steps), pointers, anchors);
        });
    }
    pointers.insert(pointer);
}

/// Appends steps to a JSON pointer.
pub(super) fn join(pointer: &str, steps: &[&str]) -> String {
    let mut joined = pointer.to_owned();
    for step in steps {
        joined.push('/');
        joined.push_str(&step.replace('~', "~0").replace('/', "~1"));
    }
    joined
}

/// Resolves a reference to a pointer, if it refers to a schema in this document.
fn resolve(
    reference: &str,
    pointers: &BTreeSet<String>,
    anchors: &BTreeMap<String, String>,
) -> Option<String> {
    let fragment = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
    if let Some(pointer) = pointers.get(fragment.as_ref()) {
        return Some(pointer.clone());
    }
    anchors.get(fragment.as_ref()).cloned()
}

/// Formats a pointer as a reference: `#` and the percent-encoded pointer.
fn fragment(pointer: &str) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const NOT_IN_FRAGMENTS: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'%')
        .add(b'<')
        .add(b'>')
        .add(b'[')
        .add(b'\\')
        .add(b']')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'|')
        .add(b'}');
    format!("#{}", utf8_percent_encode(pointer, NOT_IN_FRAGMENTS))
}

/// Returns the pointer of a reference in a tidy schema.
pub(super) fn pointer_of(reference: &str) -> String {
    percent_decode_str(reference.trim_start_matches('#')).decode_utf8_lossy().into_owned()
}

fn draft_of(uri: &str) -> Option<Draft> {
    [
        ("draft-04", Draft::Draft4),
        ("draft-06", Draft::Draft6),
        ("draft-07", Draft::Draft7),
        ("2019-09", Draft::Draft201909),
        ("2020-12", Draft::Draft202012),
    ]
    .into_iter()
    .find_map(|(part, draft)| uri.contains(part).then_some(draft))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tidied(schema: &Value) -> NormalizedSchema {
        tidy(schema.as_object().unwrap()).unwrap()
    }

    #[test]
    fn references_lead_to_schemas_in_here_or_are_left_out() {
        let tidied = tidied(&json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "https://example.org/tool",
            "$defs": {"a b": {"$anchor": "name"}, "c/d": {"type": "string"}},
            "x-notes": {"type": "string"},
            "properties": {
                "$id": {"$ref": "#/$defs/a%20b"},
                "named": {"$ref": "#name"},
                "slash": {"$ref": "#/$defs/c~1d"},
                "root": {"$recursiveRef": "#"},
                "out": {"$ref": "https://example.org/other.json", "type": "integer"},
                "nowhere": {"$ref": "#/$defs/missing"},
                "no schema": {"$ref": "#/x-notes"},
            },
        }));
        assert_eq!(tidied.draft, Some(Draft::Draft7));
        assert_eq!(tidied.dropped_refs, 3);
        assert_eq!(
            tidied.root["properties"],
            json!({
                "$id": {"$ref": "#/$defs/a%20b"},
                "named": {"$ref": "#/$defs/a%20b"},
                "slash": {"$ref": "#/$defs/c~1d"},
                "root": {"$ref": "#"},
                "out": {"type": "integer"},
                "nowhere": {},
                "no schema": {},
            }),
        );
        assert!(tidied.root.get("$id").is_none() && tidied.root.get("$schema").is_none());
    }

    #[test]
    fn what_is_too_large_or_too_deep_is_refused() {
        let large = json!({"description": "x".repeat(MAX_WEIGHT)});
        assert_eq!(tidy(large.as_object().unwrap()).unwrap_err(), Unusable::TooLarge);
        let mut deep = json!({});
        for _ in 0..=MAX_DEPTH {
            deep = json!({"not": deep});
        }
        assert_eq!(tidy(deep.as_object().unwrap()).unwrap_err(), Unusable::TooDeep);
    }
}
