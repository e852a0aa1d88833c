//! The cached inventory of a server. It outlives connections and counts its changes, so that
//! catalogues know when to rebuild.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use openclaw_metrics::ServerSeries;
use tokio::sync::Notify;

use crate::inventory::{Inventory, Update};
use crate::store::memory::{KnownProtocol, Memory};
use openclaw_mcp_client::listing::ListedSkill;

/// Counts the changes of all caches that share it.
#[derive(Debug, Clone, Default)]
pub struct Revision(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    changes: AtomicU64,
    changed: Notify,
}

impl Revision {
    /// The current count.
    pub fn get(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// Waits until the count is another one than `known`, and returns it. Safe to cancel.
    pub async fn after(&self, known: u64) -> u64 {
        loop {
            // Registered before the check: a change after it wakes this task.
            let mut changed = std::pin::pin!(self.0.changed.notified());
            changed.as_mut().enable();
            let now = self.get();
            if now != known {
                return now;
            }
            changed.await;
        }
    }

    pub(crate) fn bump(&self) {
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        self.0.changed.notify_waiters();
    }
}

/// The cached inventory of a server.
#[derive(Debug)]
pub struct InventoryCache {
    server: String,
    inventory: ArcSwap<Inventory>,
    /// Whether the server listed it, now or in an earlier run; false while a predecessor's is offered.
    is_own: AtomicBool,
    /// Serializes read-modify-write, so that no change is lost.
    turn: Mutex<()>,
    revision: Revision,
    memory: Arc<Memory>,
    series: Option<Arc<ServerSeries>>,
}

impl InventoryCache {
    pub(crate) fn new(
        server: &str,
        inventory: Inventory,
        is_own: bool,
        revision: Revision,
        memory: Memory,
    ) -> Self {
        let inventory = ArcSwap::from_pointee(inventory);
        let turn = Mutex::new(());
        let memory = Arc::new(memory);
        let is_own = AtomicBool::new(is_own);
        let server = server.to_owned();
        let series = None;
        Self { server, inventory, is_own, turn, revision, memory, series }
    }

    /// Counts changed tools and suspicious descriptions in these series.
    pub(crate) fn counted_in(mut self, series: Option<Arc<ServerSeries>>) -> Self {
        if let Some(series) = &series
            && self.is_own()
        {
            let findings = self.inventory.load().findings_since(&Inventory::default());
            series.description_findings.add(findings);
        }
        self.series = series;
        self
    }

    /// Whether the server listed the inventory itself.
    pub(crate) fn is_own(&self) -> bool {
        self.is_own.load(Ordering::Acquire)
    }

    /// The name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The current inventory.
    pub fn inventory(&self) -> Arc<Inventory> {
        self.inventory.load_full()
    }

    /// Stores the inventory of a new connection.
    pub(crate) fn put(&self, inventory: Inventory) {
        self.change(|known| *known = inventory);
    }

    /// Replaces the lists that were read again. Returns whether anything changed.
    pub(crate) fn update(&self, update: Update) -> bool {
        self.change(|known| update.put_into(known))
    }

    /// Adds a skill that the server does not list.
    pub(crate) fn add_skill(&self, skill: Arc<ListedSkill>) {
        self.change(|known| known.add_skill(skill));
    }

    /// Removes a tool that the server does not know any more (B11).
    pub(crate) fn remove_tool(&self, tool: &str) {
        self.change(|known| known.tools.retain(|known| known.name != tool));
    }

    /// Returns whether the inventory changed.
    fn change(&self, change: impl FnOnce(&mut Inventory)) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.inventory.load_full();
        let mut new = Inventory::clone(&old);
        change(&mut new);
        let differs = *old != new;
        if differs {
            if let Some(series) = &self.series {
                series.tools_changed.add(old.changed_tools(&new));
                series.description_findings.add(new.findings_since(&old));
            }
            self.inventory.store(Arc::new(new));
        }
        let was_own = self.is_own.swap(true, Ordering::AcqRel);
        if differs || !was_own {
            self.revision.bump();
        }
        differs
    }

    /// Writes the inventory to disk for the next run, a large one on a blocking thread.
    pub(crate) async fn remember(&self, manner: KnownProtocol) {
        let memory = Arc::clone(&self.memory);
        let inventory = self.inventory();
        // A small one is written faster than a thread is started.
        if inventory.is_small() {
            return memory.keep(manner, &inventory);
        }
        let kept = tokio::task::spawn_blocking(move || memory.keep(manner, &inventory)).await;
        if let Err(error) = kept {
            tracing::debug!(server = %self.server, %error, "cannot write the inventory");
        }
    }
}
