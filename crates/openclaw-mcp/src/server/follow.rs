//! What clients of the hub follow at a server: changes of resources, and log messages (S6).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use openclaw_config::LogLevel;

use crate::server::Server;

/// Resources that clients have subscribed to, with the number of subscriptions.
#[derive(Debug, Default)]
pub(super) struct Followed(Mutex<BTreeMap<String, usize>>);

impl Followed {
    /// The resources.
    pub(super) fn resources(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Subscribes to changes of a resource, also on later connections, until
    /// [`unfollow`](Self::unfollow) is called as often.
    pub async fn follow(&self, uri: &str) {
        *self.followed.lock().entry(uri.to_owned()).or_default() += 1;
        self.upkeep.send_if_modified(|kept| kept.resources.insert(uri.to_owned()));
        // A change of the settings is noticed later; the subscriber expects it to be done.
        let resources = self.upkeep.borrow().resources.clone();
        if let Some(live) = self.connected() {
            live.connection().follow_these(resources).await;
        }
    }

    /// Ends a subscription. No request is sent to the server, because the configuration may name the
    /// resource as well; after the last one, a reload leaves it out.
    pub fn unfollow(&self, uri: &str) {
        let mut followed = self.followed.lock();
        if let Some(count) = followed.get_mut(uri) {
            *count -= 1;
            if *count == 0 {
                followed.remove(uri);
            }
        }
    }

    /// Asks the server for log messages of this level and above, unless it sends more already.
    pub async fn log_from(&self, level: LogLevel) {
        let is_changed = self.upkeep.send_if_modified(|kept| {
            let is_more = kept.log_level.is_none_or(|now| (level as u8) < now as u8);
            if is_more {
                kept.log_level = Some(level);
            }
            is_more
        });
        if let Some(live) = self.connected().filter(|_| is_changed) {
            live.connection().set_log_level(Some(level)).await;
        }
    }
}
