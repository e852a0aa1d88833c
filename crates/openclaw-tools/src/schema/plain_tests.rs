//! The fast path accepts only valid arguments, and only simple schemas.

use proptest::prelude::*;
use serde_json::json;

use super::super::Validator;
use super::*;

fn plain(schema: &Value) -> Option<Plain> {
    Plain::of(schema.as_object().unwrap())
}

fn fits(schema: &Value, arguments: &str) -> bool {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    plain(schema).unwrap().fits(&arguments)
}

/// A typical schema.
fn usual() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "title": "Arguments",
        "properties": {
            "path": {"type": "string", "minLength": 2, "maxLength": 4, "description": "Where."},
            "mode": {"enum": ["read", "write"], "default": "read"},
            "page": {"type": "integer", "minimum": 1, "maximum": 100},
            "ratio": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            "deep": {
                "type": ["object", "null"],
                "properties": {"a": {"type": "boolean"}},
                "additionalProperties": false,
            },
            "any": {},
        },
        "required": ["path"],
    })
}

#[test]
fn what_fits_is_seen_at_once() {
    for arguments in [
        r#"{"path":"abc"}"#,
        r#"{"path":"äöü漢","mode":"write","page":100,"ratio":0.5}"#,
        r#"{"path":"ab","tags":["x","y"],"when":null,"deep":{"a":true},"any":[{"b":1.5}]}"#,
        r#"{"path":"ab","when":"now","deep":null,"other":{"c":[]}}"#,
    ] {
        assert!(fits(&usual(), arguments), "{arguments}");
    }
}

#[test]
fn invalid_arguments_do_not_take_the_fast_path() {
    for arguments in [
        "{}",
        "[]",
        r#"{"path":"a"}"#,
        r#"{"path":"abcde"}"#,
        r#"{"path":"ä"}"#,
        r#"{"path":1}"#,
        r#"{"path":"ab","mode":"append"}"#,
        r#"{"path":"ab","mode":1}"#,
        r#"{"path":"ab","page":0}"#,
        r#"{"path":"ab","page":101}"#,
        r#"{"path":"ab","page":18446744073709551615}"#,
        r#"{"path":"ab","page":1.5}"#,
        r#"{"path":"ab","tags":["x","y","z"]}"#,
        r#"{"path":"ab","tags":[1]}"#,
        r#"{"path":"ab","when":1}"#,
        r#"{"path":"ab","deep":{"b":true}}"#,
        r#"{"path":"ab","path":1}"#,
        r#"{"path":1,"path":"ab"}"#,
    ] {
        assert!(!fits(&usual(), arguments), "{arguments}");
    }
}

#[test]
fn nesting_without_end_is_left_to_others() {
    let deep = format!(r#"{{"path":"ab","any":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    assert!(!fits(&usual(), &deep));
}

#[test]
fn a_schema_that_says_more_is_not_plain() {
    for schema in [
        json!({"properties": {}}),
        json!({"type": "string"}),
        json!({"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"}),
        json!({"type": "object", "required": ["a"], "additionalProperties": false}),
        json!({"type": "object", "required": ["a", "a"]}),
        json!({"type": "object", "minProperties": 1}),
        json!({"type": "object", "description": 1}),
        json!({"type": "object", "anyOf": [{"required": ["a"]}]}),
        json!({"type": "object", "properties": {"a": {"pattern": "^a"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
        json!({"type": "object", "properties": {"a": {"type": "strin"}}}),
        json!({"type": "object", "properties": {"a": {"enum": []}}}),
        json!({"type": "object", "properties": {"a": {"enum": [1]}}}),
        json!({"type": "object", "properties": {"a": {"enum": ["x"], "const": "y"}}}),
        json!({"type": "object", "properties": {"a": {"minimum": 0.5}}}),
        json!({"type": "object", "properties": {"a": {"items": [{"type": "string"}]}}}),
        json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "string"}]}}}),
        json!({"type": "object", "properties": {"a": true}}),
    ] {
        assert!(plain(&schema).is_none(), "{schema}");
    }
    let large = json!({"type": "object", "description": "x".repeat(1024 * 1024)});
    assert!(plain(&large).is_none());
}

/// Values close to what the schemas below accept.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        (-3.0..4.0).prop_map(|number: f64| json!((number * 2.0).round() / 2.0)),
        "[aä]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!({"type": "string"})),
        Just(json!({"type": ["integer", "null"], "minimum": -1, "maximum": 2})),
        Just(json!({"type": "number", "maximum": 1})),
        Just(json!({"type": "number"})),
        Just(json!({"minLength": 1, "maxLength": 3})),
        Just(json!({"enum": ["a", "aa"]})),
        Just(json!({"const": "ä"})),
        Just(json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "null"}]})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let object = |(properties, required, others): (Vec<(String, Value)>, bool, bool)| {
            let properties: Map<String, Value> = properties.into_iter().collect();
            let names: Vec<&String> = properties.keys().filter(|_| required).collect();
            json!({"type": "object", "required": names, "properties": properties,
                "additionalProperties": others})
        };
        let properties = prop::collection::vec(("[abc]", inner.clone()), 0..3);
        prop_oneof![
            inner.prop_map(|items| json!({"type": "array", "items": items, "minItems": 1})),
            (properties, any::<bool>(), any::<bool>()).prop_map(object),
        ]
    })
}

proptest! {
    #[test]
    fn what_fits_plainly_is_valid(schema in schemas(), arguments in values()) {
        let schema = json!({"type": "object", "properties": {"a": schema}, "required": ["a"]});
        let arguments = json!({ "a": arguments });
        let plain = plain(&schema).unwrap();
        let raw = serde_json::value::to_raw_value(&arguments).unwrap();
        let validator = Validator::compile(schema.as_object().unwrap()).unwrap();
        let is_valid = validator.check(&arguments).is_ok();
        let fits = plain.fits(&raw);
        prop_assert!(is_valid || !fits, "{} {}", schema, arguments);
        // Only floating-point numbers are left to the validator.
        let has_parts = arguments.to_string().contains('.');
        prop_assert!(fits || !is_valid || has_parts, "{} {}", schema, arguments);
    }
}
