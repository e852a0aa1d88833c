//! The keychain. Only its absence can be tested on every machine.

#![cfg(all(feature = "keychain", target_os = "linux"))]
#![allow(clippy::expect_used, clippy::panic, reason = "a failing test may panic")]

mod support;

use openclaw_secrets::ResolveErrorKind;
use support::{Asker, environment, settings};

#[tokio::test]
async fn without_a_keychain_the_hint_names_alternatives() {
    if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some() {
        // A desktop: a test must not access the user's own keychain.
        return;
    }
    let asker = Asker::new(settings(), environment([]));
    let error = asker.fails("secret://keychain/github", ResolveErrorKind::NotConfigured).await;
    assert!(error.hint().is_some_and(|hint| hint.contains("secret://file/")));
}
