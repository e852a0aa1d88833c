//! Skills (SEP-2640): folders of files, listed with their digests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Script;

/// A skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// The entry in `skills/list`.
    pub entry: Value,
    /// The texts of its files, by URI.
    pub files: BTreeMap<String, String>,
    /// Whether it is not listed, and only known to `skills/get`.
    #[serde(default)]
    pub is_unlisted: bool,
}

impl Skill {
    /// A skill at `skill://NAME/SKILL.md`.
    pub fn new(name: &str, description: &str) -> Self {
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n\nUse {name}.\n");
        let uri = format!("skill://{name}/SKILL.md");
        let entry = json!({
            "uri": uri,
            "frontmatter": {"name": name, "description": description},
            "resources": [file(&uri, &text)],
        });
        Self { entry, files: BTreeMap::from([(uri, text)]), is_unlisted: false }
    }

    /// Adds a file, by its path in the folder of the skill.
    pub fn file(mut self, path: &str, text: &str) -> Self {
        let uri = self.uri().replace("SKILL.md", path);
        if let Some(resources) = self.entry["resources"].as_array_mut() {
            resources.push(file(&uri, text));
        }
        self.serving(&uri, text)
    }

    /// Serves another text than the entry says.
    pub fn serving(mut self, uri: &str, text: &str) -> Self {
        self.files.insert(uri.to_owned(), text.to_owned());
        self
    }

    /// Sets a member of the entry.
    pub fn with(mut self, member: &str, value: Value) -> Self {
        self.entry[member] = value;
        self
    }

    /// Is not listed.
    pub fn unlisted(mut self) -> Self {
        self.is_unlisted = true;
        self
    }

    /// The URI of its `SKILL.md`.
    pub fn uri(&self) -> String {
        self.entry["uri"].as_str().unwrap_or_default().to_owned()
    }
}

fn file(uri: &str, text: &str) -> Value {
    let digest: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"uri": uri, "digest": format!("sha256:{digest}"), "size": text.len()})
}

impl Script {
    /// Has these skills.
    pub fn skills(mut self, skills: impl IntoIterator<Item = Skill>) -> Self {
        self.catalogue.skills = skills.into_iter().collect();
        self
    }
}
