//! Hearing that a list has changed, since 2026-07-28 (T10).

use std::time::Duration;

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::{Subscription, SubscriptionEnd};

use tokio::time::timeout;

use super::Connection;
use crate::era::Era;

/// How long a server may take to take note that it shall tell of changes, before it is listed.
const TAKES_NOTE: Duration = Duration::from_millis(250);
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
    /// It does not offer that.
    Refused,
}

impl Connection {
    /// Since 2026-07-28 a server must be asked to tell of changes. Whoever does so before the lists are
    /// read misses none; a server that takes its time is listed all the same, and once more later.
    pub(crate) async fn subscribe(&self) {
        if self.era != Era::Modern {
            return;
        }
        let subscribed = match timeout(TAKES_NOTE, self.peer.listen(all_lists())).await {
            Ok(Ok(subscription)) => Subscribed::Open(Box::new(subscription)),
            Ok(Err(_)) => Subscribed::Refused,
            Err(_) => Subscribed::NotYet,
        };
        *self.subscribed.lock().await = subscribed;
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
                None => self.peer.listen(all_lists()).await,
            };
            match (listened, pause) {
                (Ok(subscription), _) => {
                    if has_missed {
                        self.client.changed(|changes| {
                            changes.tools += 1;
                            changes.resources += 1;
                            changes.prompts += 1;
                        });
                    }
                    match self.hear_out(subscription).await {
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

fn all_lists() -> SubscriptionFilter {
    SubscriptionFilter::builder()
        .tools_list_changed()
        .resources_list_changed()
        .prompts_list_changed()
        .build()
}
