//! What clients of the hub follow at a server: changes of resources, and log messages (S6).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use openclaw_config::LogLevel;

use crate::server::Server;

/// Resources that clients have subscribed to.
#[derive(Debug, Default)]
pub(super) struct Followed(Mutex<BTreeMap<String, FollowedResource>>);

#[derive(Debug, Default)]
struct FollowedResource {
    subscriptions: usize,
    /// Whether the configuration names it, too.
    is_configured: bool,
}

impl Followed {
    /// The resources.
    pub(super) fn resources(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, FollowedResource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Subscribes to changes of a resource, also on later connections, until
    /// [`unfollow`](Self::unfollow) is called as often.
    pub async fn follow(&self, uri: &str) {
        {
            let mut followed = self.followed.lock();
            let is_new = self.upkeep.send_if_modified(|kept| kept.resources.insert(uri.to_owned()));
            let resource = followed.entry(uri.to_owned()).or_default();
            resource.is_configured |= resource.subscriptions == 0 && !is_new;
            resource.subscriptions += 1;
        }
        // A change of the settings is noticed later; the subscriber expects it to be done.
        let resources = self.upkeep.borrow().resources.clone();
        if let Some(live) = self.connected() {
            live.connection().follow_these(resources).await;
        }
    }

    /// Ends a subscription. After the last one, the resource is forgotten, unless the configuration
    /// names it.
    pub fn unfollow(&self, uri: &str) {
        let mut followed = self.followed.lock();
        let Some(resource) = followed.get_mut(uri) else { return };
        resource.subscriptions -= 1;
        if resource.subscriptions > 0 {
            return;
        }
        let is_configured = resource.is_configured;
        followed.remove(uri);
        if !is_configured {
            self.upkeep.send_if_modified(|kept| kept.resources.remove(uri));
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
