//! Which servers have claimed a name since the program started. A name does not move from one server
//! to another: neither when its server drops it, nor when another server begins to offer it.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of names that a server may claim: as many as a list may have entries.
const MAX_NAMES: usize = 20_000;

/// The servers that have claimed names, in the order of their first claims.
///
/// Names are kept as hashes with a random key: a collision, which nobody can predict, has the effect
/// of a second claim.
///
/// ```
/// use openclaw_mcp::catalogue::claims::NameClaims;
///
/// let claims = NameClaims::default();
/// claims.claim("read", "files");
/// assert!(!claims.is_contested("read", |_| true));
/// claims.claim("read", "notes");
/// assert!(claims.is_contested("read", |_| true));
/// assert_eq!(claims.first("read", |_| true).as_deref(), Some("files"));
/// ```
#[derive(Debug, Default)]
pub struct NameClaims(Mutex<Claims>);

#[derive(Debug, Default)]
struct Claims {
    key: RandomState,
    /// The indices of servers, by the hash of a name.
    names: HashMap<u64, Vec<usize>>,
    servers: Vec<ClaimingServer>,
}

#[derive(Debug)]
struct ClaimingServer {
    name: String,
    /// How many names it has claimed.
    count: usize,
}

impl NameClaims {
    /// Records that a server offers something by this name. Returns false if the server has claimed too
    /// many names, and this one is not recorded.
    pub fn claim(&self, name: &str, server: &str) -> bool {
        self.lock().claim(name, server)
    }

    /// Returns whether several of these servers have claimed the name.
    pub fn is_contested(&self, name: &str, among: impl Fn(&str) -> bool) -> bool {
        self.lock().claimants(name).filter(|server| among(server)).nth(1).is_some()
    }

    /// Returns the one of these servers that was the first to claim the name.
    pub fn first(&self, name: &str, among: impl Fn(&str) -> bool) -> Option<String> {
        self.lock().claimants(name).find(|server| among(server)).map(ToOwned::to_owned)
    }

    /// Returns those of these servers that have claimed the name.
    pub fn claimants(&self, name: &str, among: impl Fn(&str) -> bool) -> Vec<String> {
        self.lock().claimants(name).filter(|server| among(server)).map(ToOwned::to_owned).collect()
    }

    /// Forgets the claims of all other servers.
    pub(crate) fn keep_only(&self, is_kept: impl Fn(&str) -> bool) {
        let mut claims = self.lock();
        let Claims { names, servers, .. } = &mut *claims;
        for (at, server) in servers.iter_mut().enumerate() {
            if server.count > 0 && !is_kept(&server.name) {
                names.values_mut().for_each(|claimants| claimants.retain(|it| *it != at));
                server.count = 0;
            }
        }
        names.retain(|_, claimants| !claimants.is_empty());
    }

    fn lock(&self) -> MutexGuard<'_, Claims> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claims {
    fn claim(&mut self, name: &str, server: &str) -> bool {
        let at = match self.servers.iter().position(|it| it.name == server) {
            Some(at) => at,
            None => {
                self.servers.push(ClaimingServer { name: server.to_owned(), count: 0 });
                self.servers.len() - 1
            }
        };
        let hash = self.key.hash_one(name);
        if self.names.get(&hash).is_some_and(|claimants| claimants.contains(&at)) {
            return true;
        }
        let Some(server) = self.servers.get_mut(at).filter(|it| it.count < MAX_NAMES) else {
            return false;
        };
        server.count += 1;
        self.names.entry(hash).or_default().push(at);
        true
    }

    fn claimants(&self, name: &str) -> impl Iterator<Item = &str> {
        let claimants = self.names.get(&self.key.hash_one(name)).into_iter().flatten();
        claimants.filter_map(|at| self.servers.get(*at)).map(|server| server.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_contested_once_two_of_the_meant_servers_have_claimed_it() {
        let claims = NameClaims::default();
        assert!(claims.claim("a", "one") && claims.claim("a", "one"));
        assert!(!claims.is_contested("a", |_| true));
        assert!(claims.claim("a", "two"));
        assert!(claims.is_contested("a", |_| true));
        assert!(!claims.is_contested("a", |server| server != "one"));
        assert_eq!(claims.first("a", |server| server != "one").as_deref(), Some("two"));
        assert_eq!(claims.claimants("a", |_| true), ["one", "two"]);
        claims.keep_only(|server| server == "two");
        assert_eq!(claims.claimants("a", |_| true), ["two"]);
        assert_eq!(claims.first("b", |_| true), None);
    }

    #[test]
    fn a_server_with_too_many_names_does_not_displace_the_claims_of_others() {
        let claims = NameClaims::default();
        assert!(claims.claim("read", "files"));
        let granted = (0..2 * MAX_NAMES).filter(|at| claims.claim(&at.to_string(), "flood"));
        assert_eq!(granted.count(), MAX_NAMES);
        assert!(!claims.claim("read", "flood"));
        assert_eq!(claims.first("read", |_| true).as_deref(), Some("files"));
        assert!(claims.claim("write", "files"));
    }
}
