//! Access tokens with limited scopes, for clients other than the operator's own programs.
//!
//! Only their hashes are stored, in `gateway-tokens.json` in the state folder. The file is read
//! at every connect with such a token: a new token is valid, and a revoked one invalid, without a
//! restart.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use openclaw_protocol::{AccessToken, Principal, Scope};
use openclaw_secrets::SecretString;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const FILE: &str = "gateway-tokens.json";
const LOCK: &str = "gateway-tokens.lock";
/// The format of the file.
const VERSION: u32 = 1;
/// Maximum size of the file, in bytes.
const MAX_FILE: u64 = 256 * 1024;
/// Maximum number of tokens.
const MAX_TOKENS: usize = 100;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 64;
/// How long a change waits for a concurrent one.
const PATIENCE: Duration = Duration::from_secs(2);

/// The access tokens of a state folder.
#[derive(Debug, Clone)]
pub struct TokenStore {
    folder: PathBuf,
}

/// A stored token, without the token itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredToken {
    /// Its name, chosen by the operator.
    pub name: String,
    /// The scopes that its clients may have.
    pub scopes: Vec<String>,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// The hash of the token. Tokens are random, so a plain hash cannot be reversed.
    sha256: String,
}

impl StoredToken {
    /// Returns whoever has this token.
    pub(crate) fn principal(self) -> Principal {
        AccessToken::new(self.name, self.sha256, self.scopes).into()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct TokensFile {
    version: u32,
    tokens: Vec<StoredToken>,
}

/// Why a token cannot be created or revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The name is not valid.
    #[error("invalid token name `{0}`: use 1 to {MAX_NAME} letters, digits, `-`, `_` and `.`")]
    InvalidName(String),
    /// There is a token of this name.
    #[error("a token named `{0}` already exists")]
    NameTaken(String),
    /// There is no token of this name.
    #[error("no token named `{0}`")]
    Unknown(String),
    /// There are too many tokens.
    #[error("there are {MAX_TOKENS} tokens already")]
    TooMany,
    /// The file cannot be used.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

impl TokenStore {
    /// The tokens of a state folder.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self { folder: state.to_owned() }
    }

    /// Creates a token with these scopes, and returns it. It is not stored and cannot be shown
    /// again.
    ///
    /// # Errors
    /// Fails if the name is invalid or taken, or the file cannot be read or written.
    pub fn create(&self, name: &str, scopes: &[Scope]) -> Result<SecretString, TokenError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
            return Err(TokenError::InvalidName(name.chars().take(MAX_NAME).collect()));
        }
        self.change(|tokens| {
            if tokens.iter().any(|token| token.name == name) {
                return Err(TokenError::NameTaken(name.to_owned()));
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(TokenError::TooMany);
            }
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|error| self.failed(io::Error::other(error)))?;
            let token = SecretString::from(format!("oc_{}", HEXLOWER.encode(&bytes)));
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            tokens.push(StoredToken {
                name: name.to_owned(),
                scopes: scopes.iter().filter_map(|it| it.name()).map(ToOwned::to_owned).collect(),
                created_at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
                sha256: hash(&token),
            });
            Ok(token)
        })
    }

    /// Revokes a token. Its clients are disconnected.
    ///
    /// # Errors
    /// Fails if there is no such token, or the file cannot be read or written.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            match tokens.len() < before {
                true => Ok(()),
                false => Err(TokenError::Unknown(name.to_owned())),
            }
        })
    }

    /// Returns all tokens, oldest first.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn list(&self) -> Result<Vec<StoredToken>, TokenError> {
        self.read().map_err(|error| self.failed(error))
    }

    /// Returns the stored token that a client has sent.
    pub(crate) fn find(&self, sent: &SecretString) -> Option<StoredToken> {
        let tokens = self.read().unwrap_or_else(|error| {
            tracing::error!(%error, file = FILE, "cannot read the access tokens");
            Vec::new()
        });
        let hash = hash(sent);
        tokens.into_iter().find(|token| token.sha256 == hash)
    }

    /// Returns whoever has a token.
    pub(crate) fn principals(&self) -> HashSet<Principal> {
        let tokens = self.read().unwrap_or_else(|error| {
            tracing::error!(%error, file = FILE, "cannot read the access tokens");
            Vec::new()
        });
        tokens.into_iter().map(StoredToken::principal).collect()
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    fn state(&self) -> Option<FileState> {
        let state = std::fs::metadata(self.path());
        state.and_then(|state| Ok((state.modified()?, state.len()))).ok()
    }

    fn failed(&self, error: io::Error) -> TokenError {
        TokenError::File { path: self.path(), error }
    }

    fn read(&self) -> io::Result<Vec<StoredToken>> {
        let text = match openclaw_files::read_secret_text(&self.path(), MAX_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let read: TokensFile = serde_json::from_str(&text)?;
        match read.version {
            VERSION => Ok(read.tokens),
            other => {
                let message =
                    format!("written by a newer version of this program (format {other})");
                Err(io::Error::other(message))
            }
        }
    }

    /// Changes the file, one change at a time. It is replaced as a whole.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<StoredToken>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let _locked = self.lock().map_err(|error| self.failed(error))?;
        let mut tokens = self.list()?;
        let changed = change(&mut tokens)?;
        self.write(tokens).map_err(|error| self.failed(error))?;
        Ok(changed)
    }

    fn lock(&self) -> io::Result<File> {
        openclaw_files::make_folder(&self.folder)?;
        openclaw_files::lock(&self.folder.join(LOCK), PATIENCE)
    }

    fn write(&self, tokens: Vec<StoredToken>) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&TokensFile { version: VERSION, tokens })?;
        openclaw_files::replace(&self.path(), &text)
    }
}

/// The token that a connection was authenticated with.
#[derive(Debug)]
pub(crate) struct TokenInUse {
    store: TokenStore,
    sha256: String,
    /// The state of the file when the token was last found in it.
    seen: Option<FileState>,
}

/// The time of the last change of a file, and its length.
type FileState = (SystemTime, u64);

impl TokenInUse {
    /// The token of a principal; `None` if it has none.
    pub(crate) fn new(store: Option<&TokenStore>, principal: &Principal) -> Option<Self> {
        let sha256 = principal.token()?.sha256().to_owned();
        Some(Self { store: store?.clone(), sha256, seen: None })
    }

    /// Whether it is still valid. Cheap unless the file has changed.
    pub(crate) fn is_valid(&mut self) -> bool {
        let state = self.store.state();
        if state.is_some() && state == self.seen {
            return true;
        }
        self.seen = state;
        let tokens = self.store.read().unwrap_or_default();
        tokens.iter().any(|token| token.sha256 == self.sha256)
    }
}

fn hash(token: &SecretString) -> String {
    HEXLOWER.encode(&Sha256::digest(token.expose().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_until_it_is_revoked_and_never_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::new(&folder.path().join("state"));
        assert!(store.list().unwrap().is_empty());
        let token = store.create("phone", &[Scope::Read, Scope::Write]).unwrap();
        let found = store.find(&token).unwrap();
        assert_eq!(found.scopes, ["operator.read", "operator.write"]);
        assert!(store.find(&SecretString::from("oc_other".to_owned())).is_none());
        let text = std::fs::read_to_string(store.path()).unwrap();
        assert!(!text.contains(token.expose()) && !text.contains(&token.expose()[3..]));
        let mut in_use = TokenInUse::new(Some(&store), &found.principal()).unwrap();
        assert!(in_use.is_valid() && in_use.is_valid());
        assert!(matches!(store.create("phone", &[]), Err(TokenError::NameTaken(_))));
        for name in ["", "a b", "../x", "é"] {
            assert!(matches!(store.create(name, &[]), Err(TokenError::InvalidName(_))), "{name}");
        }
        store.revoke("phone").unwrap();
        assert!(store.find(&token).is_none() && !in_use.is_valid());
        assert!(matches!(store.revoke("phone"), Err(TokenError::Unknown(_))));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_private_and_a_damaged_one_is_not_replaced() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::new(folder.path());
        let token = store.create("phone", &[Scope::Read]).unwrap();
        let mode = std::fs::metadata(store.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(store.path(), "{").unwrap();
        assert!(store.find(&token).is_none());
        assert!(matches!(store.create("other", &[]), Err(TokenError::File { .. })));
        assert_eq!(std::fs::read_to_string(store.path()).unwrap(), "{");
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::new(folder.path());
        std::thread::scope(|scope| {
            for number in 0..8 {
                let store = &store;
                scope.spawn(move || store.create(&number.to_string(), &[Scope::Read]).unwrap());
            }
        });
        assert_eq!(store.list().unwrap().len(), 8);
    }
}
