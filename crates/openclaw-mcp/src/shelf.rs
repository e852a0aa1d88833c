//! Where a server's inventory lies: it outlives connections, and whoever builds a catalogue learns
//! when it has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use crate::connection::Connection;
use crate::inventory::Inventory;
use crate::memory::Memory;

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
pub struct Shelf {
    server: String,
    inventory: ArcSwap<Inventory>,
    revision: Revision,
    memory: Memory,
}

impl Shelf {
    pub(crate) fn new(
        server: &str,
        inventory: Inventory,
        revision: Revision,
        memory: Memory,
    ) -> Self {
        let inventory = ArcSwap::from_pointee(inventory);
        Self { server: server.to_owned(), inventory, revision, memory }
    }

    /// The server's name.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What lies there.
    pub fn inventory(&self) -> Arc<Inventory> {
        self.inventory.load_full()
    }

    /// Puts a new inventory there, and remembers it for the next run. If it is the old one, nothing
    /// happens.
    pub(crate) fn put(&self, inventory: Inventory, connection: &Connection) {
        self.memory.keep(connection.era(), connection.flavour(), &inventory);
        self.replace(inventory);
    }

    /// Takes a tool away that the server says it does not have (B11).
    pub(crate) fn remove_tool(&self, tool: &str) {
        self.replace(self.inventory().without_tool(tool));
    }

    fn replace(&self, inventory: Inventory) {
        if *self.inventory.load_full() != inventory {
            self.inventory.store(Arc::new(inventory));
            self.revision.bump();
        }
    }
}
