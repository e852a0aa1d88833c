//! What a server has: its tools, resources and prompts, as it listed them last.

pub mod cache;
pub mod describe;
pub mod listing;
mod update;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::connection::client::Changes;
use crate::inventory::listing::{ListedPrompt, ListedResource, ListedTemplate, ListedTool};
use crate::wire::{CallError, Limits};

pub(crate) use update::Update;

/// All lists, as if each had changed.
pub(crate) const EVERYTHING: Changes = Changes { tools: 1, resources: 1, prompts: 1 };

/// So many entries are few.
const SMALL: usize = 64;

/// What a server has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Its tools.
    pub tools: Vec<Arc<ListedTool>>,
    /// Its resources.
    pub resources: Vec<ListedResource>,
    /// Families of more resources.
    pub templates: Vec<ListedTemplate>,
    /// Its prompts.
    pub prompts: Vec<ListedPrompt>,
    /// What was left out, and why. For people.
    #[serde(skip)]
    pub left_out: Vec<LeftOut>,
}

/// Something that a server lists and that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What it is.
    pub kind: Kind,
    /// Its name, as far as it has one.
    pub name: String,
    /// Why it cannot be used.
    pub reason: String,
}

/// What a server can list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A family of resources.
    Template,
    /// A prompt.
    Prompt,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Template => "resource template",
            Self::Prompt => "prompt",
        })
    }
}

impl Inventory {
    /// Asks the server for all of it. A page may take the limits' time-out, all lists together their
    /// cap.
    ///
    /// # Errors
    /// If the server does not list its tools. Of the rest, what it does not list it does not have.
    pub async fn list(
        server: &str,
        connection: &Connection,
        limits: Limits,
    ) -> Result<Self, CallError> {
        let update = Update::list(server, connection, EVERYTHING, limits).await?;
        Ok(Self::default().with(update))
    }

    /// Whether it can be looked through without keeping others waiting.
    pub(crate) fn is_small(&self) -> bool {
        let more = self.resources.len() + self.templates.len() + self.prompts.len();
        self.tools.len() + more <= SMALL
    }

    /// The same with lists that were read anew.
    pub(crate) fn with(&self, update: Update) -> Self {
        let mut inventory = self.clone();
        update.put_into(&mut inventory);
        inventory
    }

    /// Forgets a tool that the server says it does not have (B11).
    pub(crate) fn without_tool(&self, name: &str) -> Self {
        let mut inventory = self.clone();
        inventory.tools.retain(|tool| tool.name != name);
        inventory
    }
}
