//! The interface of a session store.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::entry::{Entry, NewEntry, ReadFilter};
use crate::error::StoreError;
use crate::key::SessionKey;
use crate::lease::{Lease, LeaseError};
use crate::session::{ListFilter, Session};

/// Future returned by the methods of a store.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;
/// Future returned by [`SessionStore::lease`].
pub type LeaseFuture<'a> = BoxFuture<'a, Result<Lease, LeaseError>>;

/// Sessions and their entries, shared by several processes.
///
/// A completed change is durable even if this process dies. A change whose future is dropped is
/// made completely or not at all.
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Returns the session of this key, creating it if necessary. Fails if it belongs to another
    /// agent.
    fn open<'a>(&'a self, key: &'a SessionKey, agent: &'a str) -> StoreFuture<'a, Session>;

    /// Returns the session of this key, if it exists.
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Session>>;

    /// Lists sessions, most recently updated first.
    fn list(&self, filter: ListFilter) -> StoreFuture<'_, Vec<Session>>;

    /// Appends entries to an existing session, all or none. Returns their sequence numbers.
    fn append<'a>(
        &'a self,
        key: &'a SessionKey,
        entries: Vec<NewEntry>,
    ) -> StoreFuture<'a, Vec<u64>>;

    /// Reads entries in order of their sequence numbers; none if the session does not exist.
    ///
    /// May return fewer than requested where they are large
    /// ([`MAX_READ_BYTES`](crate::MAX_READ_BYTES)): continue after the last sequence number until
    /// nothing is returned.
    fn read<'a>(&'a self, key: &'a SessionKey, filter: ReadFilter) -> StoreFuture<'a, Vec<Entry>>;

    /// Sets or removes the title of a session.
    fn set_title<'a>(&'a self, key: &'a SessionKey, title: Option<&'a str>) -> StoreFuture<'a, ()>;

    /// Sets or removes the model of a session.
    fn set_model<'a>(&'a self, key: &'a SessionKey, model: Option<&'a str>) -> StoreFuture<'a, ()>;

    /// Sets or removes how strict a session is about tool calls.
    fn set_permission<'a>(
        &'a self,
        key: &'a SessionKey,
        mode: Option<&'a str>,
    ) -> StoreFuture<'a, ()>;

    /// Deletes a session with its entries, even while its lease is held: later appends of the lease
    /// holder fail. Returns whether the session existed.
    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool>;

    /// Takes the exclusive right to run in a session, across processes. The session need not exist.
    /// The lease is renewed until it is dropped; it expires `ttl` after its owner died, or
    /// immediately if the owner's process [is known to be gone](crate::ProcessIdentity::is_gone).
    fn lease<'a>(&'a self, key: &'a SessionKey, owner: &'a str, ttl: Duration) -> LeaseFuture<'a>;
}
