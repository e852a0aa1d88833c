//! Subscriptions to changes of lists and resources (T10, B14). Older servers report changed lists
//! without a subscription.

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
use crate::host::Changes;
use crate::wire::TimeLimits;

/// How long to wait for the acknowledgement of a subscription before the lists are read.
const TAKES_NOTE: Duration = Duration::from_secs(1);
/// Timeout of `resources/subscribe` on older servers.
const SUBSCRIBES: Duration = Duration::from_secs(5);
/// First and longest delay before a broken stream of changes is requested again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
const LISTEN_AGAIN_AT_LAST: Duration = Duration::from_secs(60);

/// How a stream of changes ended.
enum StreamEnd {
    /// The server closed it gracefully, or it was cancelled.
    Enough,
    /// It broke after at least one notification.
    Something,
    /// It broke before any notification.
    Nothing,
}

/// The state of the subscription to changes.
#[derive(Debug, Default)]
pub(super) enum Subscribed {
    /// Not acknowledged in time.
    #[default]
    NotYet,
    /// Notifications arrive here.
    Open(Box<Subscription>),
    /// The server does not support it, or it is not wanted.
    Refused,
}

impl Connection {
    /// Subscribes to changes of lists, which servers require since 2026-07-28, and of `resources`.
    ///
    /// Called before the lists are read, so that no change is missed. If the server acknowledges
    /// too late, the lists are read anyway, and again later.
    pub async fn subscribe(&self, resources: BTreeSet<String>) {
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

    /// Replaces the set of watched resources, and subscribes to the new ones.
    pub async fn follow_these(&self, resources: BTreeSet<String>) {
        let before = self.followed.borrow().clone();
        if before == resources {
            return;
        }
        let new = resources.difference(&before).cloned().collect();
        self.client.forget_others(&resources);
        // A stream of changes is reopened with the new set.
        self.followed.send_replace(resources);
        if self.era != Era::Modern {
            self.subscribe_to_each(new).await;
        }
    }

    /// Disables the subscription: the caller does not wait for changes.
    pub async fn subscribe_to_nothing(&self) {
        *self.subscribed.lock().await = Subscribed::Refused;
    }

    async fn subscribe_to_each(&self, resources: BTreeSet<String>) {
        if !self.about.offers.resource_updates {
            return;
        }
        let asked = resources.into_iter().map(|uri| async move {
            let params = BTreeMap::from([("uri", to_raw_value(&uri).unwrap_or_default())]);
            let limits = TimeLimits { timeout: SUBSCRIBES, cap: SUBSCRIBES };
            if self.request("resources/subscribe", params, limits).await.is_ok() {
                self.client.follow([uri]);
            }
        });
        join_all(asked).await;
    }

    /// Returns how often a resource has changed since the connection was opened; `None` if the
    /// server does not report it.
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

    /// Records the resources that the server acknowledged.
    fn follow(&self, subscription: &Subscription) {
        let resources = subscription.acknowledged().resource_subscriptions.clone();
        self.client.follow(resources.unwrap_or_default());
    }

    /// Processes changes, and makes up for those that were missed.
    pub async fn listen(&self) {
        match self.era {
            Era::Legacy => self.restore().await,
            Era::Modern => self.listen_to_stream().await,
        }
    }

    /// Restores what a session held whenever it was renewed, and reads again what may have changed
    /// while nothing could be received. The log level is never set, and roots are sent on request.
    async fn restore(&self) {
        let Some(mut interruptions) = self.interruptions.clone() else { return };
        while interruptions.changed().await.is_ok() {
            interruptions.borrow_and_update();
            self.client.follow_nothing();
            // Otherwise the first notifications would be missed.
            self.lane.until_listening().await;
            let resources = self.followed.borrow().clone();
            self.subscribe_to_each(resources).await;
            self.client.changed(Changes::count_all);
            // A server that ends its stream all the time would be asked all the time.
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }

    /// Processes changes until the server ends the stream. A broken stream is requested again.
    async fn listen_to_stream(&self) {
        let mut subscribed = match std::mem::take(&mut *self.subscribed.lock().await) {
            Subscribed::Open(subscription) => Some(*subscription),
            Subscribed::NotYet => None,
            Subscribed::Refused => return,
        };
        // Changes while there was no stream are not reported, and not repeated.
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
                        self.client.changed(Changes::count_all);
                    }
                    is_offered = true;
                    let heard = tokio::select! {
                        heard = self.read_events(subscription) => Some(heard),
                        // The set of resources changed: the stream is reopened immediately.
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
                // The server does not support subscriptions.
                Err(_) if !is_offered => return,
                Err(_) => {}
            }
            has_missed = true;
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Records the notifications of a stream until it ends.
    async fn read_events(&self, mut subscription: Subscription) -> StreamEnd {
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
