use std::sync::Mutex as Lock;
use std::sync::atomic::AtomicUsize;

use zeroize::Zeroizing;

use super::*;

/// A keychain in memory. Clones are the same one.
#[derive(Debug, Default)]
pub(crate) struct FakeKeychain {
    pub(crate) entry: Lock<Option<String>>,
    pub(crate) broken: Lock<Option<KeyFileReason>>,
    pub(crate) hangs: AtomicBool,
    pub(crate) calls: AtomicUsize,
}

impl FakeKeychain {
    fn answer(&self) -> Result<(), KeyFileReason> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        while self.hangs.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A slow one, so that processes overlap.
        std::thread::sleep(Duration::from_millis(2));
        (*self.broken.lock().unwrap()).map_or(Ok(()), Err)
    }
}

impl KeychainEntry for FakeKeychain {
    fn get(&self) -> Result<Option<Zeroizing<String>>, KeyFileReason> {
        self.answer()?;
        Ok(self.entry.lock().unwrap().clone().map(Zeroizing::new))
    }

    fn set(&self, value: &str) -> Result<(), KeyFileReason> {
        self.answer()?;
        *self.entry.lock().unwrap() = Some(value.to_owned());
        Ok(())
    }
}

fn with(folder: &Path, keychain: &Arc<FakeKeychain>) -> Keys {
    Keys::with_keychain(folder, Ok(keychain.clone()))
}

fn without(folder: &Path) -> Keys {
    Keys::with_keychain(folder, Err(KeyFileReason::NoKeychain))
}

#[test]
fn a_key_is_not_shown_and_its_id_is_stable() {
    let key = Key::from_base64("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").unwrap();
    assert_eq!(format!("{key:?}"), "Key(\"66687aad\")");
    for text in ["", "AAAA", "!", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        assert!(Key::from_base64(text).is_none(), "{text}");
    }
}

#[tokio::test]
async fn the_keychain_is_preferred_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = Arc::new(FakeKeychain::default());
    let (key, place) = with(folder.path(), &keychain).for_saving().await.unwrap();
    assert_eq!(place, KeyPlace::Keychain);
    assert!(!folder.path().join("tokens.key").exists());
    let other = with(folder.path(), &keychain);
    assert_eq!(other.find(key.id()).await.unwrap().bytes(), key.bytes());
    assert_eq!(other.place().await, KeyPlace::Keychain);
}

#[tokio::test]
async fn without_a_keychain_the_key_is_in_a_private_file() {
    for reason in [KeyFileReason::NoKeychain, KeyFileReason::Locked, KeyFileReason::Failed] {
        let folder = tempfile::tempdir().unwrap();
        let keychain = Arc::new(FakeKeychain::default());
        *keychain.broken.lock().unwrap() = Some(reason);
        let keys = with(folder.path(), &keychain);
        let (key, place) = keys.for_saving().await.unwrap();
        assert_eq!(place, KeyPlace::File(reason));
        assert_eq!(without(folder.path()).find(key.id()).await.unwrap().bytes(), key.bytes());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_key_file_that_others_can_read_is_restricted() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    without(folder.path()).for_saving().await.unwrap();
    let path = folder.path().join("tokens.key");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    without(folder.path()).for_saving().await.unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_keychain_that_hangs_times_out_and_is_not_asked_again_soon() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = Arc::new(FakeKeychain::default());
    keychain.hangs.store(true, Ordering::Relaxed);
    let keys = with(folder.path(), &keychain);
    tokio::time::pause();
    let started = Instant::now();
    assert!(matches!(
        keys.find("00000000").await,
        Err(MissingKey::Keychain(KeyFileReason::TimedOut))
    ));
    assert_eq!(started.elapsed().as_secs(), 5);
    tokio::time::resume();
    let (_, place) = keys.for_saving().await.unwrap();
    assert_eq!(place, KeyPlace::File(KeyFileReason::TimedOut));
    assert_eq!(keychain.calls.load(Ordering::Relaxed), 1);
    keychain.hangs.store(false, Ordering::Relaxed);
}

#[tokio::test]
async fn a_key_file_stays_in_use_when_the_keychain_responds_later() {
    let folder = tempfile::tempdir().unwrap();
    let (key, _) = without(folder.path()).for_saving().await.unwrap();
    let keychain = Arc::new(FakeKeychain::default());
    let keys = with(folder.path(), &keychain);
    let existing = KeyPlace::File(KeyFileReason::Existing);
    assert_eq!(keys.place().await, existing);
    let (used, place) = keys.for_saving().await.unwrap();
    assert_eq!((used.bytes(), place), (key.bytes(), existing));
    assert_eq!(keychain.calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_key_file_is_found_without_asking_the_keychain() {
    let folder = tempfile::tempdir().unwrap();
    let (key, _) = without(folder.path()).for_saving().await.unwrap();
    let keychain = Arc::new(FakeKeychain::default());
    with(folder.path(), &keychain).find(key.id()).await.unwrap();
    assert_eq!(keychain.calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_entry_that_is_not_a_key_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = Arc::new(FakeKeychain::default());
    *keychain.entry.lock().unwrap() = Some("of another program".to_owned());
    let (_, place) = with(folder.path(), &keychain).for_saving().await.unwrap();
    assert_eq!(place, KeyPlace::File(KeyFileReason::Failed));
    assert_eq!(keychain.entry.lock().unwrap().as_deref(), Some("of another program"));
}

#[tokio::test]
async fn a_damaged_key_file_is_an_error_and_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.key");
    for text in ["", "AAAA", "\u{fffd}"] {
        std::fs::write(&path, text).unwrap();
        let keys = without(folder.path());
        assert_eq!(keys.for_saving().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(matches!(keys.find("00000000").await, Err(MissingKey::File(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[tokio::test]
async fn a_deleted_key_file_is_written_again_by_a_process_that_has_used_it() {
    let folder = tempfile::tempdir().unwrap();
    let keys = without(folder.path());
    let (key, _) = keys.for_saving().await.unwrap();
    std::fs::remove_file(folder.path().join("tokens.key")).unwrap();
    keys.for_saving().await.unwrap();
    assert!(without(folder.path()).find(key.id()).await.is_ok());
}

/// Runs `count` instances at once, each like a process of its own, and returns their keys.
async fn race(count: usize, keys: impl Fn() -> Keys) -> Vec<String> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..count {
        let keys = keys();
        tasks.spawn(async move { keys.for_saving().await.unwrap().0.to_base64().to_string() });
    }
    tasks.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_create_the_key_at_once_get_the_same_one() {
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let mut made = race(8, || without(folder.path())).await;
        made.dedup();
        assert_eq!(made.len(), 1);

        let keychain = Arc::new(FakeKeychain::default());
        let folder = tempfile::tempdir().unwrap();
        let mut made = race(8, || with(folder.path(), &keychain)).await;
        made.dedup();
        assert_eq!(made.len(), 1);
    }
}
