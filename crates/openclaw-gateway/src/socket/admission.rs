//! Who is connected. Those who were not let in yet give way: to the next of their address, and to anybody
//! when the house is full. So nobody can keep others out by being silent.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// All who are connected.
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

/// Somebody who was not let in yet. Gone when dropped.
#[derive(Debug)]
pub(super) struct Stranger {
    admission: Arc<Admission>,
    number: u64,
    leave: CancellationToken,
}

/// Somebody who was let in. Gone when dropped.
#[derive(Debug)]
pub(super) struct Guest(Arc<Admission>);

impl Admission {
    pub(super) fn new(most: usize, most_strangers: usize) -> Arc<Self> {
        Arc::new(Self { most, most_strangers, table: Mutex::default() })
    }

    /// Somebody has come. None if all places are taken by guests.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Stranger> {
        let mut table = self.lock();
        let of_address = table.strangers.values().filter(|(other, _)| *other == address).count();
        let must_leave = if of_address >= self.most_strangers {
            table.strangers.iter().find(|(_, (other, _))| *other == address).map(|(it, _)| *it)
        } else if table.guests + table.strangers.len() >= self.most {
            // Nobody to send away: all are guests.
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
        Some(Stranger { admission: Arc::clone(self), number, leave })
    }

    /// How many were let in.
    pub(super) fn guests(&self) -> usize {
        self.lock().guests
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stranger {
    /// It must give way.
    pub(super) fn leave(&self) -> CancellationToken {
        self.leave.clone()
    }

    /// It is let in. None if it had to give way just now.
    pub(super) fn let_in(self) -> Option<Guest> {
        let mut table = self.admission.lock();
        table.strangers.remove(&self.number)?;
        table.guests += 1;
        drop(table);
        Some(Guest(Arc::clone(&self.admission)))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.admission.lock().strangers.remove(&self.number);
    }
}

impl Drop for Guest {
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
        assert!(silent.let_in().is_none(), "it had to leave");
        let second = second.let_in().unwrap();
        assert!(admission.enter(HERE).is_none(), "two guests are all there is room for");
        drop((guest, second));
        assert_eq!(admission.guests(), 0);
        assert!(admission.enter(HERE).is_some());
    }
}
