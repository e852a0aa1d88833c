//! The JSON Schema of the configuration, for editors: made from the sections' declarations.

use schemars::generate::SchemaSettings;
use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};

use crate::raw::RawConfig;

/// The JSON Schema (2020-12) of `openclaw.json`.
pub fn json_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<RawConfig>();
    schema.insert("title".to_owned(), json!("OpenClaw configuration"));
    schema.to_value()
}

/// Collects the properties of one section.
pub(crate) struct SectionSchema {
    description: &'static str,
    properties: Map<String, Value>,
}

impl SectionSchema {
    pub(crate) fn new(description: &'static str) -> Self {
        let mut properties = Map::new();
        // Any object may be continued in another file.
        let include = json!({
            "description": "Another file (or several) whose content is merged in here.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
        });
        properties.insert("$include".to_owned(), include);
        Self { description, properties }
    }

    pub(crate) fn property(
        &mut self,
        key: &str,
        mut schema: Schema,
        description: &'static str,
        synonyms: &[&str],
    ) {
        schema.insert("description".to_owned(), json!(prose(description)));
        self.properties.insert(key.to_owned(), schema.clone().to_value());
        for synonym in synonyms {
            schema.insert("description".to_owned(), json!(format!("Synonym of `{key}`.")));
            self.properties.insert((*synonym).to_owned(), schema.clone().to_value());
        }
    }

    pub(crate) fn finish(self, open: bool) -> Schema {
        json_schema!({
            "description": prose(self.description),
            "type": "object",
            "properties": self.properties,
            "additionalProperties": open,
        })
    }
}

/// A documentation comment as one paragraph.
fn prose(comment: &str) -> String {
    comment.split_whitespace().collect::<Vec<_>>().join(" ")
}
