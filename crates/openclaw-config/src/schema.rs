//! What the JSON Schema of the configuration says about a section and its values.

use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};

use crate::name::NAME_PATTERN;

/// Adds a constraint beyond the type to the schema of a field. The actual checks are in
/// [`crate::build`].
pub(crate) type Shape = fn(&mut Value);

/// A string that is not blank.
pub(crate) fn filled(schema: &mut Value) {
    schema["pattern"] = json!(r"\S");
}

/// A URL: https, or http on this machine. One with a variable can only be checked after expansion.
pub(crate) fn address(schema: &mut Value) {
    let local = r"([lL][oO][cC][aA][lL][hH][oO][sS][tT]|[^/@]+\.localhost|127(\.\d+){0,3}|\[::1\])";
    let http = format!(r"[hH][tT][tT][pP]://([^/@]*@)?{local}(:\d+)?([/?#]|\s*$)");
    schema["pattern"] = json!(format!(r"\$|^\s*([hH][tT][tT][pP][sS]://[^/\s]|{http})"));
}

/// The URL of a proxy, or `none`.
pub(crate) fn proxy(schema: &mut Value) {
    schema["pattern"] =
        json!(r"\$|^none$|^([hH][tT][tT][pP][sS]?|[sS][oO][cC][kK][sS]5h?)://[^/\s]");
}

/// A value that may contain secret references.
pub(crate) fn credential(schema: &mut Value) {
    let reference = r"(env|file|keychain|exec|gcp|aws|vault)/[^\s#]";
    schema["pattern"] = json!(format!(r"\$|^(?!.*secret://(?!{reference}))(?!.*\Ssecret://)"));
}

/// A private key, or a secret reference to one.
pub(crate) fn private_key(schema: &mut Value) {
    credential(schema);
    let key = r"\$|secret://|-----BEGIN PRIVATE KEY-----";
    schema["allOf"] = json!([{ "pattern": key }]);
}

/// A JWT, or a secret reference to one.
pub(crate) fn jwt(schema: &mut Value) {
    credential(schema);
    let jwt = r"\$|secret://|^\s*[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*){2}((\.[A-Za-z0-9_-]*){2})?\s*$";
    schema["allOf"] = json!([{ "pattern": jwt }]);
}

/// Environment variables.
pub(crate) fn variables(schema: &mut Value) {
    schema["propertyNames"] = json!({ "pattern": "^[^=\0]+$" });
    credential(&mut schema["additionalProperties"]);
}

/// HTTP headers.
pub(crate) fn headers(schema: &mut Value) {
    schema["propertyNames"] = json!({ "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" });
    credential(&mut schema["additionalProperties"]);
    schema["additionalProperties"]["not"] = json!({ "pattern": "[\r\n\0]" });
}

/// Names of environment variables.
pub(crate) fn variable_names(schema: &mut Value) {
    schema["items"]["pattern"] = json!("^[A-Za-z_][A-Za-z0-9_]*$");
}

/// A replacement for the server's name in tool names.
pub(crate) fn tool_prefix(schema: &mut Value) {
    schema["pattern"] = json!(r"\$|^[A-Za-z0-9_-]+$");
}

/// A template for the names of tools.
pub(crate) fn tool_naming(schema: &mut Value) {
    let part = "[A-Za-z0-9_-]*";
    let (server, tool) = (r"(\{server\})?", r"\{tool\}");
    let (forth, back) =
        (format!("{part}{server}{part}{tool}{part}"), format!("{part}{tool}{part}{server}{part}"));
    schema["pattern"] = json!(format!(r"\$|^({forth}|{back})$"));
}

/// The name of an agent or a server.
pub(crate) fn name(schema: &mut Value) {
    schema["pattern"] = json!(NAME_PATTERN);
}

/// A table whose keys are names.
pub(crate) fn named(schema: &mut Value) {
    let include = json!({ "const": "$include" });
    schema["propertyNames"] = json!({ "anyOf": [include, { "pattern": NAME_PATTERN }] });
}

/// A list of agents, each with its id.
pub(crate) fn with_ids(schema: &mut Value) {
    let agent = schema["items"].take();
    schema["items"] = json!({ "allOf": [agent, { "required": ["id"] }] });
}

/// The name of a model.
pub(crate) fn model(schema: &mut Value) {
    schema["pattern"] = json!(r"\$|^offline$|^[A-Za-z0-9][A-Za-z0-9._-]{0,63}/\S+$");
}

/// The name of a model, or a section with fallbacks.
pub(crate) fn model_choice(schema: &mut Value) {
    let mut name = json!({ "type": "string" });
    model(&mut name);
    *schema = json!({ "anyOf": [name, schema.take()] });
}

/// The word `oauth`, or a section.
pub(crate) fn auth(schema: &mut Value) {
    *schema = json!({ "anyOf": [{ "const": "oauth" }, schema.take()] });
}

/// Names of models.
pub(crate) fn models(schema: &mut Value) {
    model(&mut schema["items"]);
}

/// The URL of a model provider; http is allowed, because local providers often lack https.
pub(crate) fn model_address(schema: &mut Value) {
    schema["pattern"] = json!(r"\$|^\s*[hH][tT][tT][pP][sS]?://[^/\s]");
}

/// A public URL: https, without user info, query and fragment.
pub(crate) fn https(schema: &mut Value) {
    schema["pattern"] = json!(r"\$|^\s*[hH][tT][tT][pP][sS]://[^/\s?#@]+(/[^?#]*)?\s*$");
}

/// The interface that the gateway listens on.
pub(crate) fn bind(schema: &mut Value) {
    let words = "loopback|auto|lan|all";
    let (four, six) = (r"\d{1,3}(\.\d{1,3}){3}", "[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+");
    schema["pattern"] = json!(format!(r"\$|^({words}|{four}|{six})$"));
}

/// Where the gateway runs.
pub(crate) fn gateway_mode(schema: &mut Value) {
    schema["pattern"] = json!(r"\$|^(local|remote)$");
}

/// The URL of a gateway, without user info, query and fragment.
pub(crate) fn websocket(schema: &mut Value) {
    schema["pattern"] = json!(r"\$|^\s*[wW][sS][sS]?://[^/\s?#@]+(/[^?#]*)?\s*$");
}

/// The SHA-256 fingerprint of a certificate.
pub(crate) fn fingerprint(schema: &mut Value) {
    schema["pattern"] =
        json!(r"\$|^\s*([sS][hH][aA]256[:=])?([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}\s*$");
}

/// How the gateway authenticates clients.
pub(crate) fn auth_mode(schema: &mut Value) {
    schema["pattern"] = json!(r"\$|^token$");
}

/// The token of the gateway.
pub(crate) fn gateway_token(schema: &mut Value) {
    credential(schema);
    schema["not"] = json!({ "pattern": r"^\s*$" });
}

/// Origins of web pages.
pub(crate) fn origins(schema: &mut Value) {
    schema["items"]["pattern"] = json!(r"\$|^[A-Za-z][A-Za-z0-9+.-]*://[^/\s?#@]+/?$");
}

/// URIs of resources.
pub(crate) fn uris(schema: &mut Value) {
    schema["items"]["pattern"] = json!(r"\$|^[A-Za-z][A-Za-z0-9+.-]*:\S+$");
}

/// Hosts on private networks.
pub(crate) fn private_hosts(schema: &mut Value) {
    let (name, six) = ("[A-Za-z0-9_.-]+", r"\[?[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+\]?");
    schema["items"]["pattern"] = json!(format!(r"\$|^({name}|{six})(/\d{{1,3}})?$"));
}

/// Adds the pattern of a host name, or of all names below one.
pub(crate) fn public_hosts(schema: &mut Value) {
    schema["items"]["pattern"] = json!(r"\$|^(\*\.)?[A-Za-z0-9_.-]+$");
}

/// Collects the properties of one section.
pub(crate) struct SectionSchema {
    description: &'static str,
    properties: Map<String, Value>,
    /// Of two synonyms only one may be given.
    rules: Vec<Value>,
}

impl SectionSchema {
    pub(crate) fn new(description: &'static str) -> Self {
        let mut properties = Map::new();
        // Any object may include other files.
        let include = json!({
            "description": "One or more files whose content is merged in here.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
        });
        properties.insert("$include".to_owned(), include);
        Self { description, properties, rules: Vec::new() }
    }

    pub(crate) fn property(
        &mut self,
        key: &str,
        mut schema: Schema,
        description: &'static str,
        synonyms: &[&str],
        shape: Option<Shape>,
    ) {
        // `true` accepts anything and cannot have a description.
        schema.ensure_object();
        let mut schema = schema.to_value();
        if let Some(shape) = shape {
            shape(&mut schema);
        }
        let names: Vec<&str> = [key].iter().chain(synonyms).copied().collect();
        for (index, name) in names.iter().enumerate() {
            let described =
                if index == 0 { prose(description) } else { format!("Synonym of `{key}`.") };
            schema["description"] = json!(described);
            self.properties.insert((*name).to_owned(), schema.clone());
            let others = names[..index].iter();
            self.rules.extend(others.map(|other| json!({ "not": { "required": [other, name] } })));
        }
    }

    pub(crate) fn finish(self, open: bool) -> Schema {
        let mut schema = json_schema!({
            "description": prose(self.description),
            "type": "object",
            "properties": self.properties,
            "additionalProperties": open,
        });
        if !self.rules.is_empty() {
            schema.insert("allOf".to_owned(), json!(self.rules));
        }
        schema
    }
}

/// Adds a rule to a section.
pub(crate) fn rule(schema: &mut Schema, rule: Value) {
    let rules = schema.ensure_object().entry("allOf").or_insert_with(|| json!([]));
    if let Some(rules) = rules.as_array_mut() {
        rules.push(rule);
    }
}

/// Joins a doc comment into one paragraph.
fn prose(comment: &str) -> String {
    comment.split_whitespace().collect::<Vec<_>>().join(" ")
}
