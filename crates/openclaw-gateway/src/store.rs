//! A session store that is opened on first use.

use std::path::PathBuf;
use std::time::Duration;

use openclaw_sessions::{
    Entry, LeaseError, LeaseFuture, ListFilter, NewEntry, ReadFilter, Session, SessionKey,
    SessionStore, SqliteStore, StoreError, StoreFuture,
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

impl SessionStore for StoreOnUse {
    fn open<'a>(&'a self, key: &'a SessionKey, agent: &'a str) -> StoreFuture<'a, Session> {
        Box::pin(async move { self.opened().await?.open(key, agent).await })
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Session>> {
        Box::pin(async move { self.opened().await?.get(key).await })
    }

    fn list(&self, filter: ListFilter) -> StoreFuture<'_, Vec<Session>> {
        Box::pin(async move { self.opened().await?.list(filter).await })
    }

    fn append<'a>(
        &'a self,
        key: &'a SessionKey,
        entries: Vec<NewEntry>,
    ) -> StoreFuture<'a, Vec<u64>> {
        Box::pin(async move { self.opened().await?.append(key, entries).await })
    }

    fn read<'a>(&'a self, key: &'a SessionKey, filter: ReadFilter) -> StoreFuture<'a, Vec<Entry>> {
        Box::pin(async move { self.opened().await?.read(key, filter).await })
    }

    fn set_title<'a>(&'a self, key: &'a SessionKey, title: Option<&'a str>) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.opened().await?.set_title(key, title).await })
    }

    fn set_model<'a>(&'a self, key: &'a SessionKey, model: Option<&'a str>) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.opened().await?.set_model(key, model).await })
    }

    fn set_permission<'a>(
        &'a self,
        key: &'a SessionKey,
        mode: Option<&'a str>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.opened().await?.set_permission(key, mode).await })
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.opened().await?.delete(key).await })
    }

    fn lease<'a>(&'a self, key: &'a SessionKey, owner: &'a str, ttl: Duration) -> LeaseFuture<'a> {
        Box::pin(async move {
            let store = self.opened().await.map_err(LeaseError::Store)?;
            store.lease(key, owner, ttl).await
        })
    }
}
