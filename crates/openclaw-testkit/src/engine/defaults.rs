//! The default tools and the odd tools.

use serde_json::{Value, json};

use crate::script::{Odd, Tool};

/// The tools of a server whose script sets none.
pub(crate) fn default_tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, properties: Value, required: &[&str]| {
        Tool::new(name).description(description).schema(json!({
            "type": "object", "properties": properties, "required": required
        }))
    };
    let number = json!({"type": "number"});
    let integer = json!({"type": "integer", "minimum": 0});
    let text = json!({"type": "string"});
    vec![
        tool("echo", "Answers with the text.", json!({"text": text}), &["text"])
            .with("annotations", json!({"readOnlyHint": true})),
        tool("add", "Adds two numbers.", json!({"a": number, "b": number}), &["a", "b"]).with(
            "outputSchema",
            json!({"type": "object", "properties": {"sum": number}, "required": ["sum"]}),
        ),
        tool(
            "sleep",
            "Answers after so many milliseconds, with progress every `every` ms (100).",
            json!({"ms": integer, "every": integer}),
            &["ms"],
        ),
        tool("big", "Answers with so many bytes of text.", json!({"bytes": integer}), &["bytes"]),
        tool("fail", "Answers with an error result.", json!({"text": text}), &[]),
        tool(
            "env",
            "The names of the environment variables, or the value of one.",
            json!({"name": text}),
            &[],
        ),
        tool("cwd", "The working folder.", json!({}), &[]),
        tool("image", "A picture of one pixel.", json!({}), &[]),
        tool("mixed", "A part of every kind there is.", json!({}), &[]),
        tool("parts", "So many parts.", json!({"n": integer}), &["n"]),
        tool("count", "The number of calls so far, with this one.", json!({}), &[]),
        tool("pids", "The pids of the server and its child, as JSON.", json!({}), &[]),
        tool("stderr", "Prints the text on stderr.", json!({"text": text}), &["text"]),
        tool(
            "ask",
            "Sends a request to the client and answers with its reply.",
            json!({"method": text, "params": {"type": "object"}}),
            &["method"],
        ),
        tool(
            "crash",
            "Exits at once with this code (1).",
            json!({"code": {"type": "integer"}}),
            &[],
        )
        .with("annotations", json!({"destructiveHint": true})),
    ]
}

/// The entries for one oddity.
pub(crate) fn odd_tool(odd: Odd) -> Vec<Tool> {
    let called = |name: &str| Tool::new(name).description("An odd tool.");
    let one = |tool: Tool| vec![tool];
    match odd {
        Odd::SchemaTrue => one(called("odd_schema_true").schema(json!(true))),
        Odd::SchemaNull => one(called("odd_schema_null").schema(Value::Null)),
        Odd::SchemaArray => one(called("odd_schema_array").schema(json!([]))),
        Odd::SchemaMissing => one(Tool::listed_as(json!({"name": "odd_schema_missing"}))),
        Odd::SelfReference => one(called("odd_self_reference").schema(json!({
            "type": "object",
            "properties": {"node": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/node"}, "self": {"$ref": "#"}}
            }}
        }))),
        Odd::RemoteReference => one(called("odd_remote_reference").schema(json!({
            "type": "object",
            "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}
        }))),
        Odd::DeepSchema => one(called("odd_deep_schema").schema(nested(50))),
        Odd::BottomlessSchema => one(called("odd_bottomless_schema").schema(nested(1000))),
        Odd::InvalidSchema => one(called("odd_invalid_schema")
            .schema(json!({"type": "object", "properties": {"x": {"type": 17}}}))),
        Odd::HugeDescription => {
            one(called("odd_huge_description").description("long ".repeat(200_000)))
        }
        Odd::LongName => one(called(&"n".repeat(300))),
        Odd::EmojiName => one(called("🦀🔧🚀")),
        Odd::ControlName => one(called("odd\u{0}\u{7}\u{1b}[31m\ncontrol\u{202e}")),
        Odd::DoubleUnderscore => one(called("odd__double__underscore")),
        Odd::EmptyName => one(called("")),
        Odd::Duplicate => vec![
            called("odd_duplicate").description("The first."),
            called("odd_duplicate").description("The second."),
        ],
        Odd::NotAnObject => one(Tool::listed_as(json!("odd_not_an_object"))),
        Odd::InvalidHeader => one(called("odd_invalid_header").schema(json!({
            "type": "object",
            "properties": {"x": {"type": "string", "x-mcp-header": "not a header\n"}}
        }))),
    }
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": {"deeper": inner}}),
    )
}
