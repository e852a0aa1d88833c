//! The inventory of a server: its tools, resources, prompts and skills, as last listed.

pub mod describe;
pub mod model_schema;
mod update;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use openclaw_mcp_client::connection::{Connection, ServerIntroduction};
use openclaw_mcp_client::host::Changes;
use openclaw_mcp_client::listing::{
    ListedPrompt, ListedResource, ListedSkill, ListedTemplate, ListedTool,
};
use openclaw_mcp_client::wire::{CallError, TimeLimits};

pub(crate) use update::Update;

/// All lists, as if each had changed.
pub(crate) const EVERYTHING: Changes = Changes { tools: 1, resources: 1, prompts: 1 };

/// The maximum number of entries of a small inventory.
const SMALL: usize = 64;
/// The maximum number of skills to which unlisted ones are added.
const MAX_SKILLS: usize = 1_000;

/// The tools, resources, prompts and skills of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Its tools.
    pub tools: Vec<Arc<ListedTool>>,
    /// Its resources.
    pub resources: Vec<ListedResource>,
    /// Its resource templates.
    pub templates: Vec<ListedTemplate>,
    /// Its prompts.
    pub prompts: Vec<ListedPrompt>,
    /// Its skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Arc<ListedSkill>>,
    /// What it tells its clients. Stored apart from the lists.
    #[serde(skip)]
    pub introduction: ServerIntroduction,
    /// Entries that were left out and why, for users.
    #[serde(skip)]
    pub left_out: Vec<LeftOut>,
}

/// An entry that a server lists and that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its kind.
    pub kind: ListedKind,
    /// Its name, or a placeholder.
    pub name: String,
    /// Why it cannot be used.
    pub reason: String,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListedKind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A resource template.
    Template,
    /// A prompt.
    Prompt,
    /// A skill.
    Skill,
}

impl fmt::Display for ListedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Template => "resource template",
            Self::Prompt => "prompt",
            Self::Skill => "skill",
        })
    }
}

impl Inventory {
    /// Lists everything. Each page may take the timeout of the limits, all lists together their
    /// cap.
    ///
    /// # Errors
    /// If the server does not list its tools. Other lists that fail stay empty.
    pub async fn list(
        server: &str,
        connection: &Connection,
        limits: TimeLimits,
    ) -> Result<Self, CallError> {
        let update = Update::list(server, connection, EVERYTHING, limits).await?;
        let introduction = connection.about().introduction.clone();
        let mut inventory = Self { introduction, ..Self::default() };
        update.put_into(&mut inventory);
        Ok(inventory)
    }

    /// Returns the skill that a URI belongs to; of nested ones, the innermost.
    pub(crate) fn skill_of(&self, uri: &str) -> Option<&Arc<ListedSkill>> {
        let skills = self.skills.iter().filter(|skill| skill.contains(uri));
        skills.max_by_key(|skill| skill.uri.len())
    }

    /// Whether it can be processed without blocking other tasks.
    pub(crate) fn is_small(&self) -> bool {
        let more = self.resources.len() + self.templates.len() + self.prompts.len();
        // A skill may have many files.
        self.tools.len() + more <= SMALL && self.skills.is_empty()
    }

    /// Returns how many tools have another definition in a newer inventory.
    pub(crate) fn changed_tools(&self, newer: &Self) -> u64 {
        let new: HashMap<&str, &Arc<ListedTool>> =
            newer.tools.iter().map(|tool| (tool.name.as_str(), tool)).collect();
        let is_changed = |tool: &&Arc<ListedTool>| {
            new.get(tool.name.as_str()).is_some_and(|new| !Arc::ptr_eq(new, tool) && *new != *tool)
        };
        self.tools.iter().filter(is_changed).count() as u64
    }

    /// Returns how much is suspicious in the descriptions of tools that an older inventory does not
    /// have in this form.
    pub(crate) fn findings_since(&self, older: &Self) -> u64 {
        let old: HashMap<&str, &Arc<ListedTool>> =
            older.tools.iter().map(|tool| (tool.name.as_str(), tool)).collect();
        let is_new = |tool: &&Arc<ListedTool>| {
            let known = old.get(tool.name.as_str());
            known.is_none_or(|known| known.description != tool.description)
        };
        let new = self.tools.iter().filter(is_new);
        new.map(|tool| describe::findings(tool)).sum()
    }

    /// Adds a skill that the server does not list.
    pub(crate) fn add_skill(&mut self, skill: Arc<ListedSkill>) {
        self.skills.retain(|known| known.uri != skill.uri);
        if self.skills.len() < MAX_SKILLS {
            self.skills.push(skill);
        }
    }
}
