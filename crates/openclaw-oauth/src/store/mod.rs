//! Where grants and unfinished logins are kept.
//!
//! # A refresh never loses a token
//!
//! With rotation, the response to a refresh holds the only valid refresh token. So a refresh is one
//! transaction, in this order:
//!
//! 1. [`lock`](GrantStore::lock) the key. [`load`](GrantStore::load) again: if another task or
//!    process has refreshed meanwhile, use its grant and stop here.
//! 2. [`mark_refreshing`](GrantStore::mark_refreshing): the stored grant keeps the old tokens and
//!    gets the mark. It is on disk before the request is sent, so a store that cannot be written
//!    fails here, while the old refresh token is still valid.
//! 3. Send the request.
//! 4. [`save`](GrantStore::save) the new grant. It is on disk when this returns.
//! 5. Use the new grant in memory. Drop the lease.
//!
//! A crash leaves the old grant without mark (before 2), the old grant with the mark (2 to 4), or
//! the new grant (after 4); never a part of one. A marked grant whose lease is free was interrupted:
//! its refresh token may have been used. [`recover`](GrantStore::recover) completes a save that has
//! begun. Else try the refresh token once: some servers accept it for a while after a rotation. If it
//! is rejected, a login is necessary. If the request certainly was not sent or was rejected,
//! [`save`](GrantStore::save) the old grant to remove the mark.
//!
//! Writes complete and keep the lock even if their caller is cancelled. Steps 3 and 4 as a whole do
//! not: run them in a task that outlives the caller.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::AuthError;
use crate::grant::{Grant, GrantKey};

mod envelope;
mod file;
mod key;
mod key_file;
mod keychain;
mod sealed;

pub use file::FileStore;
pub use key::{KeyFileReason, KeyOptions, KeyPlace};

/// How long an unfinished login can be finished, in seconds.
pub const LOGIN_LIFETIME: i64 = 15 * 60;

/// Stores grants and unfinished logins, for all processes of a user.
///
/// Errors are [`AuthError::Store`] unless stated otherwise.
#[async_trait]
pub trait GrantStore: Send + Sync + fmt::Debug {
    /// Waits up to `patience` until no other task or process holds the lease of this key. It is
    /// held during a refresh or a login, and released when dropped.
    async fn lock(&self, key: &GrantKey, patience: Duration) -> Result<GrantLock, AuthError>;

    /// Returns the stored grant. Fails if it is damaged or cannot be decrypted.
    async fn load(&self, key: &GrantKey) -> Result<Option<StoredGrant>, AuthError>;

    /// Stores a grant, replaces an earlier one, and removes its mark. Durable when it returns.
    async fn save(&self, lease: &GrantLock, grant: &Grant) -> Result<Version, AuthError>;

    /// Marks the stored grant: a refresh begins `at` this time, in Unix seconds. Durable when it
    /// returns. Fails with [`AuthError::LoginRequired`] if there is no grant.
    async fn mark_refreshing(&self, lease: &GrantLock, at: i64) -> Result<Version, AuthError>;

    /// Completes the save of a process that was killed between the response and the end of its save,
    /// and returns the grant. `None` if there is none that is newer than the stored one.
    async fn recover(&self, lease: &GrantLock) -> Result<Option<Grant>, AuthError>;

    /// Deletes a grant. Returns whether there was one, readable or not.
    async fn delete(&self, lease: &GrantLock) -> Result<bool, AuthError>;

    /// Returns all grants, sorted by key.
    async fn list(&self) -> Result<GrantList, AuthError>;

    /// Returns the version of the stored grant, or `None` without one. Cheap enough to poll every
    /// few seconds: nothing is decrypted.
    async fn version(&self, key: &GrantKey) -> Result<Option<Version>, AuthError>;

    /// Stores an unfinished login, and replaces an earlier one of this key.
    async fn save_login(&self, key: &GrantKey, login: &PendingLogin) -> Result<(), AuthError>;

    /// Returns the unfinished login. Returns `None` and deletes it if it has expired at `now`, in
    /// Unix seconds.
    async fn load_login(&self, key: &GrantKey, now: i64)
    -> Result<Option<PendingLogin>, AuthError>;

    /// Deletes the unfinished login. Returns whether there was one: of several processes that
    /// finish the same login, only one gets `true`.
    async fn delete_login(&self, key: &GrantKey) -> Result<bool, AuthError>;

    /// Returns the authorization server that the user has confirmed. It stays when the grant is
    /// deleted.
    async fn issuer(&self, key: &GrantKey) -> Result<Option<StoredIssuer>, AuthError>;

    /// Stores the authorization server that the user has confirmed, and replaces an earlier one.
    /// Durable when it returns.
    async fn save_issuer(&self, key: &GrantKey, issuer: &StoredIssuer) -> Result<(), AuthError>;

    /// Returns the confirmed authorization servers of all keys that can be read.
    async fn issuers(&self) -> Result<Vec<ConfirmedIssuer>, AuthError>;

    /// Fails if a grant of this key could not be saved. To be called before a browser opens, and before
    /// a code is used.
    async fn check_writable(&self, key: &GrantKey) -> Result<(), AuthError>;

    /// Returns where the key that encrypts grants is kept, or `None` if the store has no such key.
    async fn key_place(&self) -> Option<KeyPlace>;
}

/// The exclusive right to change the grant of one key. Released when dropped.
#[derive(Clone)]
pub struct GrantLock {
    key: GrantKey,
    /// A clone is held by writes that outlive their caller.
    _held: Arc<dyn Any + Send + Sync>,
}

impl GrantLock {
    /// Creates a lease for an implementation of [`GrantStore`]. Dropping `held` releases it.
    pub fn new(key: GrantKey, held: impl Any + Send + Sync) -> Self {
        Self { key, _held: Arc::new(held) }
    }

    /// Returns the key that is locked.
    #[must_use]
    pub fn key(&self) -> &GrantKey {
        &self.key
    }
}

impl fmt::Debug for GrantLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A grant as it is stored.
#[derive(Debug, Clone)]
pub struct StoredGrant {
    /// The grant.
    pub grant: Grant,
    /// When a refresh began that has not ended, in Unix seconds. If the lease is free, it was
    /// interrupted.
    pub refreshing_since: Option<i64>,
    /// Its version.
    pub version: Version,
}

/// The plaintext of a stored grant. Unknown fields are ignored.
#[derive(Serialize, Deserialize)]
struct Record<G> {
    /// The format. A change that older versions of the program cannot read increments it.
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refreshing_since: Option<i64>,
    grant: G,
}

/// Identifies a state of a stored grant: every change creates a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(u64);

impl Version {
    /// Creates a version for an implementation of [`GrantStore`].
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number)
    }
}

/// All stored grants.
#[derive(Debug, Default)]
pub struct GrantList {
    /// The grants by key; with an error if one cannot be decrypted.
    pub grants: Vec<(GrantKey, Result<StoredGrant, AuthError>)>,
    /// Damaged entries whose key is unknown.
    pub damaged: Vec<AuthError>,
}

/// An authorization server that a user has confirmed, or logged in at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmedIssuer {
    /// Its identity.
    pub issuer: String,
    /// The client id of the last login there, or one that it may use although another authorization
    /// server does. `None` in files of older versions, and before the first login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The origins of its endpoints, besides its own.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub origins: BTreeSet<String>,
}

impl ConfirmedIssuer {
    /// Confirms an authorization server, and endpoints at its own origin only.
    pub fn new(issuer: &str) -> Self {
        Self { issuer: issuer.to_owned(), client_id: None, origins: BTreeSet::new() }
    }
}

/// What is stored about the authorization server of an MCP server. Unknown fields are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "IssuerFormat")]
pub struct StoredIssuer {
    /// The confirmed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<ConfirmedIssuer>,
    /// What the user was asked last, and has not confirmed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<ConfirmedIssuer>,
}

impl From<ConfirmedIssuer> for StoredIssuer {
    fn from(confirmed: ConfirmedIssuer) -> Self {
        Self { confirmed: Some(confirmed), asked: None }
    }
}

/// The formats of a [`StoredIssuer`].
#[derive(Deserialize)]
#[serde(untagged)]
enum IssuerFormat {
    /// Of older versions: the confirmed one.
    Name(String),
    Whole {
        confirmed: Option<ConfirmedIssuer>,
        asked: Option<ConfirmedIssuer>,
    },
}

impl From<IssuerFormat> for StoredIssuer {
    fn from(format: IssuerFormat) -> Self {
        match format {
            IssuerFormat::Name(issuer) => ConfirmedIssuer::new(&issuer).into(),
            IssuerFormat::Whole { confirmed, asked } => Self { confirmed, asked },
        }
    }
}

/// A login that another process may finish: `openclaw mcp login NAME --code …`.
#[derive(Clone, Serialize, Deserialize)]
pub struct PendingLogin {
    /// When it began, in Unix seconds.
    pub created_at: i64,
    /// The serialized request, with its state and PKCE verifier. Secret.
    pub request: serde_json::Value,
}

impl PendingLogin {
    /// Whether it can no longer be finished. Also true for one that began more than a minute in the
    /// future: the clock was set back, and its age is unknown.
    #[must_use]
    pub fn is_expired(&self, now: i64) -> bool {
        !(-60..LOGIN_LIFETIME).contains(&now.saturating_sub(self.created_at))
    }
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin").field("created_at", &self.created_at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod race_tests;
