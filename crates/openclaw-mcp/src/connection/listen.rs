//! Hearing that a list or a resource has changed (T10, B14). Of lists, older servers tell by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use openclaw_backoff::{Exponential, Jitter};
use rmcp::model::{ServerNotification, SubscriptionFilter, SubscriptionFilterBuilder};
use rmcp::service::{Subscription, SubscriptionEnd};
use serde_json::value::to_raw_value;
use tokio::time::timeout;

use super::Connection;
use crate::connection::era::Era;
use crate::wire::Limits;

/// How long a server may take to take note that it shall tell of changes, before it is listed.
const TAKES_NOTE: Duration = Duration::from_secs(1);
/// How long an older server may take to promise that it tells of a resource.
const SUBSCRIBES: Duration = Duration::from_secs(5);
/// How long to wait before a stream of changes that broke is asked for again, at first and at last.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
const LISTEN_AGAIN_AT_LAST: Duration = Duration::from_secs(60);

/// What came of a stream of changes.
enum StreamEnd {
    /// The server wants no more of it.
    Enough,
    /// It broke after something was told.
    Something,
    /// It broke before.
    Nothing,
}

/// Whether a server has been asked to tell of changes.
#[derive(Debug, Default)]
pub(super) enum Subscribed {
    /// Not in time.
    #[default]
    NotYet,
    /// It tells of them here.
    Open(Box<Subscription>),
    /// It does not offer that, or nobody wants it.
    Refused,
}

impl Connection {
    /// Since 2026-07-28 a server must be asked to tell of changes. Whoever does so before the lists are
    /// read misses none; a server that takes its time is listed all the same, and once more later.
    ///
    /// Of these resources every server that can is asked to tell.
    pub(crate) async fn subscribe(&self, resources: BTreeSet<String>) {
        self.followed.send_replace(resources.clone());
        if self.era != Era::Modern {
            return self.subscribe_to_each(resources).await;
        }
        let subscribed = match timeout(TAKES_NOTE, self.peer.listen(self.wanted())).await {
            Ok(Ok(subscription)) => {
                self.follow(&subscription);
                Subscribed::Open(Box::new(subscription))
            }
            Ok(Err(_)) => Subscribed::Refused,
            Err(_) => Subscribed::NotYet,
        };
        *self.subscribed.lock().await = subscribed;
    }

    /// Other resources are wanted from now on: a server that can is asked to tell of them.
    pub(crate) async fn follow_these(&self, resources: BTreeSet<String>) {
        let before = self.followed.borrow().clone();
        if before == resources {
            return;
        }
        let new = resources.difference(&before).cloned().collect();
        // On a stream of changes they are asked for anew.
        self.followed.send_replace(resources);
        if self.era != Era::Modern {
            self.subscribe_to_each(new).await;
        }
    }

    /// Nobody stays to hear of changes.
    pub(crate) async fn subscribe_to_nothing(&self) {
        *self.subscribed.lock().await = Subscribed::Refused;
    }

    async fn subscribe_to_each(&self, resources: BTreeSet<String>) {
        if !self.about.offers.resource_updates {
            return;
        }
        let asked = resources.into_iter().map(|uri| async move {
            let params = BTreeMap::from([("uri", to_raw_value(&uri).unwrap_or_default())]);
            let limits = Limits { timeout: SUBSCRIBES, cap: SUBSCRIBES };
            if self.request("resources/subscribe", params, limits).await.is_ok() {
                self.client.follow([uri]);
            }
        });
        join_all(asked).await;
    }

    /// How often a resource has changed since the connection was made; none if the server does not tell.
    pub fn changes_of(&self, uri: &str) -> Option<u64> {
        self.client.changes_of(uri)
    }

    fn wanted(&self) -> SubscriptionFilter {
        let filter = all_lists();
        let resources = self.followed.borrow();
        if resources.is_empty() {
            return filter.build();
        }
        filter.resource_subscriptions(resources.iter().cloned()).build()
    }

    /// A server takes on what it can.
    fn follow(&self, subscription: &Subscription) {
        let resources = subscription.acknowledged().resource_subscriptions.clone();
        self.client.follow(resources.unwrap_or_default());
    }

    /// Waits for changes, until the server wants no more of it. A stream that breaks is asked for again.
    pub(crate) async fn listen(&self) {
        if self.era != Era::Modern {
            return;
        }
        let mut subscribed = match std::mem::take(&mut *self.subscribed.lock().await) {
            Subscribed::Open(subscription) => Some(*subscription),
            Subscribed::NotYet => None,
            Subscribed::Refused => return,
        };
        // Nobody told what has changed meanwhile, and nothing is sent twice.
        let mut has_missed = subscribed.is_none();
        let mut backoff = Exponential::new(LISTEN_AGAIN, LISTEN_AGAIN_AT_LAST, Jitter::random());
        let mut followed = self.followed.subscribe();
        let mut is_offered = false;
        loop {
            followed.mark_unchanged();
            let listened = match subscribed.take() {
                Some(subscription) => Ok(subscription),
                None => self.peer.listen(self.wanted()).await,
            };
            match listened {
                Ok(subscription) => {
                    if has_missed {
                        self.follow(&subscription);
                        self.client.changed(|changes| {
                            changes.tools += 1;
                            changes.resources += 1;
                            changes.prompts += 1;
                        });
                    }
                    is_offered = true;
                    let heard = tokio::select! {
                        heard = self.hear_out(subscription) => Some(heard),
                        // Other resources: it is asked for anew at once.
                        Ok(()) = followed.changed() => None,
                    };
                    self.client.follow_nothing();
                    has_missed = true;
                    match heard {
                        Some(StreamEnd::Enough) => return,
                        Some(StreamEnd::Something) => backoff.reset(),
                        Some(StreamEnd::Nothing) => {}
                        None => continue,
                    }
                }
                // It does not offer that.
                Err(_) if !is_offered => return,
                Err(_) => {}
            }
            has_missed = true;
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Notes what a server tells, until its stream ends.
    async fn hear_out(&self, mut subscription: Subscription) -> StreamEnd {
        let mut heard = StreamEnd::Nothing;
        while let Ok(Some(notification)) = subscription.next().await {
            heard = StreamEnd::Something;
            if let ServerNotification::ResourceUpdatedNotification(updated) = &notification {
                self.client.updated(&updated.params.uri);
            }
            self.client.changed(|changes| match notification {
                ServerNotification::ToolListChangedNotification(_) => changes.tools += 1,
                ServerNotification::ResourceListChangedNotification(_) => changes.resources += 1,
                ServerNotification::PromptListChangedNotification(_) => changes.prompts += 1,
                _ => {}
            });
        }
        match subscription.end() {
            Some(SubscriptionEnd::Graceful(_) | SubscriptionEnd::Cancelled) => StreamEnd::Enough,
            _ => heard,
        }
    }
}

fn all_lists() -> SubscriptionFilterBuilder {
    SubscriptionFilter::builder()
        .tools_list_changed()
        .resources_list_changed()
        .prompts_list_changed()
}
