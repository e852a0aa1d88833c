//! The fingerprint of a tool's definition.

use openclaw_tools::ToolFingerprint;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use openclaw_mcp_client::listing::ListedTool;

/// Hashes the title, description, schema and hints of a tool. The order of keys in the schema does
/// not matter.
pub fn fingerprint(tool: &ListedTool) -> ToolFingerprint {
    let mut hash = Sha256::new();
    for text in [tool.title.as_deref(), tool.description.as_deref()] {
        // Prefixed with its length, so that the boundary between texts is unambiguous.
        hash.update(text.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
        hash.update(text.unwrap_or_default());
    }
    for hint in [tool.hints.read_only_hint, tool.hints.destructive_hint] {
        hash.update([hint.map_or(2, u8::from)]);
    }
    write_object(&mut hash, tool.input_schema.iter());
    ToolFingerprint::new(hash.finalize().into())
}

/// Hashes members sorted by key. Recursion is bounded: listing has limited the nesting.
fn write_object<'a>(hash: &mut Sha256, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    hash.update([b'{']);
    hash.update((members.len() as u64).to_be_bytes());
    for (key, value) in members {
        write_text(hash, b'k', key);
        write_value(hash, value);
    }
}

fn write_value(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update([b'n']),
        Value::Bool(value) => hash.update([b'b', u8::from(*value)]),
        Value::Number(number) => write_text(hash, b'd', &number.to_string()),
        Value::String(text) => write_text(hash, b's', text),
        Value::Array(items) => {
            hash.update([b'[']);
            hash.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| write_value(hash, item));
        }
        Value::Object(members) => write_object(hash, members.iter()),
    }
}

fn write_text(hash: &mut Sha256, kind: u8, text: &str) {
    hash.update([kind]);
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}
