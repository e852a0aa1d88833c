//! Where a server's inventory lies: it outlives connections, and whoever builds a catalogue learns
//! when it has changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::inventory::{Inventory, Update};
use crate::store::memory::{KnownProtocol, Memory};

/// Counts the changes of all shelves that share it.
#[derive(Debug, Clone, Default)]
pub struct Revision(Arc<AtomicU64>);

impl Revision {
    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn bump(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// A server's inventory.
#[derive(Debug)]
pub struct InventoryCache {
    server: String,
    inventory: ArcSwap<Inventory>,
    /// Whoever makes a new inventory of the old one has its turn: no change is lost.
    turn: Mutex<()>,
    revision: Revision,
    memory: Arc<Memory>,
}

impl InventoryCache {
    pub(crate) fn new(
        server: &str,
        inventory: Inventory,
        revision: Revision,
        memory: Memory,
    ) -> Self {
        let inventory = ArcSwap::from_pointee(inventory);
        let (turn, memory) = (Mutex::new(()), Arc::new(memory));
        Self { server: server.to_owned(), inventory, turn, revision, memory }
    }

    /// The server's name.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What lies there.
    pub fn inventory(&self) -> Arc<Inventory> {
        self.inventory.load_full()
    }

    /// Puts the inventory of a new connection there.
    pub(crate) fn put(&self, inventory: Inventory) {
        self.replace(|_| inventory);
    }

    /// Puts lists there that were read anew. Whether that makes a difference.
    pub(crate) fn update(&self, update: Update) -> bool {
        self.replace(|old| old.with(update))
    }

    /// Takes a tool away that the server says it does not have (B11).
    pub(crate) fn remove_tool(&self, tool: &str) {
        self.replace(|old| old.without_tool(tool));
    }

    /// Whether what lies there now is something else than before.
    fn replace(&self, make: impl FnOnce(&Inventory) -> Inventory) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.inventory.load_full();
        let new = make(&old);
        let differs = *old != new;
        if differs {
            self.inventory.store(Arc::new(new));
            self.revision.bump();
        }
        differs
    }

    /// Remembers what lies there for the next run. A large inventory takes a while: not on a thread that
    /// others wait for.
    pub(crate) async fn remember(&self, manner: KnownProtocol) {
        let (memory, inventory) = (Arc::clone(&self.memory), self.inventory());
        // A small one takes less than to start a thread.
        if inventory.is_small() {
            return memory.keep(manner, &inventory);
        }
        let kept = tokio::task::spawn_blocking(move || memory.keep(manner, &inventory)).await;
        if let Err(error) = kept {
            tracing::debug!(server = %self.server, %error, "what was learnt cannot be remembered");
        }
    }
}
