//! A store in a single SQLite file.

mod database;
mod fault;
mod files;
mod lane;
mod leases;
mod rows;
mod schema;
mod stamp;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::database::Database;
use self::fault::DatabaseError;
use crate::entry::{Entry, NewEntry, ReadFilter, encode};
use crate::error::StoreError;
use crate::holder::ProcessIdentity;
use crate::key::SessionKey;
use crate::lease::{Lease, LeaseError};
use crate::limits::{MAX_FOLDER_BYTES, MAX_TITLE_BYTES, check_name, check_size};
use crate::session::{ListFilter, Session, SessionField};
use crate::store::SessionStore;

/// Options of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// How long to wait for locks of other processes.
    pub busy_timeout: Duration,
}

impl Default for SqliteOptions {
    /// Waits 5 s for locks.
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5) }
    }
}

/// An opened store, with a note for the user.
#[derive(Debug)]
pub struct OpenedStore {
    /// The store.
    pub store: SqliteStore,
    /// Set if a damaged file was moved aside; says where it is now.
    pub note: Option<String>,
}

/// Sessions in a single file, which is created at the first write. Clones share the connections.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    database: Arc<Database>,
    /// This process, recorded in its leases.
    holder: Option<ProcessIdentity>,
}

impl SqliteStore {
    /// Opens the file, which need not exist. A damaged file is moved aside.
    ///
    /// # Errors
    /// If the file is locked, of a newer version or another program, or cannot be written.
    pub async fn open(path: impl AsRef<Path>) -> Result<OpenedStore, StoreError> {
        Self::open_with(path, SqliteOptions::default()).await
    }

    /// Like [`open`](Self::open), with options.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub async fn open_with(
        path: impl AsRef<Path>,
        options: SqliteOptions,
    ) -> Result<OpenedStore, StoreError> {
        let SqliteOptions { busy_timeout } = options;
        let database = Database::at(path.as_ref(), busy_timeout)?;
        let note = database.examine().await.map_err(|fault| database.explain(fault))?;
        if let Some(note) = &note {
            tracing::warn!(note, "the session store was damaged");
        }
        let store = Self { database: Arc::new(database), holder: ProcessIdentity::this() };
        Ok(OpenedStore { store, note })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        self.database.path()
    }

    /// Closes idle connections and waits until that is done. When the last process does so, only
    /// the database file remains. Optional: nothing is lost without it.
    pub async fn close(&self) {
        self.database.close_idle().await;
    }

    async fn try_open(&self, key: &SessionKey, agent: &str) -> Result<Session, DatabaseError> {
        if let Some(session) = self.try_get(key).await? {
            return Ok(session);
        }
        let mut writer = self.database.writer().await?;
        let made = rows::make(&mut writer, key, agent).await?;
        writer.give_back();
        made.ok_or_else(|| StoreError::NoSession { key: key.clone() }.into())
    }

    async fn try_get(&self, key: &SessionKey) -> Result<Option<Session>, DatabaseError> {
        let Some(mut reader) = self.database.reader().await? else { return Ok(None) };
        let session = rows::get(&mut reader, key).await?;
        reader.give_back();
        Ok(session)
    }

    /// Explains a fault for the caller.
    async fn explained<T>(
        &self,
        work: impl Future<Output = Result<T, DatabaseError>> + Send,
    ) -> Result<T, StoreError> {
        work.await.map_err(|fault| self.database.explain(fault))
    }
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn open(&self, key: &SessionKey, agent: &str) -> Result<Session, StoreError> {
        check_name("the name of an agent", agent)?;
        let session = self.explained(self.try_open(key, agent)).await?;
        if session.agent != agent {
            let (key, agent) = (session.key, session.agent);
            return Err(StoreError::OtherAgent { key, agent });
        }
        Ok(session)
    }

    async fn get(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        self.explained(self.try_get(key)).await
    }

    async fn list(&self, filter: ListFilter) -> Result<Vec<Session>, StoreError> {
        let list = async {
            let Some(mut reader) = self.database.reader().await? else { return Ok(Vec::new()) };
            let sessions = rows::list(&mut reader, &filter).await?;
            reader.give_back();
            Ok(sessions)
        };
        self.explained(list).await
    }

    async fn append(
        &self,
        key: &SessionKey,
        entries: Vec<NewEntry>,
    ) -> Result<Vec<u64>, StoreError> {
        let append = async {
            let bodies = encode(&entries)?;
            let mut writer = self.database.writer().await?;
            let numbers = rows::append(&mut writer, key, &entries, bodies).await?;
            writer.give_back();
            Ok(numbers)
        };
        self.explained(append).await
    }

    async fn read(&self, key: &SessionKey, filter: ReadFilter) -> Result<Vec<Entry>, StoreError> {
        let read = async {
            let Some(mut reader) = self.database.reader().await? else { return Ok(Vec::new()) };
            let entries = rows::read(&mut reader, key, filter).await?;
            reader.give_back();
            Ok(entries)
        };
        self.explained(read).await
    }

    async fn set(
        &self,
        key: &SessionKey,
        field: SessionField,
        value: Option<&str>,
    ) -> Result<(), StoreError> {
        let given = value.unwrap_or_default();
        match field {
            SessionField::Title => check_size("a title", given.len(), MAX_TITLE_BYTES)?,
            SessionField::Model => check_name("the name of a model", given)?,
            SessionField::Permission => check_name("the name of a mode", given)?,
            SessionField::Folder => check_size("a folder", given.len(), MAX_FOLDER_BYTES)?,
        }
        let set = async {
            let mut writer = self.database.writer().await?;
            rows::set(&mut writer, key, field, value).await?;
            writer.give_back();
            Ok(())
        };
        self.explained(set).await
    }

    async fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        let delete = async {
            if self.try_get(key).await?.is_none() {
                return Ok(false);
            }
            let mut writer = self.database.writer().await?;
            let was_there = rows::delete(&mut writer, key).await?;
            writer.give_back();
            Ok(was_there)
        };
        self.explained(delete).await
    }

    async fn lease(
        &self,
        key: &SessionKey,
        owner: &str,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        let owner = leases::Owner { name: owner, holder: self.holder.as_ref() };
        leases::take(&self.database, key, owner, ttl).await
    }
}

#[cfg(test)]
mod tests;
