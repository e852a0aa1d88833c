//! Schemas as providers receive them.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const ALL: [SchemaDialect; 4] =
    [SchemaDialect::Anthropic, SchemaDialect::OpenAi, SchemaDialect::Gemini, SchemaDialect::Plain];

fn made(schema: &Value, dialect: SchemaDialect) -> Value {
    provider_schema(schema.as_object().unwrap(), dialect).unwrap()
}

#[test]
fn the_root_is_an_object_with_properties() {
    for dialect in ALL {
        assert_eq!(made(&json!({}), dialect), json!({"type": "object", "properties": {}}));
        let not_an_object = json!({"type": "string"});
        let refused = provider_schema(not_an_object.as_object().unwrap(), dialect);
        assert_eq!(refused, Err(Unusable::NotAnObject));
    }
}

#[test]
fn references_are_replaced_and_circles_end() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/x",
        "$defs": {
            "node": {
                "type": "object",
                "description": "A node.",
                "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}},
            },
        },
        "properties": {"first": {"$ref": "#/$defs/node", "description": "The first."}},
    });
    assert_eq!(
        made(&schema, SchemaDialect::Plain),
        json!({
            "type": "object",
            "properties": {"first": {
                "type": "object",
                "description": "The first.",
                "properties": {"next": {"description": "A node."}, "name": {"type": "string"}},
            }},
        }),
    );
}

#[test]
fn references_that_multiply_are_bounded() {
    let mut defs = Map::new();
    for at in 0..30 {
        let next = format!("#/$defs/d{}", at + 1);
        let twice = json!({"properties": {"a": {"$ref": next}, "b": {"$ref": next}}});
        defs.insert(format!("d{at}"), twice);
    }
    defs.insert("d30".to_owned(), json!({"enum": ["x".repeat(1_000)]}));
    let schema = json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}});
    for dialect in ALL {
        assert!(made(&schema, dialect).to_string().len() < 1_000_000);
    }
}

#[test]
fn old_and_broken_keywords_become_good_ones_or_none() {
    let schema = json!({
        "type": ["object", "null"],
        "required": ["a", 5, "a"],
        "x-order": 3,
        "properties": {
            "a": {"type": "number", "minimum": 1, "exclusiveMinimum": true},
            "b": {"type": "array", "items": [{"type": "string"}], "additionalItems": false},
            "c": {"type": "text", "enum": [], "minLength": -1, "description": 7},
            "d": "no schema",
        },
    });
    assert_eq!(
        made(&schema, SchemaDialect::Anthropic),
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "number", "exclusiveMinimum": 1},
                "b": {"type": "array", "prefixItems": [{"type": "string"}], "items": false},
                "c": {},
            },
            "required": ["a"],
        }),
    );
}

#[test]
fn alternatives_at_the_root_become_one_object() {
    let schema = json!({
        "properties": {"id": {"type": "string", "description": "ours"}},
        "allOf": [{"properties": {"all": {}}, "required": ["all"]}],
        "anyOf": [
            {"properties": {"id": {"type": "string"}, "a": {}}, "required": ["id", "a"]},
            {"oneOf": [{"properties": {"b": {}}, "required": ["id"]}], "required": ["id"]},
        ],
        "not": {"required": ["z"]},
    });
    for dialect in [SchemaDialect::Anthropic, SchemaDialect::OpenAi, SchemaDialect::Gemini] {
        let made = made(&schema, dialect);
        let names: std::collections::BTreeSet<_> =
            made["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["a", "all", "b", "id"].into(), "{dialect:?}");
        assert_eq!(made["properties"]["id"]["description"], "ours");
        let mut required: Vec<_> = made["required"].as_array().unwrap().clone();
        required.sort_by_key(|name| name.to_string());
        assert_eq!(required, ["all", "id"]);
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(made.get(keyword), None, "{dialect:?}");
        }
        assert!(made.get("not").is_none() || dialect == SchemaDialect::Anthropic);
    }
}

#[test]
fn names_that_anthropic_refuses_are_left_out_or_make_the_tool_unusable() {
    let schema = json!({"properties": {"good-1.x_y": {}, "näme": {}, "a b": {}}});
    let made = made(&schema, SchemaDialect::Anthropic);
    assert_eq!(made["properties"], json!({"good-1.x_y": {}}));
    let schema = json!({"properties": {"a b": {}}, "required": ["a b"]});
    let refused = provider_schema(schema.as_object().unwrap(), SchemaDialect::Anthropic);
    assert_eq!(refused, Err(Unusable::PropertyName("a b".to_owned())));
}

#[test]
fn openai_wants_items_for_every_array() {
    let schema = json!({"properties": {"a": {"type": "array"}}});
    let made = made(&schema, SchemaDialect::OpenAi);
    assert_eq!(made["properties"]["a"], json!({"type": "array", "items": {}}));
}

#[test]
fn gemini_gets_only_what_it_knows() {
    for (theirs, expected) in [
        (
            json!({"type": "string", "format": "uri", "title": "T", "default": "x"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string", "format": "date-time"}),
        ),
        (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
        (
            json!({"type": "integer", "enum": [1, 2], "description": "How many."}),
            json!({"type": "integer", "description": "How many. One of: 1, 2."}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9, "multipleOf": 2}),
            json!({"type": "integer", "minimum": 1, "maximum": 8}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "D"}),
            json!({"type": "string", "description": "D", "nullable": true}),
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "integer", "description": "I"}], "description": "D"}),
            json!({"anyOf": [
                {"type": "string", "description": "D"},
                {"type": "integer", "description": "I"},
            ]}),
        ),
        (
            json!({"type": ["string", "number"], "minLength": 2}),
            json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "number"}]}),
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"allOf": [{"type": "string"}]}}),
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        (
            json!({"type": "object", "additionalProperties": false, "required": ["a", "b"],
                "properties": {"a": {"type": "boolean"}}, "patternProperties": {"^x": {}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}}}),
        ),
    ] {
        let made = made(&json!({"properties": {"p": theirs}}), SchemaDialect::Gemini);
        assert_eq!(made["properties"]["p"], expected, "{theirs}");
    }
}

/// Arbitrary JSON, often with schema keywords in it.
pub(in crate::schema) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..5).prop_map(Value::from),
        (-2.0_f64..2.0).prop_map(Value::from),
        prop::sample::select(vec![
            "string",
            "object",
            "array",
            "null",
            "number",
            "integer",
            "a",
            "#",
            "#/$defs/a",
            "#/$defs/b",
            "#/properties/a",
            "date-time",
            "[a-z]+",
            "(",
            "",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[abc]", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Valid and invalid schemas.
pub(in crate::schema) fn any_schema() -> impl Strategy<Value = Value> {
    const PLAIN: [&str; 20] = [
        "type",
        "enum",
        "const",
        "required",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "minLength",
        "pattern",
        "format",
        "description",
        "title",
        "default",
        "multipleOf",
        "nullable",
        "$ref",
        "$id",
        "dependencies",
        "uniqueItems",
        "dependentRequired",
    ];
    let kinds = ["string", "object", "array", "null", "number", "integer", "boolean"];
    let kind = prop::sample::select(kinds.to_vec()).prop_map(|kind| json!({"type": kind}));
    let refs =
        prop::sample::select(vec!["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "x.json"]);
    let leaf = prop_oneof![
        kind,
        refs.prop_map(|target| json!({"$ref": target, "description": "D"})),
        any::<bool>().prop_map(Value::from),
        prop::collection::vec((prop::sample::select(PLAIN.to_vec()), any_value()), 0..4).prop_map(
            |members| {
                let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(members.collect())
            }
        ),
    ];
    let inner = leaf.prop_recursive(4, 40, 4, |inner| {
        let named = prop::collection::vec(("[ab]", inner.clone()), 0..3)
            .prop_map(|members| Value::Object(members.into_iter().collect()));
        let list = prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from);
        let member = prop_oneof![
            (prop::sample::select(vec!["properties", "$defs", "patternProperties"]), named),
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems", "items"]), list),
            (
                prop::sample::select(vec![
                    "items",
                    "not",
                    "additionalProperties",
                    "if",
                    "contains"
                ]),
                inner
            ),
            (prop::sample::select(PLAIN.to_vec()), any_value()),
        ];
        prop::collection::vec(member, 0..5).prop_map(|members| {
            let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
            Value::Object(members.collect())
        })
    });
    inner.prop_map(|schema| match schema {
        Value::Object(mut schema) => {
            schema.remove("type");
            Value::Object(schema)
        }
        other => json!({"properties": {"a": other}}),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn what_comes_out_is_a_schema_and_stays_as_it_is(schema in any_schema()) {
        for dialect in ALL {
            let Ok(made) = provider_schema(schema.as_object().unwrap(), dialect) else { continue };
            prop_assert!(jsonschema::draft202012::meta::is_valid(&made), "{dialect:?} {made}");
            let again = provider_schema(made.as_object().unwrap(), dialect).unwrap();
            prop_assert_eq!(again, made, "{:?}", dialect);
        }
    }
}
