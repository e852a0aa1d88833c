//! Grants as files: `mcp/tokens/<hash>.json` in the state folder, one per server and URL.
//!
//! Next to a grant are `<hash>.login.json`, an unfinished login, and `<hash>.lock`. A lock file is
//! never deleted: a process that waits for it would hold the lock of a file that others don't see.

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::envelope::{Damage, Kind};
use super::key::{KeyOptions, KeyPlace, Keys};
use super::sealed::{SealedFiles, unusable};
use super::{GrantList, GrantLock, GrantStore, PendingLogin, Record, StoredGrant, Version};
use crate::error::AuthError;
use crate::grant::{Grant, GrantKey};

/// The format of the plaintext.
const RECORD: u32 = 1;

/// A [`GrantStore`] in a state folder. Clones share their keys.
#[derive(Debug, Clone)]
pub struct FileStore {
    files: SealedFiles,
}

impl FileStore {
    /// Returns the store of a state folder. Nothing is read or created yet.
    pub fn new(state: &Path, options: KeyOptions) -> Self {
        let folder = state.join("mcp");
        Self { files: SealedFiles::new(folder.join("tokens"), Keys::new(&folder, options)) }
    }

    async fn load_grant(&self, owner: &GrantKey) -> Result<Option<StoredGrant>, AuthError> {
        let Some((content, version)) = self.files.read(owner, Kind::Grant).await? else {
            return Ok(None);
        };
        self.parse(owner, &content, version).map(Some)
    }

    async fn save_grant(
        &self,
        lease: &GrantLock,
        grant: &Grant,
        refreshing_since: Option<i64>,
    ) -> Result<Version, AuthError> {
        let record = Record { version: RECORD, refreshing_since, grant };
        self.files.write(Some(lease), lease.key(), Kind::Grant, to_json(&record)?).await
    }

    async fn list_grants(&self) -> Result<GrantList, AuthError> {
        let mut listing = GrantList::default();
        for path in self.files.grants().await? {
            match self.files.owner_of(&path).await {
                Err(error) => listing.damaged.push(error),
                Ok(Some(owner)) => {
                    // `None`: deleted meanwhile.
                    if let Some(grant) = self.load_grant(&owner).await.transpose() {
                        listing.grants.push((owner, grant));
                    }
                }
                Ok(None) => {}
            }
        }
        listing.grants.sort_by(|(one, _), (two, _)| one.cmp(two));
        Ok(listing)
    }

    /// Errors of the parser are not shown: they quote values.
    fn parse(
        &self,
        owner: &GrantKey,
        content: &[u8],
        version: Version,
    ) -> Result<StoredGrant, AuthError> {
        #[derive(Deserialize)]
        struct Format {
            version: u32,
        }
        let failed =
            |damage| unusable(&self.files.path(owner, Kind::Grant), &owner.server, &damage);
        let damaged = |_| failed(Damage::Content);
        let format: Format = serde_json::from_slice(content).map_err(damaged)?;
        if format.version > RECORD {
            return Err(failed(Damage::Newer));
        }
        let Record { version: _, refreshing_since, grant } =
            serde_json::from_slice(content).map_err(damaged)?;
        Ok(StoredGrant { grant, refreshing_since, version })
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Zeroizing<Vec<u8>>, AuthError> {
    let failed = |_| AuthError::Store("cannot serialize the tokens".to_owned());
    // With room: growing would leave copies behind.
    let mut content = Zeroizing::new(Vec::with_capacity(16 * 1024));
    serde_json::to_writer(&mut *content, value).map_err(failed)?;
    Ok(content)
}

impl GrantStore for FileStore {
    fn lock<'a>(
        &'a self,
        key: &'a GrantKey,
        patience: Duration,
    ) -> BoxFuture<'a, Result<GrantLock, AuthError>> {
        Box::pin(self.files.lock(key, patience))
    }

    fn load<'a>(
        &'a self,
        key: &'a GrantKey,
    ) -> BoxFuture<'a, Result<Option<StoredGrant>, AuthError>> {
        Box::pin(self.load_grant(key))
    }

    fn save<'a>(
        &'a self,
        lease: &'a GrantLock,
        grant: &'a Grant,
    ) -> BoxFuture<'a, Result<Version, AuthError>> {
        Box::pin(self.save_grant(lease, grant, None))
    }

    fn mark_refreshing<'a>(
        &'a self,
        lease: &'a GrantLock,
        at: i64,
    ) -> BoxFuture<'a, Result<Version, AuthError>> {
        Box::pin(async move {
            let stored = self.load_grant(lease.key()).await?.ok_or(AuthError::LoginRequired)?;
            self.save_grant(lease, &stored.grant, Some(at)).await
        })
    }

    fn delete<'a>(&'a self, lease: &'a GrantLock) -> BoxFuture<'a, Result<bool, AuthError>> {
        Box::pin(self.files.remove(lease.key(), Kind::Grant))
    }

    fn list(&self) -> BoxFuture<'_, Result<GrantList, AuthError>> {
        Box::pin(self.list_grants())
    }

    fn version<'a>(
        &'a self,
        key: &'a GrantKey,
    ) -> BoxFuture<'a, Result<Option<Version>, AuthError>> {
        Box::pin(self.files.version(key))
    }

    fn save_login<'a>(
        &'a self,
        key: &'a GrantKey,
        login: &'a PendingLogin,
    ) -> BoxFuture<'a, Result<(), AuthError>> {
        Box::pin(async move {
            self.files.write(None, key, Kind::Login, to_json(login)?).await.map(drop)
        })
    }

    fn load_login<'a>(
        &'a self,
        key: &'a GrantKey,
        now: i64,
    ) -> BoxFuture<'a, Result<Option<PendingLogin>, AuthError>> {
        Box::pin(async move {
            let Some((content, _)) = self.files.read(key, Kind::Login).await? else {
                return Ok(None);
            };
            let path = self.files.path(key, Kind::Login);
            let login: PendingLogin = serde_json::from_slice(&content)
                .map_err(|_| unusable(&path, &key.server, &Damage::Content))?;
            if login.is_expired(now) {
                self.files.remove(key, Kind::Login).await?;
                return Ok(None);
            }
            Ok(Some(login))
        })
    }

    fn delete_login<'a>(&'a self, key: &'a GrantKey) -> BoxFuture<'a, Result<bool, AuthError>> {
        Box::pin(self.files.remove(key, Kind::Login))
    }

    fn check_writable(&self) -> BoxFuture<'_, Result<(), AuthError>> {
        Box::pin(self.files.check())
    }

    fn key_place(&self) -> BoxFuture<'_, Option<KeyPlace>> {
        Box::pin(async { Some(self.files.key_place().await) })
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
