//! The open connections. Unauthenticated connections are closed to make room for newer ones: of the
//! same address, or of any address when the limit is reached. So silent clients cannot keep others
//! out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The open connections.
#[derive(Debug)]
pub(super) struct Admission {
    most: usize,
    most_strangers: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    guests: usize,
    /// Oldest first.
    strangers: BTreeMap<u64, (IpAddr, CancellationToken)>,
}

/// A connection that is not authenticated yet. Unregistered when dropped.
#[derive(Debug)]
pub(super) struct UnauthenticatedConnection {
    admission: Arc<Admission>,
    number: u64,
    leave: CancellationToken,
}

/// An authenticated connection. Unregistered when dropped.
#[derive(Debug)]
pub(super) struct AuthenticatedConnection(Arc<Admission>);

impl Admission {
    pub(super) fn new(most: usize, most_strangers: usize) -> Arc<Self> {
        Arc::new(Self { most, most_strangers, table: Mutex::default() })
    }

    /// Registers a new connection. Returns `None` if all places are taken by authenticated ones.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<UnauthenticatedConnection> {
        let mut table = self.lock();
        let of_address = table.strangers.values().filter(|(other, _)| *other == address).count();
        let must_leave = if of_address >= self.most_strangers {
            table.strangers.iter().find(|(_, (other, _))| *other == address).map(|(it, _)| *it)
        } else if table.guests + table.strangers.len() >= self.most {
            // If there is none to close, all are authenticated.
            Some(*table.strangers.keys().next()?)
        } else {
            None
        };
        if let Some((_, leave)) = must_leave.and_then(|number| table.strangers.remove(&number)) {
            leave.cancel();
        }
        table.next += 1;
        let (number, leave) = (table.next, CancellationToken::new());
        table.strangers.insert(number, (address, leave.clone()));
        drop(table);
        Some(UnauthenticatedConnection { admission: Arc::clone(self), number, leave })
    }

    /// Number of authenticated connections.
    pub(super) fn guests(&self) -> usize {
        self.lock().guests
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnauthenticatedConnection {
    /// Cancelled when the connection must be closed.
    pub(super) fn leave(&self) -> CancellationToken {
        self.leave.clone()
    }

    /// Marks the connection as authenticated. Returns `None` if it was just closed to make room.
    pub(super) fn let_in(self) -> Option<AuthenticatedConnection> {
        let mut table = self.admission.lock();
        table.strangers.remove(&self.number)?;
        table.guests += 1;
        drop(table);
        Some(AuthenticatedConnection(Arc::clone(&self.admission)))
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        self.admission.lock().strangers.remove(&self.number);
    }
}

impl Drop for AuthenticatedConnection {
    fn drop(&mut self) {
        self.0.lock().guests -= 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "these are tests")]

    use super::{Admission, IpAddr};

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn the_oldest_stranger_of_an_address_gives_way_to_the_next() {
        let admission = Admission::new(10, 2);
        let strangers = [HERE, THERE, HERE, HERE].map(|it| admission.enter(it).unwrap());
        let gone = strangers.each_ref().map(|it| it.leave().is_cancelled());
        assert_eq!(gone, [true, false, false, false]);
    }

    #[test]
    fn guests_stay_and_strangers_give_way_when_the_house_is_full() {
        let admission = Admission::new(2, 2);
        let guest = admission.enter(HERE).unwrap().let_in().unwrap();
        let silent = admission.enter(HERE).unwrap();
        let second = admission.enter(THERE).unwrap();
        assert!(silent.leave().is_cancelled());
        assert!(silent.let_in().is_none(), "it was closed");
        let second = second.let_in().unwrap();
        assert!(admission.enter(HERE).is_none(), "only two fit");
        drop((guest, second));
        assert_eq!(admission.guests(), 0);
        assert!(admission.enter(HERE).is_some());
    }
}
