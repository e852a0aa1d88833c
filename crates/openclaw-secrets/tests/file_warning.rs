//! A warning in the log. Alone in its process: `tracing` caches for the whole process that an event
//! has no subscriber, so another test could silence it.

#![cfg(all(feature = "resolve", unix))]
#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

mod support;

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
};

use openclaw_secrets::SecretSettings;
use support::{Asker, environment, settings};

#[tokio::test]
async fn a_file_that_others_may_read_is_used_with_a_warning() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("token");
    fs::write(&path, "hunter22").expect("write");
    let log = folder.path().join("log");
    let file = fs::File::create(&log).expect("log");
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(file).finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let settings = SecretSettings { base_dir: folder.path().to_owned(), ..settings() };
    let asker = Asker::new(settings, environment([]));
    for (mode, warns) in [(0o600, false), (0o640, true)] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("mode");
        assert_eq!(asker.value("secret://file/token").await, "hunter22");
        let log = fs::read_to_string(&log).expect("log");
        assert_eq!(log.contains("other users may access this secret"), warns, "{log}");
        assert!(!log.contains("hunter22"));
    }
}
