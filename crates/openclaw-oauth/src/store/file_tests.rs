use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::grant::tests::grant;
use crate::store::key::KeyFileReason;
use crate::store::key::tests::FakeKeychain;

const SOON: Duration = Duration::from_secs(10);

struct State {
    folder: tempfile::TempDir,
    key: GrantKey,
}

impl State {
    fn new() -> Self {
        let url = "https://notes.example/mcp".parse().unwrap();
        Self { folder: tempfile::tempdir().unwrap(), key: GrantKey::new("notes", &url) }
    }

    /// Returns a store like that of a new process.
    fn store(&self) -> FileStore {
        FileStore::new(self.folder.path(), KeyOptions { use_keychain: false })
    }

    fn with_keychain(&self, keychain: &Arc<FakeKeychain>) -> FileStore {
        let folder = self.folder.path().join("mcp");
        let keys = Keys::with_keychain(&folder, Ok(keychain.clone()));
        FileStore { files: SealedFiles::new(folder.join("tokens"), keys) }
    }

    fn file(&self) -> PathBuf {
        self.store().files.path(&self.key, EnvelopeKind::Grant)
    }

    async fn save(&self, store: &FileStore, token: &str) -> Version {
        let lease = store.lock(&self.key, SOON).await.unwrap();
        store.save(&lease, &grant(token)).await.unwrap()
    }

    /// Loads in a new process.
    async fn load(&self) -> Result<Option<StoredGrant>, AuthError> {
        self.store().load(&self.key).await
    }

    async fn error(&self) -> String {
        let error = self.load().await.unwrap_err();
        assert!(matches!(error, AuthError::Store(_)));
        error.to_string()
    }

    async fn assert_token(&self, token: &str) {
        let stored = self.load().await.unwrap().unwrap();
        assert_eq!(stored.grant.access_token.expose(), token);
    }
}

#[tokio::test]
async fn a_saved_grant_is_loaded_by_another_process_and_private() {
    let state = State::new();
    assert!(state.load().await.unwrap().is_none());
    let version = state.save(&state.store(), "one").await;
    let stored = state.load().await.unwrap().unwrap();
    assert_eq!((stored.version, stored.refreshing_since), (version, None));
    state.assert_token("one").await;
    let text = std::fs::read_to_string(state.file()).unwrap();
    assert!(!text.contains("one") && !text.contains("client-1"), "{text}");
    let envelope: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(envelope["version"], 1);
    assert_eq!(envelope["cipher"], "chacha20-poly1305");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state.file()), 0o600);
        assert_eq!(mode(state.file().parent().unwrap()), 0o700);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn tokens_and_keys_that_are_links_are_neither_read_nor_replaced() {
    let state = State::new();
    state.save(&state.store(), "one").await;
    let key = state.folder.path().join("mcp/tokens.key");
    for file in [state.file(), key] {
        let target = state.folder.path().join("target");
        std::fs::rename(&file, &target).unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        let before = std::fs::read(&target).unwrap();
        let error = state.error().await;
        assert!(error.contains("a symbolic link"), "{error}");
        assert!(error.contains(file.to_str().unwrap()), "{error}");
        let store = state.store();
        let lease = store.lock(&state.key, SOON).await.unwrap();
        let error = store.save(&lease, &grant("two")).await.unwrap_err().to_string();
        assert!(error.contains("a symbolic link"), "{error}");
        assert!(file.is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), before);
        std::fs::rename(&target, &file).unwrap();
        state.assert_token("one").await;
    }
}

#[tokio::test]
async fn a_confirmed_issuer_is_read_in_the_format_of_older_versions_and_kept_in_the_new_one() {
    let state = State::new();
    let store = state.store();
    let issuer = "https://as.example/tenant";
    let old = to_json(&issuer).unwrap();
    store.files.write(None, &state.key, EnvelopeKind::Issuer, old).await.unwrap();
    let stored = state.store().issuer(&state.key).await.unwrap().unwrap();
    assert_eq!(stored, StoredIssuer::from(ConfirmedIssuer::new(issuer)));
    assert_eq!(store.issuers().await.unwrap(), [ConfirmedIssuer::new(issuer)]);

    let confirmed = ConfirmedIssuer {
        client_id: Some("client-1".to_owned()),
        origins: ["https://login.example".to_owned()].into(),
        ..ConfirmedIssuer::new(issuer)
    };
    let asked = Some(ConfirmedIssuer::new("https://other.example"));
    for stored in [
        StoredIssuer { confirmed: Some(confirmed.clone()), asked: asked.clone() },
        StoredIssuer { confirmed: None, asked },
    ] {
        store.save_issuer(&state.key, &stored).await.unwrap();
        assert_eq!(state.store().issuer(&state.key).await.unwrap().unwrap(), stored);
        // What the user was only asked is not confirmed.
        let all: Vec<_> = stored.confirmed.into_iter().collect();
        assert_eq!(store.issuers().await.unwrap(), all);
    }
    // Grants are other files.
    state.save(&store, "one").await;
    assert_eq!(store.list().await.unwrap().grants.len(), 1);
}

#[tokio::test]
async fn a_change_by_another_process_changes_the_version() {
    let state = State::new();
    let store = state.store();
    assert_eq!(store.version(&state.key).await.unwrap(), None);
    let one = state.save(&state.store(), "same").await;
    assert_eq!(store.version(&state.key).await.unwrap(), Some(one));
    let two = state.save(&state.store(), "same").await;
    assert_ne!(one, two);
    assert_eq!(store.version(&state.key).await.unwrap(), Some(two));
    let lease = store.lock(&state.key, SOON).await.unwrap();
    assert!(store.delete(&lease).await.unwrap());
    assert!(!store.delete(&lease).await.unwrap());
    assert_eq!(store.version(&state.key).await.unwrap(), None);
}

#[tokio::test]
async fn a_refresh_that_was_interrupted_leaves_the_old_grant_with_a_mark() {
    let state = State::new();
    let store = state.store();
    let lease = store.lock(&state.key, SOON).await.unwrap();
    let missing = store.mark_refreshing(&lease, 5).await.unwrap_err();
    assert!(matches!(missing, AuthError::LoginRequired));
    store.save(&lease, &grant("old")).await.unwrap();
    store.mark_refreshing(&lease, 5).await.unwrap();
    // Killed here.
    drop((lease, store));
    assert_eq!(state.load().await.unwrap().unwrap().refreshing_since, Some(5));
    state.assert_token("old").await;
    state.save(&state.store(), "new").await;
    assert_eq!(state.load().await.unwrap().unwrap().refreshing_since, None);
    state.assert_token("new").await;
}

#[tokio::test]
async fn a_file_of_any_other_length_is_an_error() {
    let state = State::new();
    state.save(&state.store(), "one").await;
    let whole = std::fs::read(state.file()).unwrap();
    // With the key in memory, as in a running process.
    let store = state.store();
    assert!(store.load(&state.key).await.unwrap().is_some());
    for length in 0..whole.len() {
        std::fs::write(state.file(), &whole[..length]).unwrap();
        let error = store.load(&state.key).await.unwrap_err();
        assert!(matches!(error, AuthError::Store(_)), "{length}: {error}");
    }
    std::fs::write(state.file(), [&whole[..], b"}"].concat()).unwrap();
    let error = state.error().await;
    assert!(error.contains(&state.file().display().to_string()), "{error}");
    assert!(error.contains("`openclaw mcp login notes`"), "{error}");
}

#[tokio::test]
async fn a_changed_byte_is_never_a_wrong_grant() {
    let state = State::new();
    state.save(&state.store(), "one").await;
    let whole = std::fs::read(state.file()).unwrap();
    let store = state.store();
    assert!(store.load(&state.key).await.unwrap().is_some());
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        std::fs::write(state.file(), &changed).unwrap();
        // White space between the fields does not matter.
        if let Ok(stored) = store.load(&state.key).await {
            assert!(whole[place].is_ascii_whitespace());
            assert_eq!(stored.unwrap().grant.access_token.expose(), "one");
        }
    }
}

#[tokio::test]
async fn a_file_copied_to_another_server_is_rejected() {
    let state = State::new();
    state.save(&state.store(), "one").await;
    let url = "https://evil.example/mcp".parse().unwrap();
    for other in [GrantKey::new("notes", &url), GrantKey::new("mail", &state.key.url)] {
        let path = state.store().files.path(&other, EnvelopeKind::Grant);
        std::fs::copy(state.file(), path).unwrap();
        let error = state.store().load(&other).await.unwrap_err().to_string();
        assert!(error.contains("another server"), "{error}");
    }
    let listing = state.store().list().await.unwrap();
    assert_eq!((listing.grants.len(), listing.damaged.len()), (1, 2));
}

#[tokio::test]
async fn a_damaged_file_stays_until_the_next_login() {
    let state = State::new();
    state.save(&state.store(), "one").await;
    std::fs::write(state.file(), "{}").unwrap();
    let store = state.store();
    let lease = store.lock(&state.key, SOON).await.unwrap();
    store.mark_refreshing(&lease, 5).await.unwrap_err();
    assert_eq!(std::fs::read(state.file()).unwrap(), b"{}");
    drop(lease);
    state.save(&store, "two").await;
    state.assert_token("two").await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_or_a_folder_in_place_of_the_file_is_an_error_without_blocking() {
    let state = State::new();
    state.save(&state.store(), "one").await;
    std::fs::remove_file(state.file()).unwrap();
    nix::unistd::mkfifo(&state.file(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(state.error().await.contains("not a regular file"));
    assert!(state.store().version(&state.key).await.is_err());
    assert_eq!(state.store().list().await.unwrap().damaged.len(), 1);
    // A login does not replace it.
    let store = state.store();
    let lease = store.lock(&state.key, SOON).await.unwrap();
    let error = store.save(&lease, &grant("two")).await.unwrap_err().to_string();
    assert!(error.ends_with("not a regular file; remove it"), "{error}");
    drop(lease);
    std::fs::remove_file(state.file()).unwrap();
    state.save(&state.store(), "two").await;
    state.assert_token("two").await;
    std::fs::remove_file(state.file()).unwrap();
    std::fs::create_dir(state.file()).unwrap();
    assert!(state.load().await.is_err());
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_reported_before_the_login() {
    let state = State::new();
    state.store().check_writable(&state.key).await.unwrap();
    let tokens = state.folder.path().join("mcp/tokens");
    assert_eq!(std::fs::read_dir(&tokens).unwrap().count(), 0);
    std::fs::remove_dir(&tokens).unwrap();
    std::fs::write(&tokens, "").unwrap();
    let error = state.store().check_writable(&state.key).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write {}: ", tokens.display())), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_in_the_place_of_a_file_is_reported_before_the_login_with_what_to_do() {
    let state = State::new();
    let store = state.store();
    store.check_writable(&state.key).await.unwrap();
    let stem = state.file().file_stem().unwrap().to_str().unwrap().to_owned();
    for suffix in [".json", ".login.json", ".issuer.json", ".lock"] {
        let file = state.file().with_file_name(format!("{stem}{suffix}"));
        std::os::unix::fs::symlink("missing", &file).unwrap();
        let error = store.check_writable(&state.key).await.unwrap_err().to_string();
        let expected = format!("cannot write {}: a symbolic link; remove the link", file.display());
        assert_eq!(error, expected);
        std::fs::remove_file(&file).unwrap();
        store.check_writable(&state.key).await.unwrap();
    }
    std::os::unix::fs::symlink("missing", state.file()).unwrap();
    let error = state.error().await;
    assert!(error.contains("; remove the link, then log in again with"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_folder_is_reported_and_leaves_the_grant() {
    use std::os::unix::fs::PermissionsExt as _;
    let state = State::new();
    state.save(&state.store(), "one").await;
    let tokens = state.folder.path().join("mcp/tokens");
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(tokens.join("probe"), "").is_ok() {
        // Root may write anywhere.
        return;
    }
    let store = state.store();
    let error = store.check_writable(&state.key).await.unwrap_err().to_string();
    assert!(error.contains("Permission denied"), "{error}");
    let lease = store.lock(&state.key, SOON).await.unwrap();
    store.save(&lease, &grant("two")).await.unwrap_err();
    state.assert_token("one").await;
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn a_lost_key_and_a_locked_keychain_have_different_errors() {
    let state = State::new();
    let keychain = Arc::new(FakeKeychain::default());
    state.save(&state.with_keychain(&keychain), "one").await;
    *keychain.broken.lock().unwrap() = Some(KeyFileReason::Locked);
    let locked = state.with_keychain(&keychain).load(&state.key).await.unwrap_err().to_string();
    assert!(locked.contains("locked") && locked.contains("unlock"), "{locked}");
    let without = state.error().await;
    assert!(without.contains("turned off") && !without.contains("unlock"), "{without}");
    *keychain.broken.lock().unwrap() = None;
    *keychain.entry.lock().unwrap() = None;
    let lost = state.with_keychain(&keychain).load(&state.key).await.unwrap_err().to_string();
    assert!(lost.contains("its key") && lost.contains("login notes"), "{lost}");
}

#[tokio::test]
async fn processes_with_and_without_a_keychain_read_the_same_grants() {
    let state = State::new();
    let keychain = Arc::new(FakeKeychain::default());
    // The first process reaches the keychain, the second does not and creates a key file.
    state.save(&state.with_keychain(&keychain), "one").await;
    let mail = GrantKey::new("mail", &state.key.url);
    let lease = state.store().lock(&mail, SOON).await.unwrap();
    state.store().save(&lease, &grant("two")).await.unwrap();
    let with = state.with_keychain(&keychain);
    assert!(with.load(&state.key).await.unwrap().is_some());
    assert!(with.load(&mail).await.unwrap().is_some());
    // From then on the first uses the key file, too.
    state.save(&with, "three").await;
    assert!(state.store().load(&state.key).await.unwrap().is_some());
    assert_eq!(with.key_place().await, Some(KeyPlace::File(KeyFileReason::Existing)));
}

#[tokio::test]
async fn all_grants_are_listed_and_unreadable_ones_can_be_deleted() {
    let state = State::new();
    assert!(state.store().list().await.unwrap().grants.is_empty());
    state.save(&state.store(), "one").await;
    let mail = GrantKey::new("mail", &state.key.url);
    let lease = state.store().lock(&mail, SOON).await.unwrap();
    state.store().save(&lease, &grant("two")).await.unwrap();
    std::fs::write(state.folder.path().join("mcp/tokens/notes.txt"), "").unwrap();
    std::fs::remove_file(state.folder.path().join("mcp/tokens.key")).unwrap();
    let listing = state.store().list().await.unwrap();
    let keys: Vec<_> = listing.grants.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [&mail, &state.key]);
    assert!(listing.grants.iter().all(|(_, grant)| grant.is_err()) && listing.damaged.is_empty());
    assert!(state.store().delete(&lease).await.unwrap());
    assert_eq!(state.store().list().await.unwrap().grants.len(), 1);
}

#[tokio::test]
async fn a_login_is_finished_by_another_process_within_its_lifetime() {
    let state = State::new();
    let request = serde_json::json!({"verifier": "the-verifier"});
    let login = PendingLogin { created_at: 1000, request };
    assert!(!format!("{login:?}").contains("the-verifier"));
    state.store().save_login(&state.key, &login).await.unwrap();
    let found = state.store().load_login(&state.key, 1899).await.unwrap().unwrap();
    assert_eq!(found.request["verifier"], "the-verifier");
    assert!(state.load().await.unwrap().is_none());
    let path = state.store().files.path(&state.key, EnvelopeKind::Login);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("the-verifier"));
    // One of two gets it.
    assert!(state.store().delete_login(&state.key).await.unwrap());
    assert!(!state.store().delete_login(&state.key).await.unwrap());
    state.store().save_login(&state.key, &login).await.unwrap();
    assert!(state.store().load_login(&state.key, 1900).await.unwrap().is_none());
    assert!(!path.exists());
    assert!(login.is_expired(900) && !login.is_expired(950));
}

#[tokio::test]
async fn a_login_is_not_taken_for_a_grant() {
    let state = State::new();
    let login = PendingLogin { created_at: 0, request: serde_json::Value::Null };
    state.store().save_login(&state.key, &login).await.unwrap();
    let path = state.store().files.path(&state.key, EnvelopeKind::Login);
    std::fs::rename(path, state.file()).unwrap();
    assert!(state.error().await.contains("damaged or edited"));
}
