//! Persistent sessions and their entries, in a store shared by several processes.
//!
//! [`SessionStore`] is the interface used by the rest of the program. [`SqliteStore`] implements it
//! with a single file.
//!
//! ```
//! use openclaw_sessions::{EntryKind, NewEntry, ReadFilter, SessionKey, SessionStore, SqliteStore};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("sessions.db");
//! let store = SqliteStore::open(&path).await?.store;
//! let key: SessionKey = "agent:main:main".parse()?;
//! store.open(&key, "main").await?;
//! let hello = NewEntry::new(EntryKind::Message, serde_json::json!({"role": "user", "text": "Hello"}));
//! store.append(&key, vec![hello]).await?;
//! assert_eq!(store.read(&key, ReadFilter::all()).await?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entry;
mod error;
mod holder;
mod key;
mod lease;
mod limits;
mod session;
mod sqlite;
mod store;

pub use entry::{Entry, EntryKind, NewEntry, ReadFilter};
pub use error::StoreError;
pub use holder::{InvalidProcessIdentity, ProcessIdentity};
pub use key::{BadSessionKey, MAX_KEY_BYTES, SessionKey};
pub use lease::{Lease, LeaseError, LeaseKeeper};
pub use limits::{
    MAX_BODY_BYTES, MAX_BODY_DEPTH, MAX_ENTRIES_AT_ONCE, MAX_LEASE, MAX_LISTED, MAX_NAME_BYTES,
    MAX_READ, MAX_READ_BYTES, MAX_TITLE_BYTES, MIN_LEASE,
};
pub use session::{ListFilter, Position, Session, SessionField};
pub use sqlite::{OpenedStore, SqliteOptions, SqliteStore};
pub use store::SessionStore;
