//! Counts wrong tokens per address: after too many, the address is blocked for a while.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum number of addresses kept.
const MAX_ADDRESSES: usize = 4_096;

/// Wrong tokens per address.
#[derive(Debug)]
pub(super) struct TokenAttempts {
    most: u32,
    window: Duration,
    table: Mutex<HashMap<IpAddr, FailedAttempts>>,
}

#[derive(Debug, Clone, Copy)]
struct FailedAttempts {
    count: u32,
    until: Instant,
}

impl TokenAttempts {
    pub(super) fn new(most: u32, window: Duration) -> Self {
        Self { most, window, table: Mutex::default() }
    }

    /// How long this address is still blocked.
    pub(super) fn refused(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let table = self.table.lock();
        let wrong = table.get(&network(address)).filter(|wrong| wrong.until > now)?;
        (wrong.count >= self.most).then(|| wrong.until - now)
    }

    /// Counts a wrong token of this address. Returns whether the address is blocked from now on.
    pub(super) fn wrong(&self, address: IpAddr, now: Instant) -> bool {
        let mut table = self.table.lock();
        let address = network(address);
        if table.len() >= MAX_ADDRESSES && !table.contains_key(&address) {
            make_room(&mut table, now);
        }
        let fresh = FailedAttempts { count: 0, until: now + self.window };
        let wrong = table.entry(address).or_insert(fresh);
        if wrong.until <= now {
            *wrong = fresh;
        }
        // Further attempts do not extend the block.
        if wrong.count >= self.most {
            return false;
        }
        wrong.count += 1;
        let is_last = wrong.count == self.most;
        if is_last {
            wrong.until = now + self.window;
        }
        is_last
    }
}

/// Removes expired entries; if there are none, the one that expires first.
fn make_room(table: &mut HashMap<IpAddr, FailedAttempts>, now: Instant) {
    table.retain(|_, wrong| wrong.until > now);
    if table.len() >= MAX_ADDRESSES {
        let first = table.iter().min_by_key(|(_, wrong)| wrong.until).map(|(address, _)| *address);
        first.map(|address| table.remove(&address));
    }
}

/// One IPv6 client has a whole /64 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, IpAddr, MAX_ADDRESSES, TokenAttempts};

    const MINUTE: Duration = Duration::from_secs(60);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_tenth_wrong_token_in_a_minute_blocks_the_address_for_a_minute() {
        let (attempts, now) = (TokenAttempts::new(10, MINUTE), Instant::now());
        let there = address("192.0.2.1");
        for _ in 0..9 {
            assert!(!attempts.wrong(there, now));
        }
        assert_eq!(attempts.refused(there, now), None);
        assert!(attempts.wrong(there, now + Duration::from_secs(30)), "it is reported");
        assert!(!attempts.wrong(there, now + Duration::from_secs(31)), "once");
        let later = now + Duration::from_secs(31);
        assert_eq!(attempts.refused(there, later), Some(Duration::from_secs(59)));
        assert_eq!(attempts.refused(address("192.0.2.2"), later), None);
        assert_eq!(attempts.refused(there, later + MINUTE), None);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let (attempts, now) = (TokenAttempts::new(1, MINUTE), Instant::now());
        attempts.wrong(address("2001:db8::1"), now);
        assert!(attempts.refused(address("2001:db8::2"), now).is_some());
        assert!(attempts.refused(address("2001:db8:0:1::1"), now).is_none());
    }

    #[test]
    fn the_number_of_addresses_is_limited() {
        let (attempts, now) = (TokenAttempts::new(1, MINUTE), Instant::now());
        for number in 0..8 + u32::try_from(MAX_ADDRESSES).unwrap() {
            attempts.wrong(IpAddr::V4(number.into()), now);
        }
        assert_eq!(attempts.table.lock().len(), MAX_ADDRESSES);
    }
}
