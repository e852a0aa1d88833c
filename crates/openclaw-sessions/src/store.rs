//! The interface of a session store.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::entry::{Entry, NewEntry, ReadFilter};
use crate::error::StoreError;
use crate::key::SessionKey;
use crate::lease::{Lease, LeaseError};
use crate::session::{ListFilter, Session, SessionField};

/// Sessions and their entries, shared by several processes.
///
/// A completed change is durable even if this process dies. A change whose future is dropped is
/// made completely or not at all.
#[async_trait]
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Returns the session of this key, creating it if necessary. Fails if it belongs to another
    /// agent.
    async fn open(&self, key: &SessionKey, agent: &str) -> Result<Session, StoreError>;

    /// Returns the session of this key, if it exists.
    async fn get(&self, key: &SessionKey) -> Result<Option<Session>, StoreError>;

    /// Lists sessions, most recently updated first.
    async fn list(&self, filter: ListFilter) -> Result<Vec<Session>, StoreError>;

    /// Appends entries to an existing session, all or none. Returns their sequence numbers.
    async fn append(
        &self,
        key: &SessionKey,
        entries: Vec<NewEntry>,
    ) -> Result<Vec<u64>, StoreError>;

    /// Reads entries in order of their sequence numbers; none if the session does not exist.
    ///
    /// May return fewer than requested where they are large
    /// ([`MAX_READ_BYTES`](crate::MAX_READ_BYTES)): continue after the last sequence number until
    /// nothing is returned.
    async fn read(&self, key: &SessionKey, filter: ReadFilter) -> Result<Vec<Entry>, StoreError>;

    /// Sets or removes a setting of a session.
    async fn set(
        &self,
        key: &SessionKey,
        field: SessionField,
        value: Option<&str>,
    ) -> Result<(), StoreError>;

    /// Deletes a session with its entries, even while its lease is held: later appends of the lease
    /// holder fail. Returns whether the session existed.
    async fn delete(&self, key: &SessionKey) -> Result<bool, StoreError>;

    /// Takes the exclusive right to run in a session, across processes. The session need not exist.
    /// The lease is renewed until it is dropped; it expires `ttl` after its owner died, or
    /// immediately if the owner's process [is known to be gone](crate::ProcessIdentity::is_gone).
    async fn lease(
        &self,
        key: &SessionKey,
        owner: &str,
        ttl: Duration,
    ) -> Result<Lease, LeaseError>;
}
