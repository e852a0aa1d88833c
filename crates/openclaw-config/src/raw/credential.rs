//! A credential: a string, or Node OpenClaw's object form of a reference.

use openclaw_secrets::SCHEME;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::decode::{Decode, Decoder, Overlay};
use crate::diagnostic::Diagnostic;
use crate::text::ConfigText;
use crate::tree::{ConfigNode, ConfigValue};

/// A string, or `{ source: "env", id: "NAME" }`, which means `secret://env/NAME`.
#[derive(Clone)]
pub(crate) struct CredentialText(pub(crate) ConfigText);

impl Decode for CredentialText {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        let ConfigValue::Object(members) = &node.value else {
            return ConfigText::decode(node, cx).map(Self);
        };
        let word = |key: &str| {
            let member = members.iter().find(|member| member.key == key);
            member.and_then(|member| match &member.node.value {
                ConfigValue::String(word) => Some(word.as_str()),
                _ => None,
            })
        };
        if let (Some("env"), Some(name)) = (word("source"), word("id")) {
            return Some(Self(ConfigText(format!("{SCHEME}env/{name}"))));
        }
        let message =
            "unsupported credential object: only references to the environment are supported";
        let help = "write a `secret://…` reference, as a string";
        cx.report(Diagnostic::error(message).at(node.mark(), "not supported").help(help));
        None
    }
}

impl Overlay for CredentialText {}

impl JsonSchema for CredentialText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CredentialText".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // `required` and `properties` do not apply to strings.
        json_schema!({
            "type": ["string", "object"],
            "properties": { "source": { "const": "env" }, "id": { "type": "string" } },
            "required": ["source", "id"],
        })
    }
}
