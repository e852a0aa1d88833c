//! Schemas of tools, in the form that most clients and models take.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the schema of a type: without references, `null` for absent values, and formats that are
/// names of Rust.
pub(crate) fn of<T: JsonSchema>() -> Arc<JsonObject> {
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
