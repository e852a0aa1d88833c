//! The open connections. Unauthenticated connections are closed to make room for newer ones: first
//! those that have not sent a request, then the oldest; of the same address, or of the address with
//! the most of them when there is no room for any. So neither silent clients nor a flood of
//! connections keep others out: there is room for enough that a client can authenticate before its
//! turn to be closed comes.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::SocketLimits;

/// The open connections.
#[derive(Debug)]
pub(super) struct OpenConnections {
    /// Maximum number of authenticated connections.
    guests: usize,
    /// Maximum number of unauthenticated connections, and of those per address.
    strangers: usize,
    strangers_per_address: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    guests: usize,
    /// Oldest first.
    strangers: BTreeMap<u64, Stranger>,
    /// How many of them each address has.
    of_address: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    /// Whether it has become a WebSocket.
    is_upgraded: bool,
    leave: CancellationToken,
}

impl Table {
    fn remove(&mut self, number: u64) -> Option<Stranger> {
        let stranger = self.strangers.remove(&number)?;
        if let Some(count) = self.of_address.get_mut(&stranger.address) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&stranger.address);
            }
        }
        Some(stranger)
    }

    /// Closes one connection of this address.
    fn make_room(&mut self, address: IpAddr) {
        let of_address = || self.strangers.iter().filter(|(_, it)| it.address == address);
        let is_silent = |it: &(&u64, &Stranger)| !it.1.is_upgraded;
        let first = of_address().find(is_silent).or_else(|| of_address().next());
        let number = first.map(|(number, _)| *number);
        if let Some(stranger) = number.and_then(|number| self.remove(number)) {
            stranger.leave.cancel();
        }
    }
}

/// A connection that is not authenticated yet. Unregistered when dropped.
#[derive(Debug)]
pub(super) struct UnauthenticatedConnection {
    admission: Arc<OpenConnections>,
    number: u64,
    leave: CancellationToken,
}

/// An authenticated connection. Unregistered when dropped.
#[derive(Debug)]
pub(super) struct AuthenticatedConnection(Arc<OpenConnections>);

impl OpenConnections {
    pub(super) fn new(limits: &SocketLimits) -> Arc<Self> {
        Arc::new(Self {
            guests: limits.connections,
            strangers: limits.strangers,
            strangers_per_address: limits.strangers_per_address,
            table: Mutex::default(),
        })
    }

    /// Registers a new connection. Returns `None` if the maximum number is authenticated.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<UnauthenticatedConnection> {
        let mut table = self.table.lock();
        if table.guests >= self.guests {
            return None;
        }
        if table.of_address.get(&address).is_some_and(|count| *count >= self.strangers_per_address)
        {
            table.make_room(address);
        } else if table.strangers.len() >= self.strangers {
            let most = table.of_address.iter().max_by_key(|(_, count)| **count);
            let most = most.map(|(address, _)| *address)?;
            table.make_room(most);
        }
        table.next += 1;
        let (number, leave) = (table.next, CancellationToken::new());
        let stranger = Stranger { address, is_upgraded: false, leave: leave.clone() };
        table.strangers.insert(number, stranger);
        *table.of_address.entry(address).or_default() += 1;
        drop(table);
        Some(UnauthenticatedConnection { admission: Arc::clone(self), number, leave })
    }

    /// Number of authenticated connections.
    pub(super) fn guests(&self) -> usize {
        self.table.lock().guests
    }
}

impl UnauthenticatedConnection {
    /// Cancelled when the connection must be closed.
    pub(super) fn leave(&self) -> CancellationToken {
        self.leave.clone()
    }

    /// Marks the connection as a WebSocket.
    pub(super) fn upgraded(&self) {
        if let Some(stranger) = self.admission.table.lock().strangers.get_mut(&self.number) {
            stranger.is_upgraded = true;
        }
    }

    /// Marks the connection as authenticated. Returns `None` if it was just closed to make room, or
    /// if too many are authenticated.
    pub(super) fn let_in(self) -> Option<AuthenticatedConnection> {
        let mut table = self.admission.table.lock();
        table.remove(self.number)?;
        if table.guests >= self.admission.guests {
            return None;
        }
        table.guests += 1;
        drop(table);
        Some(AuthenticatedConnection(Arc::clone(&self.admission)))
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        self.admission.table.lock().remove(self.number);
    }
}

impl Drop for AuthenticatedConnection {
    fn drop(&mut self) {
        self.0.table.lock().guests -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{IpAddr, OpenConnections, SocketLimits};

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn admission(connections: usize, strangers: usize, per_address: usize) -> Arc<OpenConnections> {
        let strangers_per_address = per_address;
        let limits = SocketLimits {
            connections,
            strangers,
            strangers_per_address,
            ..SocketLimits::default()
        };
        OpenConnections::new(&limits)
    }

    #[test]
    fn the_oldest_stranger_of_an_address_gives_way_to_the_next() {
        let admission = admission(10, 10, 2);
        let strangers = [HERE, THERE, HERE, HERE].map(|it| admission.enter(it).unwrap());
        let gone = strangers.each_ref().map(|it| it.leave().is_cancelled());
        assert_eq!(gone, [true, false, false, false]);
    }

    #[test]
    fn a_stranger_that_sends_nothing_gives_way_before_one_that_sends_a_request() {
        let admission = admission(10, 10, 2);
        let [first, second] = [HERE, HERE].map(|it| admission.enter(it).unwrap());
        first.upgraded();
        let third = admission.enter(HERE).unwrap();
        assert!(second.leave().is_cancelled() && !first.leave().is_cancelled());
        third.upgraded();
        let fourth = admission.enter(HERE).unwrap();
        assert!(first.leave().is_cancelled() && !fourth.leave().is_cancelled());
    }

    #[test]
    fn the_address_with_the_most_strangers_gives_way_when_the_house_is_full() {
        let admission = admission(10, 3, 3);
        let strangers = [THERE, HERE, HERE, THERE].map(|it| admission.enter(it).unwrap());
        let gone = strangers.each_ref().map(|it| it.leave().is_cancelled());
        assert_eq!(gone, [false, true, false, false]);
        drop(strangers);
        assert!(admission.table.lock().of_address.is_empty());
    }

    #[test]
    fn guests_stay_and_no_more_than_the_maximum_get_in() {
        let admission = admission(2, 2, 2);
        let guest = admission.enter(HERE).unwrap().let_in().unwrap();
        let [second, third] = [HERE, THERE].map(|it| admission.enter(it).unwrap());
        let second = second.let_in().unwrap();
        assert!(third.let_in().is_none() && admission.enter(HERE).is_none(), "only two fit");
        drop((guest, second));
        assert_eq!(admission.guests(), 0);
        assert!(admission.enter(HERE).is_some());
    }
}
