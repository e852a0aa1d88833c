//! Hearing that a list has changed, since 2026-07-28 (T10).

use std::time::Duration;

use rmcp::model::{ServerNotification, SubscriptionFilter};
use rmcp::service::{Subscription, SubscriptionEnd};

use super::Connection;
use crate::era::Era;

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

impl Connection {
    /// Since 2026-07-28 a server must be asked to tell of changes: waits for them, until the server
    /// wants no more of it. A stream that breaks is asked for again.
    pub(crate) async fn listen(&self) {
        if self.era != Era::Modern {
            return;
        }
        let filter = SubscriptionFilter::builder()
            .tools_list_changed()
            .resources_list_changed()
            .prompts_list_changed()
            .build();
        let mut pause = None;
        loop {
            match (self.peer.listen(filter.clone()).await, pause) {
                (Ok(subscription), _) => {
                    if pause.is_some() {
                        // Nobody told what has changed meanwhile, and nothing is sent twice.
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
