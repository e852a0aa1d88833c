//! A session store that is opened on first use.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use openclaw_sessions::{
    Entry, Lease, LeaseError, ListFilter, NewEntry, ReadFilter, Session, SessionField, SessionKey,
    SessionStore, SqliteStore, StoreError,
};
use tokio::sync::OnceCell;

/// A session store that is opened on first use.
#[derive(Debug)]
pub(crate) struct StoreOnUse {
    file: PathBuf,
    store: OnceCell<SqliteStore>,
}

impl StoreOnUse {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, store: OnceCell::new() }
    }

    async fn opened(&self) -> Result<&SqliteStore, StoreError> {
        let open = async || {
            let opened = SqliteStore::open(&self.file).await?;
            opened.note.iter().for_each(|note| tracing::warn!("{note}"));
            Ok(opened.store)
        };
        self.store.get_or_try_init(open).await
    }
}

#[async_trait]
impl SessionStore for StoreOnUse {
    async fn open(&self, key: &SessionKey, agent: &str) -> Result<Session, StoreError> {
        self.opened().await?.open(key, agent).await
    }

    async fn get(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        self.opened().await?.get(key).await
    }

    async fn list(&self, filter: ListFilter) -> Result<Vec<Session>, StoreError> {
        self.opened().await?.list(filter).await
    }

    async fn append(
        &self,
        key: &SessionKey,
        entries: Vec<NewEntry>,
    ) -> Result<Vec<u64>, StoreError> {
        self.opened().await?.append(key, entries).await
    }

    async fn read(&self, key: &SessionKey, filter: ReadFilter) -> Result<Vec<Entry>, StoreError> {
        self.opened().await?.read(key, filter).await
    }

    async fn set(
        &self,
        key: &SessionKey,
        field: SessionField,
        value: Option<&str>,
    ) -> Result<(), StoreError> {
        self.opened().await?.set(key, field, value).await
    }

    async fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        self.opened().await?.delete(key).await
    }

    async fn lease(
        &self,
        key: &SessionKey,
        owner: &str,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        self.opened().await?.lease(key, owner, ttl).await
    }
}
