//! Verdicts, messages and limits of the validator.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn compile(schema: &Value) -> Result<Validator, Unusable> {
    Validator::compile(schema.as_object().unwrap())
}

fn says(schema: &Value, arguments: &Value) -> String {
    match compile(schema).unwrap().check(arguments) {
        Ok(()) => String::new(),
        Err(violations) => violations.to_string(),
    }
}

#[test]
fn a_violation_says_where_and_what() {
    let schema = json!({
        "type": "object",
        "required": ["path"],
        "additionalProperties": false,
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "mode": {"enum": ["read", "write"]},
            "limit": {"type": "integer", "maximum": 100},
            "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
            "where": {"anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"line": {"type": "integer"}}},
            ]},
        },
    });
    for (arguments, expected) in [
        (json!({"path": "a", "mode": "read", "limit": 3, "tags": ["x"], "where": {"line": 1}}), ""),
        (json!({}), "missing argument `path`"),
        (json!([]), "the set of arguments must be an object, but is an array of 0"),
        (json!({"path": ""}), "/path must have at least 1 character"),
        (json!({"path": "a", "file": 1}), "unknown argument `file`"),
        (
            json!({"path": "a", "mode": "append"}),
            "/mode must be one of \"read\", \"write\", but is the string \"append\"",
        ),
        (
            json!({"path": "a", "limit": 1.5}),
            "/limit must be a whole number, but is the number 1.5",
        ),
        (json!({"path": "a", "limit": 101}), "/limit must be at most 100"),
        (json!({"path": "a", "tags": ["x", "Y"]}), "/tags/1 must match the pattern \"^[a-z]+$\""),
        (
            json!({"path": "a", "where": {"line": "1"}}),
            "/where matches none of its 2 allowed forms; for the closest, \
             /where/line must be a whole number, but is the string \"1\"",
        ),
    ] {
        assert_eq!(says(&schema, &arguments), expected, "{arguments}");
    }
}

#[test]
fn alternatives_for_all_arguments_are_described() {
    let schema = json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let text = says(&schema, &json!({}));
    let (forms, closest) = text.split_once("; for the closest, ").unwrap();
    assert_eq!(forms, "the set of arguments matches none of its 2 allowed forms");
    assert!(closest.starts_with("it must have the property "), "{text}");
}

#[test]
fn a_required_argument_with_a_default_may_be_absent() {
    let schema = json!({
        "type": "object",
        "required": ["scale", "path", "more"],
        "properties": {
            "scale": {"type": "string", "enum": ["css", "device"], "default": "css"},
            "path": {"type": "string"},
            "more": {"type": "object", "required": ["deep"],
                "properties": {"deep": {"type": "integer", "default": 1}}},
        },
    });
    let validator = Validator::compile_for_arguments(schema.as_object().unwrap()).unwrap();
    let says = |arguments| validator.check(&arguments).map_err(|it| it.to_string());
    assert_eq!(says(json!({"path": "a", "more": {}})), Ok(()));
    assert_eq!(says(json!({"more": {}})), Err("missing argument `path`".to_owned()));
    assert!(says(json!({"path": "a", "more": {}, "scale": 2})).is_err());
    // A result must be complete.
    assert!(compile(&schema).unwrap().check(&json!({"path": "a", "more": {"deep": 1}})).is_err());
}

#[test]
fn many_violations_are_a_few_lines_and_a_number() {
    let properties: Map<String, Value> =
        (0..40).map(|at| (format!("{at}{}", "x".repeat(400)), json!({"type": "string"}))).collect();
    let arguments = properties.keys().map(|name| (name.clone(), json!(5))).collect();
    let text = says(&json!({"properties": properties}), &Value::Object(arguments));
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(text.ends_with("… and 35 more") && text.chars().count() <= 1_500, "{text}");
}

#[test]
fn text_from_a_schema_is_cleaned() {
    let text = says(
        &json!({"properties": {"a": {"enum": ["<|im_start|>\n\u{202e}x"]}}}),
        &json!({"a": 1}),
    );
    assert_eq!(text, "/a must be one of \"[removed token] x\", but is the number 1");
}

#[test]
fn a_schema_without_constraints_is_not_even_parsed_for() {
    let validator =
        compile(&json!({"type": "object", "properties": {}, "description": "x"})).unwrap();
    assert!(validator.rules.is_none());
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    assert!(validator.check_raw(&raw("{\"a\": 1}")).is_ok());
    assert!(validator.check_raw(&raw("[1]")).is_err());
    assert!(validator.check(&json!(1)).is_err());
}

#[test]
fn raw_arguments_are_checked_too() {
    let validator = compile(&json!({"required": ["a"]})).unwrap();
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    assert!(validator.check_raw(&raw(r#"{"a": 1}"#)).is_ok());
    let text = validator.check_raw(&raw(r#"{"b": 1}"#)).unwrap_err().to_string();
    assert_eq!(text, "missing argument `a`");
}

#[test]
fn older_drafts_are_understood_with_and_without_their_name() {
    for schema in [
        json!({"properties": {"a": {"items": [{"type": "string"}, {"type": "integer"}]}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"items": [{"type": "string"}, {"type": "integer"}]}}}),
    ] {
        let validator = compile(&schema).unwrap();
        assert!(validator.check(&json!({"a": ["x", 1]})).is_ok());
        assert!(validator.check(&json!({"a": [1, "x"]})).is_err());
    }
    let four = json!({"properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}});
    assert_eq!(says(&four, &json!({"a": 1})), "/a must be more than 1");
}

#[test]
fn references_out_of_the_schema_are_left_out_and_the_rest_holds() {
    let schema = json!({"properties": {
        "a": {"$ref": "https://example.org/a.json", "type": "string"},
        "b": {"$ref": "file:///etc/passwd"},
        "c": {"$ref": "#/$defs/nothing"},
    }});
    let validator = compile(&schema).unwrap();
    assert_eq!(validator.dropped_refs(), 3);
    assert!(validator.check(&json!({"a": "x", "b": 1, "c": 2})).is_ok());
    assert!(validator.check(&json!({"a": 1})).is_err());
}

#[test]
fn patterns_that_need_backtracking_are_left_out_and_the_rest_holds() {
    let schema = json!({"properties": {"a": {"type": "string", "pattern": "^(?!x)"}}});
    let validator = compile(&schema).unwrap();
    assert!(validator.has_lost_patterns());
    assert!(validator.check(&json!({"a": "x"})).is_ok());
    assert!(validator.check(&json!({"a": 1})).is_err());
}

#[test]
fn a_catastrophic_pattern_is_harmless() {
    let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
    let arguments = json!({"a": format!("{}b", "a".repeat(100_000))});
    assert_eq!(says(&schema, &arguments), "/a must match the pattern \"^(a+)+$\"");
    let huge = json!({"properties": {"a": {"pattern": "((a{1,1000}){1,1000}){1,1000}"}}});
    assert!(compile(&huge).is_ok_and(|validator| validator.has_lost_patterns()));
}

#[test]
fn hostile_schemas_are_refused_or_survived() {
    assert_eq!(compile(&json!({"$ref": "#"})).unwrap_err(), Unusable::Circular);
    let large: Map<String, Value> =
        (0..100_000).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
    assert_eq!(compile(&json!({"properties": large})).unwrap_err(), Unusable::TooLarge);
    assert!(matches!(compile(&json!({"type": "no such type"})), Err(Unusable::Invalid(_))));

    // Doubles the time with every level: not validated at all.
    let doubling = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    let validator = compile(&doubling).unwrap();
    let mut nested = json!({});
    for _ in 0..60 {
        nested = json!({"a": nested});
    }
    assert!(validator.check(&nested).is_ok());
}

#[test]
fn the_longest_chains_at_the_deepest_values_fit_on_a_small_stack() {
    let mut inner = json!({"properties": {"a": {"$ref": "#"}}});
    for _ in 0..30 {
        inner = json!({"allOf": [inner]});
    }
    inner["type"] = json!("object");
    let mut nested = json!(1);
    for _ in 0..64 {
        nested = json!({"a": nested});
    }
    // Half the stack of a runtime thread.
    let thread = std::thread::Builder::new().stack_size(1024 * 1024);
    let check = move || compile(&inner).unwrap().check(&nested).is_err();
    assert!(thread.spawn(check).unwrap().join().unwrap());
}

proptest! {
    #[test]
    fn no_schema_and_no_arguments_make_it_panic(
        schema in crate::schema::provider::tests::any_schema(),
        arguments in crate::schema::provider::tests::any_value(),
    ) {
        if let Some(schema) = schema.as_object()
            && let Ok(validator) = Validator::compile(schema)
            && let Err(violations) = validator.check(&arguments)
        {
            prop_assert!(violations.to_string().chars().count() <= 1_500);
        }
    }
}

#[test]
fn what_is_seen_at_first_sight_is_what_compiling_finds() {
    let look = |schema: &Value| Validator::look_at(schema.as_object().unwrap());
    for good in [
        json!({}),
        json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
        json!({"properties": {"again": {"$ref": "#"}}}),
    ] {
        assert_eq!(look(&good), Ok(()), "{good}");
        assert!(compile(&good).is_ok(), "{good}");
    }
    for bad in [
        json!({"type": 17}),
        json!({"properties": {"a": {"type": "text"}}}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"description": "x".repeat(600 * 1024), "minProperties": 1}),
    ] {
        assert!(look(&bad).is_err(), "{bad}");
        assert!(compile(&bad).is_err(), "{bad}");
    }
}

#[test]
fn formats_apply_to_the_answers_of_users_only() {
    let schema = |format: &str| json!({"properties": {"a": {"type": "string", "format": format}}});
    for (format, good, bad, words) in [
        ("date", "2026-07-28", "28.7.2026", "/a must be a date, such as 2026-07-28"),
        ("date", "2024-02-29", "2026-02-29", "/a must be a date, such as 2026-07-28"),
        ("date-time", "2026-07-28T12:00:00Z", "today", "/a must be a date and time, such as"),
        ("email", "a@example.com", "a at example", "/a must be an email address"),
        ("uri", "https://example.com", "example", "/a must be a URI"),
    ] {
        let schema = schema(format);
        let answers = Validator::compile_for_answers(schema.as_object().unwrap()).unwrap();
        assert_eq!(answers.check(&json!({ "a": good })), Ok(()), "{good}");
        let said = answers.check(&json!({ "a": bad })).unwrap_err().to_string();
        assert!(said.starts_with(words), "{said}");
        assert_eq!(compile(&schema).unwrap().check(&json!({ "a": bad })), Ok(()));
    }
}
