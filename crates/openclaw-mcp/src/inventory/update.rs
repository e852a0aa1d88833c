//! The lists of a server that were read again, before they replace the old ones.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout_at};

use super::{Inventory, LeftOut, ListedKind};
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::host::Changes;
use openclaw_mcp_client::listing::{
    ListedPrompt, ListedResource, ListedSkill, ListedTemplate, ListedTool, Listing,
};
use openclaw_mcp_client::wire::{CallError, TimeLimits};

/// How many left-out entries of each list are logged.
const MAX_LINES: usize = 20;

/// Lists that were read again; the others are `None`.
#[derive(Debug, Default)]
pub(crate) struct Update {
    tools: Option<ReadList<Arc<ListedTool>>>,
    resources: Option<ReadList<ListedResource>>,
    templates: Option<ReadList<ListedTemplate>>,
    prompts: Option<ReadList<ListedPrompt>>,
    skills: Option<ReadList<Arc<ListedSkill>>>,
}

/// A list that was read again.
#[derive(Debug)]
struct ReadList<T> {
    entries: Vec<T>,
    left_out: Vec<LeftOut>,
}

impl Update {
    /// Reads the lists that have changed and that the server supports.
    ///
    /// # Errors
    /// If the server does not list its tools. Another list that cannot be read keeps its old
    /// content.
    pub(crate) async fn list(
        server: &str,
        connection: &Connection,
        changed: Changes,
        limits: TimeLimits,
    ) -> Result<Self, CallError> {
        let deadline = Deadline { at: Instant::now() + limits.cap, limits };
        let offers = connection.about().offers;
        let has_resources = changed.resources > 0 && offers.resources;
        let has_prompts = changed.prompts > 0 && offers.prompts;
        let has_skills = changed.resources > 0 && offers.skills;
        // In parallel, so that the latency of a remote server counts once.
        let (tools, resources, templates, prompts, skills) = tokio::try_join!(
            async {
                let listing = deadline.keep(changed.tools > 0, connection.list_tools(limits));
                listing.await.transpose()
            },
            deadline.keep(has_resources, connection.list(limits)).map(Ok),
            deadline.keep(has_resources, connection.list_templates(limits)).map(Ok),
            deadline.keep(has_prompts, connection.list(limits)).map(Ok),
            // There is no notification about skills: their files are resources.
            deadline.keep(has_skills, connection.list(limits)).map(Ok),
        )?;
        let tools = tools.map(|listed| ReadList::new(server, ListedKind::Tool, listed));
        Ok(Self {
            tools: tools.map(ReadList::shared),
            resources: ReadList::if_any(server, ListedKind::Resource, resources),
            templates: ReadList::if_any(server, ListedKind::Template, templates),
            prompts: ReadList::if_any(server, ListedKind::Prompt, prompts),
            skills: ReadList::if_any(server, ListedKind::Skill, skills).map(ReadList::shared),
        })
    }

    /// Replaces the lists that were read again.
    pub(crate) fn put_into(self, inventory: &mut Inventory) {
        let Self { tools, resources, templates, prompts, skills } = self;
        let left_out = &mut inventory.left_out;
        replace(ListedKind::Tool, tools, &mut inventory.tools, left_out);
        replace(ListedKind::Resource, resources, &mut inventory.resources, left_out);
        replace(ListedKind::Template, templates, &mut inventory.templates, left_out);
        replace(ListedKind::Prompt, prompts, &mut inventory.prompts, left_out);
        replace(ListedKind::Skill, skills, &mut inventory.skills, left_out);
        // Sorted, so that an unchanged inventory is equal to the old one.
        left_out.sort_by_key(|entry| entry.kind);
    }
}

fn replace<T>(
    kind: ListedKind,
    fresh: Option<ReadList<T>>,
    old: &mut Vec<T>,
    left_out: &mut Vec<LeftOut>,
) {
    let Some(fresh) = fresh else { return };
    *old = fresh.entries;
    left_out.retain(|entry| entry.kind != kind);
    left_out.extend(fresh.left_out);
}

/// The deadline for all lists together.
#[derive(Clone, Copy)]
struct Deadline {
    at: Instant,
    limits: TimeLimits,
}

impl Deadline {
    async fn keep<T>(
        self,
        is_wanted: bool,
        listing: impl Future<Output = Result<T, CallError>>,
    ) -> Option<Result<T, CallError>> {
        if !is_wanted {
            return None;
        }
        let in_time = timeout_at(self.at, listing).await;
        Some(in_time.unwrap_or(Err(CallError::TimedOut(self.limits.cap))))
    }
}

impl<T> ReadList<T> {
    fn shared(self) -> ReadList<Arc<T>> {
        let Self { entries, left_out } = self;
        ReadList { entries: entries.into_iter().map(Arc::new).collect(), left_out }
    }

    fn if_any(
        server: &str,
        kind: ListedKind,
        listed: Option<Result<Listing<T>, CallError>>,
    ) -> Option<Self> {
        match listed? {
            Ok(listing) => Some(Self::new(server, kind, listing)),
            Err(error) => {
                tracing::warn!(%server, %error, "cannot list {kind}s");
                None
            }
        }
    }

    fn new(server: &str, kind: ListedKind, listing: Listing<T>) -> Self {
        let Listing { entries, dropped, more_dropped, cut } = listing;
        for dropped in dropped.iter().take(MAX_LINES) {
            let name = &dropped.name;
            let reason = &dropped.reason;
            tracing::warn!(%server, %name, %reason, "skipped an unusable {kind}");
        }
        let untold = dropped.len().saturating_sub(MAX_LINES) + more_dropped;
        if untold > 0 {
            tracing::warn!(%server, untold, "skipped more unusable {kind}s");
        }
        if let Some(reason) = cut {
            tracing::warn!(%server, reason, "the list of {kind}s may be incomplete");
        }
        let left_out = |name, reason| LeftOut { kind, name, reason };
        let rest = (more_dropped > 0)
            .then(|| left_out("(others)".to_owned(), format!("{more_dropped} more are unusable")));
        let cut = cut.map(|reason| left_out("(the rest)".to_owned(), reason.to_owned()));
        let dropped = dropped.into_iter().map(|dropped| left_out(dropped.name, dropped.reason));
        Self { entries, left_out: dropped.chain(rest).chain(cut).collect() }
    }
}
