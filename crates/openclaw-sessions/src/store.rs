//! What a store of sessions can do, whatever keeps it.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::entry::{Entry, NewEntry, ReadFilter};
use crate::error::StoreError;
use crate::key::SessionKey;
use crate::lease::{Lease, LeaseError};
use crate::session::{ListFilter, Session};

/// What comes of asking a store.
type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Sessions and their entries, shared by several processes.
///
/// What a future said to be done stays done, whatever happens to this process. A change whose future
/// was dropped is made as a whole or not at all.
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// The session of this key; it is made if it is not there. One of another agent is an error.
    fn open<'a>(&'a self, key: &'a SessionKey, agent: &'a str) -> StoreFuture<'a, Session>;

    /// The session of this key, if there is one.
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Session>>;

    /// Sessions, the one that was changed last first.
    fn list(&self, filter: ListFilter) -> StoreFuture<'_, Vec<Session>>;

    /// Appends entries to a session that is there: all of them or none. Answers with their numbers.
    fn append<'a>(
        &'a self,
        key: &'a SessionKey,
        entries: Vec<NewEntry>,
    ) -> StoreFuture<'a, Vec<u64>>;

    /// Entries in the order of their numbers; none if there is no such session.
    ///
    /// Fewer than asked for may come where they are large ([`MAX_READ_BYTES`](crate::MAX_READ_BYTES)):
    /// read on from the number after the last one, until nothing comes.
    fn read<'a>(&'a self, key: &'a SessionKey, filter: ReadFilter) -> StoreFuture<'a, Vec<Entry>>;

    /// Gives a session a title, or takes it away.
    fn set_title<'a>(&'a self, key: &'a SessionKey, title: Option<&'a str>) -> StoreFuture<'a, ()>;

    /// Notes which model was chosen for a session, or that none is.
    fn set_model<'a>(&'a self, key: &'a SessionKey, model: Option<&'a str>) -> StoreFuture<'a, ()>;

    /// Removes a session with its entries, also while somebody holds its lease: what that one appends
    /// afterwards is refused. Says whether it was there.
    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool>;

    /// The right to run something in a session, for one at a time in all processes. The session need
    /// not be there. The lease is renewed until it is dropped; it ends `ttl` after its owner died, or at
    /// once where the owner's process [is known to be gone](crate::Holder::is_gone).
    fn lease<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, LeaseError>>;
}
