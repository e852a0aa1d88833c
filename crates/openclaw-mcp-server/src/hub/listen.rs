//! Tells clients about changes of lists and resources.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use openclaw_mcp::call::library::ServerEntry;
use openclaw_mcp::catalogue::CatalogueTool;
use openclaw_mcp_client::listing::{ListedResource, ListedTemplate};
use rmcp::service::SubscriptionContext;
use serde_json::Value;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;

use super::client::HubClient;

/// How long to wait for further changes before a client is notified: servers often connect at the
/// same time.
const SETTLES: Duration = Duration::from_millis(50);

/// A change of a resource.
#[derive(Debug, Clone)]
pub(super) struct Updated {
    pub(super) server: String,
    pub(super) uri: String,
}

/// A notification for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Tools,
    Resources,
    Prompts,
}

impl Change {
    const fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }
}

/// The lists of a client.
#[derive(Default)]
struct Lists {
    tools: Vec<(String, Arc<CatalogueTool>)>,
    resources: Vec<ServerEntry<ListedResource>>,
    templates: Vec<ServerEntry<ListedTemplate>>,
    prompts: Vec<(String, openclaw_mcp_client::listing::ListedPrompt)>,
}

impl Lists {
    fn current(client: &HubClient) -> Self {
        let Some(view) = client.view() else { return Self::default() };
        let tools = view.tools().map(|(name, tool)| (name.to_owned(), Arc::clone(tool)));
        let prompts = view.prompts().into_iter().map(|prompt| (prompt.name, prompt.entry));
        Self {
            tools: tools.collect(),
            resources: view.resources(),
            templates: view.templates(),
            prompts: prompts.collect(),
        }
    }

    fn changes_to(&self, new: &Self) -> Vec<Change> {
        let same_tool = |(a, one): &(String, Arc<CatalogueTool>), (b, two): &(String, Arc<_>)| {
            // An unchanged tool is the same object in the next catalogue.
            a == b && Arc::ptr_eq(one, two)
        };
        let differs = |kind, is_same: bool| (!is_same).then_some(kind);
        [
            differs(Change::Tools, same(&self.tools, &new.tools, same_tool)),
            differs(
                Change::Resources,
                same(&self.resources, &new.resources, same_entry)
                    && same(&self.templates, &new.templates, same_entry),
            ),
            differs(Change::Prompts, self.prompts == new.prompts),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn same<T>(old: &[T], new: &[T], is_same: impl Fn(&T, &T) -> bool) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is_same(old, new))
}

fn same_entry<T: PartialEq>(old: &ServerEntry<T>, new: &ServerEntry<T>) -> bool {
    old.server == new.server && old.entry == new.entry
}

/// Waits until a list of the client has changed. Must be polled to its end: what else arrives
/// meanwhile must neither lose a change nor delay it.
async fn changed(client: &HubClient, lists: &mut Lists, revision: &mut u64) -> Vec<Change> {
    loop {
        client.hub.fleet.revision().after(*revision).await;
        sleep(SETTLES).await;
        *revision = client.hub.fleet.revision().get();
        let now = Lists::current(client);
        let changes = lists.changes_to(&now);
        *lists = now;
        if !changes.is_empty() {
            return changes;
        }
    }
}

/// Receives the next change of a resource. Some may be lost if there are too many.
async fn updated(updates: &mut Receiver<Updated>) -> Option<Updated> {
    match updates.recv().await {
        Ok(updated) => Some(updated),
        Err(RecvError::Lagged(_)) => None,
        Err(RecvError::Closed) => std::future::pending().await,
    }
}

/// Tells a client with a handshake, from the end of the handshake until it is gone.
pub(super) async fn watch(weak: Weak<HubClient>) {
    let Some(client) = weak.upgrade() else { return };
    client.until_ready().await;
    let mut updates = client.hub.asks.updates();
    // Its first lists wait for the servers, too.
    let _ = client.settled_view().await;
    let mut revision = client.hub.fleet.revision().get();
    let mut lists = Lists::current(&client);
    loop {
        let mut changing = pin!(changed(&client, &mut lists, &mut revision));
        let changes = loop {
            tokio::select! {
                changes = &mut changing => break changes,
                Some(it) = updated(&mut updates) => client.resource_updated(&it.server, &it.uri),
            }
        };
        changes.iter().for_each(|change| client.connection.notify(change.method(), Value::Null));
    }
}

/// Tells a client that listens since 2026-07-28, until its request ends.
pub(super) async fn tell(client: &HubClient, subscription: &SubscriptionContext) {
    let sink = subscription.sink();
    let accepted = subscription.accepted();
    let mut updates = client.hub.asks.updates();
    // Before anything that waits: a change meanwhile counts.
    let mut revision = client.hub.fleet.revision().get();
    let mut lists = Lists::current(client);
    let wanted = accepted.resource_subscriptions.clone().unwrap_or_default();
    let mut followed = Vec::new();
    for uri in &wanted {
        if let Ok(server) = client.follow(uri).await {
            followed.push((server, uri.as_str()));
        }
    }
    let _unfollow = Unfollow(client, &followed);
    loop {
        let mut changing = pin!(changed(client, &mut lists, &mut revision));
        let changes = loop {
            tokio::select! {
                changes = &mut changing => break changes,
                Some(it) = updated(&mut updates) => {
                    if followed.iter().any(|(server, uri)| *server == it.server && *uri == it.uri) {
                        let _ = sink.notify_resource_updated(it.uri).await;
                    }
                }
            }
        };
        for change in changes {
            // An error means that the client did not ask for it.
            let _ = match change {
                Change::Tools => sink.notify_tool_list_changed().await,
                Change::Resources => sink.notify_resource_list_changed().await,
                Change::Prompts => sink.notify_prompt_list_changed().await,
            };
        }
    }
}

/// Ends the subscriptions of a request when it is dropped.
struct Unfollow<'a>(&'a HubClient, &'a [(String, &'a str)]);

impl Drop for Unfollow<'_> {
    fn drop(&mut self) {
        self.1.iter().for_each(|(server, uri)| self.0.unfollow(server, uri));
    }
}
