//! The skills of the servers (SEP-2640), for clients that know the extension.

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp_client::listing::ListedSkill;
use serde_json::{Value, json};

use super::view::HubView;

/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 1_024;

/// The result of `skills/list`.
pub(super) fn list(view: &HubView) -> Value {
    let all = view.skills().into_iter().map(|of| entry(view, &of.entry));
    json!({ "skills": all.collect::<Vec<_>>() })
}

/// The result of `skills/get`; `None` if no server lists this skill.
pub(super) fn get(view: &HubView, uri: &str) -> Option<Value> {
    let found = view.skills().into_iter().find(|of| of.entry.uri == uri)?;
    Some(json!({ "skill": entry(view, &found.entry) }))
}

/// Boundaries are added when a file is read, so its digest cannot be known before, and the front matter
/// has only what describes the skill.
fn entry(view: &HubView, skill: &ListedSkill) -> Value {
    if !view.wraps() {
        return json!(skill);
    }
    let description = clean_line(Untrusted::new(skill.description()), MAX_DESCRIPTION);
    json!({
        "uri": skill.uri,
        "frontmatter": { "name": skill.name(), "description": description },
        "resources": "dynamic",
    })
}
