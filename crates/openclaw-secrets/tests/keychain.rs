//! The keychain. Only its absence can be tested everywhere.

#![cfg(all(feature = "keychain", target_os = "linux"))]
#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

mod support;

use openclaw_secrets::ResolveErrorKind;
use support::{Asker, environment, settings};

#[tokio::test]
async fn where_no_keychain_runs_the_user_is_told_what_to_use_instead() {
    if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some() {
        // A desktop. Its keychain is the user's own, and what is in it is no business of a test.
        return;
    }
    let error = Asker::new(settings(), environment([])).error("secret://keychain/github").await;
    assert_eq!(error.kind(), ResolveErrorKind::NotConfigured, "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("secret://file/")));
}
