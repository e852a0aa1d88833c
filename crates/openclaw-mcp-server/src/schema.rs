//! Schemas of tools, in the form that most clients and models take, and arguments that match them.

use std::sync::Arc;

use openclaw_tools::schema::Validator;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the schema of a type: without references, `null` for absent values, and formats that are
/// names of Rust.
pub(crate) fn schema_of<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = Value::from(schema);
    simplify(&mut schema);
    match schema {
        Value::Object(mut schema) => {
            // The name of the type, which means nothing to clients.
            schema.remove("title");
            Arc::new(schema)
        }
        _ => Arc::default(),
    }
}

/// Reads the arguments of a tool.
///
/// # Errors
/// What is wrong with them, in terms of their schema rather than of Rust.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(arguments: &Value) -> Result<T, String> {
    serde::Deserialize::deserialize(arguments).map_err(|error: serde_json::Error| {
        let validator = Validator::compile(&schema_of::<T>()).ok();
        match validator.and_then(|validator| validator.check(arguments).err()) {
            Some(violations) => format!("invalid arguments: {violations}"),
            None => format!("invalid arguments: {error}"),
        }
    })
}

fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|it| it != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    members.insert("type".to_owned(), only);
                }
            }
            members.retain(|key, value| match key.as_str() {
                "default" => !value.is_null(),
                "format" => !value.as_str().is_some_and(|it| it.starts_with("uint")),
                _ => true,
            });
            members.values_mut().for_each(simplify);
        }
        Value::Array(elements) => elements.iter_mut().for_each(simplify),
        _ => {}
    }
}
