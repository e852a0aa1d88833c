//! Hearing that a list or a resource has changed (T10, B14). Of lists, older servers tell by themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model::{ServerNotification, SubscriptionFilter, SubscriptionFilterBuilder};
use rmcp::service::{Subscription, SubscriptionEnd};
use serde_json::value::to_raw_value;
use tokio::time::timeout;

use super::Connection;
use crate::era::Era;
use crate::wire::Limits;

/// How long a server may take to take note that it shall tell of changes, before it is listed.
const TAKES_NOTE: Duration = Duration::from_secs(1);
/// How long an older server may take to promise that it tells of a resource.
const SUBSCRIBES: Duration = Duration::from_secs(5);
/// How long to wait before a stream of changes that broke is asked for again, at first and at last.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
const LISTEN_AGAIN_AT_LAST: Duration = Duration::from_secs(60);

/// What came of a stream of changes.
enum Heard {
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
    pub(crate) async fn subscribe(&self, resources: Vec<String>) {
        let resources = self.followed.get_or_init(|| resources);
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

    /// Nobody stays to hear of changes.
    pub(crate) async fn subscribe_to_nothing(&self) {
        *self.subscribed.lock().await = Subscribed::Refused;
    }

    async fn subscribe_to_each(&self, resources: &[String]) {
        if !self.about.offers.resource_updates {
            return;
        }
        let asked = resources.iter().map(|uri| async move {
            let params = BTreeMap::from([("uri", to_raw_value(uri).unwrap_or_default())]);
            let limits = Limits { timeout: SUBSCRIBES, cap: SUBSCRIBES };
            if self.request("resources/subscribe", params, limits).await.is_ok() {
                self.client.follow([uri.clone()]);
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
        match self.followed.get() {
            Some(resources) if !resources.is_empty() => {
                filter.resource_subscriptions(resources.iter().cloned()).build()
            }
            _ => filter.build(),
        }
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
        let mut pause = None;
        loop {
            let listened = match subscribed.take() {
                Some(subscription) => Ok(subscription),
                None => self.peer.listen(self.wanted()).await,
            };
            match (listened, pause) {
                (Ok(subscription), _) => {
                    if has_missed {
                        self.follow(&subscription);
                        self.client.changed(|changes| {
                            changes.tools += 1;
                            changes.resources += 1;
                            changes.prompts += 1;
                        });
                    }
                    let heard = self.hear_out(subscription).await;
                    self.client.follow_nothing();
                    match heard {
                        Heard::Enough => return,
                        Heard::Something => pause = None,
                        Heard::Nothing => {}
                    }
                }
                // It does not offer that.
                (Err(_), None) => return,
                (Err(_), Some(_)) => {}
            }
            has_missed = true;
            let next = pause.map_or(LISTEN_AGAIN, |pause: Duration| pause.saturating_mul(2));
            let next = next.min(LISTEN_AGAIN_AT_LAST);
            pause = Some(next);
            tokio::time::sleep(next).await;
        }
    }

    /// Notes what a server tells, until its stream ends.
    async fn hear_out(&self, mut subscription: Subscription) -> Heard {
        let mut heard = Heard::Nothing;
        while let Ok(Some(notification)) = subscription.next().await {
            heard = Heard::Something;
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
            Some(SubscriptionEnd::Graceful(_) | SubscriptionEnd::Cancelled) => Heard::Enough,
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
