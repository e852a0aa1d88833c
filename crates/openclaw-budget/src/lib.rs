//! Budgets of bytes: how much memory clients may take, each and together.
//!
//! What a client sends, and what waits for it, is counted by [`BytePermit`]s of its [`ByteBudget`], which
//! is part of one for all clients. What is small is not counted, because the number of such things has
//! bounds of its own; so an ordinary message costs one comparison.

mod tree;

pub use tree::{member_count, tree_bytes};

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Up to this many bytes of a permit are not counted; beyond, they are counted in steps of it.
pub const FREE: usize = 64 * 1024;
/// With this many clients, those without permits are forgotten.
const MAX_IDLE: usize = 256;

/// How many bytes may be in use.
#[derive(Debug)]
pub struct ByteBudget {
    most: usize,
    used: AtomicUsize,
    /// The budget that this one is a part of.
    whole: Option<Arc<ByteBudget>>,
}

/// Why there are no bytes left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetSpent {
    /// The budget itself is used up.
    #[error("messages and results of this client take {} MiB of memory already; retry when some are done", .0 / 1024 / 1024)]
    Own(usize),
    /// The budget that it is a part of is used up.
    #[error("messages and results of all clients take {} MiB of memory already; retry later", .0 / 1024 / 1024)]
    Whole(usize),
}

impl ByteBudget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicUsize::new(0), whole: None })
    }

    /// A budget that is part of this one.
    #[must_use]
    pub fn part(self: &Arc<Self>, most: usize) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicUsize::new(0), whole: Some(Arc::clone(self)) })
    }

    /// Returns the number of bytes in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns a permit for nothing yet.
    #[must_use]
    pub fn permit(self: &Arc<Self>) -> BytePermit {
        BytePermit { budget: Arc::clone(self), counted: 0 }
    }

    /// Returns a permit for this many bytes.
    ///
    /// # Errors
    /// If there are too few left.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<BytePermit, BudgetSpent> {
        let mut permit = self.permit();
        permit.resize(bytes)?;
        Ok(permit)
    }

    /// Like [`hold`](Self::hold), but counts every byte, for things that may be many.
    ///
    /// # Errors
    /// If there are too few left.
    pub fn hold_exactly(self: &Arc<Self>, bytes: usize) -> Result<BytePermit, BudgetSpent> {
        let mut permit = self.permit();
        permit.resize_exactly(bytes)?;
        Ok(permit)
    }

    fn take(&self, bytes: usize) -> Result<(), BudgetSpent> {
        self.add(bytes).map_err(|()| BudgetSpent::Own(self.most))?;
        let Some(whole) = &self.whole else { return Ok(()) };
        whole.add(bytes).map_err(|()| {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            BudgetSpent::Whole(whole.most)
        })
    }

    fn add(&self, bytes: usize) -> Result<(), ()> {
        let sum = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.most);
        let added = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        added.map(drop).map_err(drop)
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Bytes in use, until it is dropped.
#[derive(Debug)]
pub struct BytePermit {
    budget: Arc<ByteBudget>,
    counted: usize,
}

impl BytePermit {
    /// Sets how many bytes are in use. An error leaves it as it was.
    ///
    /// # Errors
    /// If there are too few left.
    pub fn resize(&mut self, bytes: usize) -> Result<(), BudgetSpent> {
        self.resize_exactly(match bytes {
            0..=FREE => 0,
            more => more.checked_next_multiple_of(FREE).unwrap_or(usize::MAX),
        })
    }

    /// Like [`resize`](Self::resize), but counts every byte, for things that may be many.
    ///
    /// # Errors
    /// If there are too few left.
    pub fn resize_exactly(&mut self, wanted: usize) -> Result<(), BudgetSpent> {
        if wanted > self.counted {
            self.budget.take(wanted - self.counted)?;
        } else if wanted < self.counted {
            self.budget.give_back(self.counted - wanted);
        }
        self.counted = wanted;
        Ok(())
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.budget.give_back(self.counted);
        }
    }
}

/// The budgets of clients as parts of one.
#[derive(Debug)]
pub struct ClientBudgets<K> {
    all: Arc<ByteBudget>,
    each: usize,
    clients: Mutex<HashMap<K, Arc<ByteBudget>>>,
}

impl<K: Clone + Eq + Hash> ClientBudgets<K> {
    /// Budgets of `each` bytes, and `all` together.
    #[must_use]
    pub fn new(all: usize, each: usize) -> Self {
        Self { all: ByteBudget::new(all), each, clients: Mutex::default() }
    }

    /// Returns the budget of a client.
    #[must_use]
    pub fn of(&self, client: &K) -> Arc<ByteBudget> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = clients.get(client) {
            return Arc::clone(budget);
        }
        if clients.len() >= MAX_IDLE {
            clients.retain(|_, budget| Arc::strong_count(budget) > 1);
        }
        let budget = self.all.part(self.each);
        clients.insert(client.clone(), Arc::clone(&budget));
        budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_beyond_what_is_small_and_returned_when_a_permit_is_dropped() {
        let budget = ByteBudget::new(10 * FREE);
        let small = budget.hold(FREE).unwrap();
        assert_eq!(budget.used(), 0);
        let mut permit = budget.hold(FREE + 1).unwrap();
        assert_eq!(budget.used(), 2 * FREE);
        permit.resize(10 * FREE).unwrap();
        assert_eq!(permit.resize(10 * FREE + 1), Err(BudgetSpent::Own(10 * FREE)));
        assert_eq!(permit.resize(usize::MAX), Err(BudgetSpent::Own(10 * FREE)));
        assert_eq!(budget.used(), 10 * FREE, "an error changes nothing");
        assert!(budget.hold(2 * FREE).is_err());
        permit.resize(5).unwrap();
        assert_eq!(budget.used(), 0);
        permit.resize(3 * FREE).unwrap();
        drop((small, permit));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_client_that_takes_all_of_its_budget_leaves_others_theirs() {
        let budgets = ClientBudgets::new(10 * FREE, 6 * FREE);
        let greedy = budgets.of(&"greedy");
        let taken = greedy.hold(6 * FREE).unwrap();
        assert_eq!(budgets.of(&"greedy").hold(2 * FREE).unwrap_err(), BudgetSpent::Own(6 * FREE));
        let other = budgets.of(&"other");
        let permit = other.hold(4 * FREE).unwrap();
        assert_eq!(other.hold(2 * FREE).unwrap_err(), BudgetSpent::Whole(10 * FREE));
        assert_eq!(other.used(), 4 * FREE, "what did not fit is not counted");
        drop((taken, permit));
        other.hold(6 * FREE).unwrap();
    }

    #[test]
    fn clients_that_are_gone_are_forgotten_when_there_are_many() {
        let budgets = ClientBudgets::new(FREE, FREE);
        let kept = budgets.of(&"kept".to_owned());
        for number in 0..2 * MAX_IDLE {
            let _ = budgets.of(&number.to_string());
        }
        assert!(budgets.clients.lock().unwrap().len() <= MAX_IDLE);
        assert!(Arc::ptr_eq(&kept, &budgets.of(&"kept".to_owned())));
    }
}
