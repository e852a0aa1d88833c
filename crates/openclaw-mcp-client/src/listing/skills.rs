//! The skills that a server lists (SEP-2640): folders of files with instructions for an agent.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Dropped, ListedEntry};

/// The name of the extension in a server's capabilities.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The file with which a skill begins.
const ENTRY_FILE: &str = "/SKILL.md";
/// The limits of SEP-2640 for a skill: the number of its files, and their total size in bytes.
const MAX_FILES: usize = 512;
const MAX_SIZE: u64 = 16 * 1024 * 1024;
/// The maximum length of a URI.
const MAX_URI: usize = 8 * 1024;
/// The maximum length of a name (Agent Skills specification).
const MAX_NAME: usize = 64;

/// A skill as its server describes it. Untrusted, except for its name, which is a word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedSkill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The front matter of that file.
    pub frontmatter: Map<String, Value>,
    /// All its files.
    pub resources: SkillFiles,
}

/// The files of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "`resources` is neither a list of files nor `dynamic`")]
pub enum SkillFiles {
    /// All files, with `SKILL.md`.
    Listed(Vec<SkillFile>),
    /// They are generated when they are read, and cannot be verified.
    Dynamic(Dynamic),
}

/// The word in the place of a list of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dynamic {
    /// `dynamic`
    Dynamic,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFile {
    /// Its URI.
    pub uri: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
}

impl ListedSkill {
    /// Its name: lowercase letters, digits and hyphens.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// What it is for.
    pub fn description(&self) -> &str {
        self.text("description")
    }

    fn text(&self, key: &str) -> &str {
        self.frontmatter.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The URIs of its files, as far as they are listed.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let listed = match &self.resources {
            SkillFiles::Listed(files) => files.as_slice(),
            SkillFiles::Dynamic(_) => &[],
        };
        let all = listed.iter().map(|file| file.uri.as_str());
        all.chain(std::iter::once(self.uri.as_str()))
    }

    /// Whether a URI is in its folder.
    pub fn contains(&self, uri: &str) -> bool {
        let rest = self.root().and_then(|root| uri.strip_prefix(root));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// The URI of its folder, without a slash at the end.
    pub(crate) fn root(&self) -> Option<&str> {
        self.uri.strip_suffix(ENTRY_FILE)
    }

    fn flaw_of(&self, files: &[SkillFile]) -> Option<&'static str> {
        let size = files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.size));
        if files.len() > MAX_FILES || size.is_none_or(|size| size > MAX_SIZE) {
            return Some("it has more than 512 files or 16 MiB");
        }
        let uris: BTreeSet<&str> = files.iter().map(|file| file.uri.as_str()).collect();
        if uris.len() != files.len() || !uris.contains(self.uri.as_str()) {
            return Some("its list of files lacks SKILL.md, or has a file twice");
        }
        if !files.iter().all(|file| file.uri.len() <= MAX_URI && self.contains(&file.uri)) {
            return Some("it lists a file outside of its folder");
        }
        let is_valid = files.iter().all(|file| is_digest(&file.digest));
        (!is_valid).then_some("it lists a file without a valid SHA-256 digest")
    }
}

impl ListedEntry for ListedSkill {
    const METHOD: &'static str = "skills/list";
    const KEY: &'static str = "skills";

    fn label(&self) -> &str {
        &self.uri
    }

    fn read(raw: &RawValue) -> Result<Self, Dropped> {
        let skill: Self = serde_json::from_str(raw.get()).map_err(|error| {
            #[derive(Deserialize)]
            struct Located {
                uri: String,
            }
            let located = serde_json::from_str(raw.get());
            let uri = located.map_or_else(|_| super::UNNAMED.to_owned(), |it: Located| it.uri);
            Dropped::new(&uri, format!("invalid entry: {error}"))
        })?;
        skill.checked()
    }

    fn flaw(&self) -> Option<&'static str> {
        let folder = self.root().and_then(|root| root.rsplit('/').next());
        if self.uri.len() > MAX_URI || folder.is_none() {
            return Some("its URI is too long, or does not end in /SKILL.md");
        }
        if !is_skill_name(self.name()) {
            return Some("its name must consist of lowercase letters, digits and single hyphens");
        }
        if folder != Some(self.name()) {
            return Some("its folder does not have its name");
        }
        if self.description().is_empty() {
            return Some("it has no description");
        }
        match &self.resources {
            SkillFiles::Listed(files) => self.flaw_of(files),
            SkillFiles::Dynamic(_) => None,
        }
    }
}

/// The naming rules of the Agent Skills specification.
fn is_skill_name(name: &str) -> bool {
    let is_word = |word: &str| {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !word.is_empty() && word.bytes().all(fits)
    };
    name.len() <= MAX_NAME && name.split('-').all(is_word)
}

fn is_digest(digest: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use serde_json::{json, value::to_raw_value};

    use super::*;

    const URI: &str = "skill://acme/refunds/SKILL.md";

    fn file(uri: &str, size: u64) -> Value {
        json!({"uri": uri, "digest": format!("sha256:{}", "0".repeat(64)), "size": size})
    }

    fn entry() -> Value {
        json!({
            "uri": URI,
            "frontmatter": {"name": "refunds", "description": "Refunds."},
            "resources": [file(URI, 10), file("skill://acme/refunds/a/b.md", 20)],
        })
    }

    fn read(entry: &Value) -> Result<ListedSkill, Dropped> {
        ListedSkill::read(&to_raw_value(entry).unwrap())
    }

    #[test]
    fn a_skill_has_a_name_a_description_and_files() {
        let skill = read(&entry()).unwrap();
        assert_eq!((skill.name(), skill.description()), ("refunds", "Refunds."));
        assert!(skill.contains("skill://acme/refunds/a/b.md"));
        assert!(!skill.contains("skill://acme/refunds-2/b.md"));
        let mut dynamic = entry();
        dynamic["resources"] = json!("dynamic");
        assert_eq!(read(&dynamic).unwrap().resources, SkillFiles::Dynamic(Dynamic::Dynamic));
        let stored = serde_json::to_value(&skill).unwrap();
        assert_eq!(read(&stored).unwrap(), skill);
    }

    #[test]
    fn an_invalid_entry_is_dropped_with_the_reason() {
        let many = (0..MAX_FILES).map(|n| file(&format!("skill://acme/refunds/{n}"), 1));
        let many: Vec<_> = many.chain([file(URI, 1)]).collect();
        let mut bad_digest = file(URI, 1);
        bad_digest["digest"] = json!("sha256:ABC");
        for (key, value, reason) in [
            ("uri", json!("skill://acme/refunds"), "does not end in /SKILL.md"),
            ("uri", json!("skill://acme/others/SKILL.md"), "does not have its name"),
            ("frontmatter", json!({"name": "Re funds", "description": "x"}), "name must consist"),
            ("frontmatter", json!({"name": "a--b", "description": "x"}), "name must consist"),
            ("frontmatter", json!({"name": "refunds"}), "no description"),
            ("resources", json!("static"), "invalid entry"),
            ("resources", json!([]), "lacks SKILL.md"),
            ("resources", json!([file(URI, 1), file(URI, 1)]), "has a file twice"),
            ("resources", json!([file(URI, 1), file("skill://b/x", 1)]), "outside of its folder"),
            ("resources", json!([file(URI, MAX_SIZE + 1)]), "16 MiB"),
            ("resources", json!([file(URI, u64::MAX), file("skill://b", 1)]), "16 MiB"),
            ("resources", json!(many), "512 files"),
            ("resources", json!([bad_digest]), "SHA-256"),
            ("resources", json!([{"uri": URI}]), "invalid entry"),
        ] {
            let mut entry = entry();
            entry[key] = value;
            let dropped = read(&entry).unwrap_err();
            assert!(dropped.reason.contains(reason), "{dropped:?}, not {reason}");
        }
    }
}
