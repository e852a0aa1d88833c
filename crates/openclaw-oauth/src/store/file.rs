//! Grants as files: `mcp/tokens/<hash>.json` in the state folder, one per server and URL.
//!
//! Next to a grant are `<hash>.login.json`, an unfinished login, `<hash>.issuer.json`, the confirmed
//! authorization server, and `<hash>.lock`. A lock file is
//! never deleted: a process that waits for it would hold the lock of a file that others don't see.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::envelope::{Damage, EnvelopeKind};
use super::key::{KeyOptions, KeyPlace, Keys};
use super::key_file::blocking;
use super::sealed::{SealedFiles, unusable};
use super::{
    ConfirmedIssuer, GrantList, GrantLock, GrantStore, PendingLogin, Record, StoredGrant,
    StoredIssuer, Version,
};
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

    async fn save_grant(
        &self,
        lease: &GrantLock,
        grant: &Grant,
        refreshing_since: Option<i64>,
    ) -> Result<Version, AuthError> {
        let record = Record { version: RECORD, refreshing_since, grant };
        self.files.write(Some(lease), lease.key(), EnvelopeKind::Grant, to_json(&record)?).await
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
            |damage| unusable(&self.files.path(owner, EnvelopeKind::Grant), &owner.server, &damage);
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

#[async_trait]
impl GrantStore for FileStore {
    async fn lock(&self, key: &GrantKey, patience: Duration) -> Result<GrantLock, AuthError> {
        self.files.lock(key, patience).await
    }

    async fn load(&self, key: &GrantKey) -> Result<Option<StoredGrant>, AuthError> {
        let Some((content, version)) = self.files.read(key, EnvelopeKind::Grant).await? else {
            return Ok(None);
        };
        self.parse(key, &content, version).map(Some)
    }

    async fn save(&self, lease: &GrantLock, grant: &Grant) -> Result<Version, AuthError> {
        self.save_grant(lease, grant, None).await
    }

    async fn mark_refreshing(&self, lease: &GrantLock, at: i64) -> Result<Version, AuthError> {
        let stored = self.load(lease.key()).await?.ok_or(AuthError::LoginRequired)?;
        self.save_grant(lease, &stored.grant, Some(at)).await
    }

    async fn recover(&self, lease: &GrantLock) -> Result<Option<Grant>, AuthError> {
        let Some(stored) = self.load(lease.key()).await? else { return Ok(None) };
        let mut newest: Option<Grant> = None;
        let unfinished = self.files.unfinished(lease, EnvelopeKind::Grant).await;
        for (_, content) in &unfinished {
            let Ok(found) = self.parse(lease.key(), content, stored.version) else { continue };
            let (grant, than) = (found.grant, newest.as_ref().unwrap_or(&stored.grant));
            // Of the same login, and not the stored one with its mark.
            if found.refreshing_since.is_none()
                && grant.logged_in_at == stored.grant.logged_in_at
                && grant.issued_at >= than.issued_at
                && grant.access_token != stored.grant.access_token
            {
                newest = Some(grant);
            }
        }
        if let Some(grant) = &newest {
            self.save(lease, grant).await?;
        }
        // Otherwise they would be considered again after another crash.
        for (path, _) in unfinished {
            let _ = blocking(move || std::fs::remove_file(path)).await;
        }
        Ok(newest)
    }

    async fn delete(&self, lease: &GrantLock) -> Result<bool, AuthError> {
        self.files.remove(lease.key(), EnvelopeKind::Grant).await
    }

    async fn list(&self) -> Result<GrantList, AuthError> {
        let mut listing = GrantList::default();
        for path in self.files.all(EnvelopeKind::Grant).await? {
            match self.files.owner_of(&path, EnvelopeKind::Grant).await {
                Err(error) => listing.damaged.push(error),
                Ok(Some(owner)) => {
                    // `None`: deleted meanwhile.
                    if let Some(grant) = self.load(&owner).await.transpose() {
                        listing.grants.push((owner, grant));
                    }
                }
                Ok(None) => {}
            }
        }
        listing.grants.sort_by(|(one, _), (two, _)| one.cmp(two));
        Ok(listing)
    }

    async fn version(&self, key: &GrantKey) -> Result<Option<Version>, AuthError> {
        self.files.version(key).await
    }

    async fn save_login(&self, key: &GrantKey, login: &PendingLogin) -> Result<(), AuthError> {
        self.files.write(None, key, EnvelopeKind::Login, to_json(login)?).await.map(drop)
    }

    async fn load_login(
        &self,
        key: &GrantKey,
        now: i64,
    ) -> Result<Option<PendingLogin>, AuthError> {
        let Some((content, _)) = self.files.read(key, EnvelopeKind::Login).await? else {
            return Ok(None);
        };
        let path = self.files.path(key, EnvelopeKind::Login);
        let login: PendingLogin = serde_json::from_slice(&content)
            .map_err(|_| unusable(&path, &key.server, &Damage::Content))?;
        if login.is_expired(now) {
            self.files.remove(key, EnvelopeKind::Login).await?;
            return Ok(None);
        }
        Ok(Some(login))
    }

    async fn delete_login(&self, key: &GrantKey) -> Result<bool, AuthError> {
        self.files.remove(key, EnvelopeKind::Login).await
    }

    async fn issuer(&self, key: &GrantKey) -> Result<Option<StoredIssuer>, AuthError> {
        let Some((content, _)) = self.files.read(key, EnvelopeKind::Issuer).await? else {
            return Ok(None);
        };
        let path = self.files.path(key, EnvelopeKind::Issuer);
        let issuer = serde_json::from_slice(&content);
        issuer.map(Some).map_err(|_| unusable(&path, &key.server, &Damage::Content))
    }

    async fn save_issuer(&self, key: &GrantKey, issuer: &StoredIssuer) -> Result<(), AuthError> {
        self.files.write(None, key, EnvelopeKind::Issuer, to_json(issuer)?).await.map(drop)
    }

    async fn issuers(&self) -> Result<Vec<ConfirmedIssuer>, AuthError> {
        let mut found = Vec::new();
        for path in self.files.all(EnvelopeKind::Issuer).await? {
            let owner = self.files.owner_of(&path, EnvelopeKind::Issuer).await;
            let Ok(Some(owner)) = owner else { continue };
            let stored = self.issuer(&owner).await.ok().flatten();
            found.extend(stored.and_then(|stored| stored.confirmed));
        }
        Ok(found)
    }

    async fn check_writable(&self, key: &GrantKey) -> Result<(), AuthError> {
        self.files.check(key).await
    }

    async fn key_place(&self) -> Option<KeyPlace> {
        Some(self.files.key_place().await)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
