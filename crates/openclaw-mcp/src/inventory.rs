//! What a server has: its tools, resources and prompts, as it listed them last.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::client::Changes;
use crate::connection::Connection;
use crate::listing::{Dropped, ListedPrompt, ListedResource, ListedTemplate, ListedTool, Listing};
use crate::wire::{CallError, Limits};

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
    pub left_out: Vec<Dropped>,
}

impl Inventory {
    /// Asks the server for all of it.
    ///
    /// # Errors
    /// If the server does not list its tools. Of the rest, what it does not list it does not have.
    pub async fn list(
        server: &str,
        connection: &Connection,
        limits: Limits,
    ) -> Result<Self, CallError> {
        let mut inventory = Self::default();
        inventory.list_tools(server, connection, limits).await?;
        if connection.about().offers.resources {
            inventory.list_resources(server, connection, limits).await;
        }
        if connection.about().offers.prompts {
            inventory.list_prompts(server, connection, limits).await;
        }
        Ok(inventory)
    }

    /// Asks again for what has changed.
    ///
    /// # Errors
    /// If the server does not list its tools.
    pub async fn list_again(
        &self,
        server: &str,
        connection: &Connection,
        changed: Changes,
        limits: Limits,
    ) -> Result<Self, CallError> {
        let mut inventory = self.clone();
        if changed.tools > 0 {
            inventory.left_out.clear();
            inventory.list_tools(server, connection, limits).await?;
        }
        if changed.resources > 0 {
            inventory.list_resources(server, connection, limits).await;
        }
        if changed.prompts > 0 {
            inventory.list_prompts(server, connection, limits).await;
        }
        Ok(inventory)
    }

    async fn list_tools(
        &mut self,
        server: &str,
        connection: &Connection,
        limits: Limits,
    ) -> Result<(), CallError> {
        let listing = connection.list_tools(limits).await?;
        let tools = self.take(server, "tool", listing);
        self.tools = tools.into_iter().map(Arc::new).collect();
        Ok(())
    }

    async fn list_resources(&mut self, server: &str, connection: &Connection, limits: Limits) {
        let listed = connection.list_resources(limits).await;
        self.resources = self.take_if_any(server, "resource", listed);
        let listed = connection.list_templates(limits).await;
        self.templates = self.take_if_any(server, "resource template", listed);
    }

    async fn list_prompts(&mut self, server: &str, connection: &Connection, limits: Limits) {
        let listed = connection.list_prompts(limits).await;
        self.prompts = self.take_if_any(server, "prompt", listed);
    }

    fn take_if_any<T>(
        &mut self,
        server: &str,
        kind: &str,
        listed: Result<Listing<T>, CallError>,
    ) -> Vec<T> {
        match listed {
            Ok(listing) => self.take(server, kind, listing),
            Err(error) => {
                tracing::warn!(%server, %error, "its {kind}s cannot be listed");
                Vec::new()
            }
        }
    }

    fn take<T>(&mut self, server: &str, kind: &str, listing: Listing<T>) -> Vec<T> {
        for dropped in &listing.dropped {
            let (name, reason) = (&dropped.name, &dropped.reason);
            tracing::warn!(%server, %name, %reason, "left out a {kind}");
        }
        if let Some(reason) = listing.cut {
            tracing::warn!(%server, reason, "the list of {kind}s may be incomplete");
        }
        self.left_out.extend(listing.dropped);
        listing.entries
    }

    /// Forgets a tool that the server says it does not have (B11).
    pub(crate) fn without_tool(&self, name: &str) -> Self {
        let mut inventory = self.clone();
        inventory.tools.retain(|tool| tool.name != name);
        inventory
    }
}
