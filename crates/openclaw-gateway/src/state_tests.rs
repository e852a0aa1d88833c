//! Claiming a state folder, and finding the gateway that has claimed it.

use std::fs;

use openclaw_secrets::Redactor;

use super::{CARD, Claim, ClaimError, LOCK, find};

const ADDRESS: &str = "127.0.0.1:18789";

fn published(folder: &std::path::Path) -> Claim {
    let claim = Claim::take(folder).unwrap();
    let token = claim.token(&Redactor::new()).unwrap();
    claim.publish(ADDRESS.parse().unwrap(), Some(&token), "1.2.3").unwrap();
    claim
}

#[test]
fn a_running_gateway_is_found_with_its_token_and_a_stopped_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    assert!(find(folder.path()).is_none());
    let claim = published(folder.path());
    let running = find(folder.path()).unwrap();
    assert_eq!(running.url, "ws://127.0.0.1:18789");
    assert_eq!((running.pid, running.version.as_str()), (std::process::id(), "1.2.3"));
    assert_eq!(running.token.unwrap(), claim.token(&Redactor::new()).unwrap());
    drop(claim);
    assert!(find(folder.path()).is_none());
    assert!(!folder.path().join(CARD).exists());
}

#[test]
fn two_gateways_cannot_have_one_folder_and_the_second_learns_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = published(folder.path());
    let error = Claim::take(folder.path()).unwrap_err();
    assert!(matches!(&error, ClaimError::Taken(Some(_))));
    let message = error.to_string();
    assert!(message.contains(&std::process::id().to_string()), "{message}");
    assert!(message.contains("ws://127.0.0.1:18789"), "{message}");
    assert!(find(folder.path()).is_some(), "the first one is still found");
    drop(first);
    Claim::take(folder.path()).unwrap();
}

#[test]
fn what_a_killed_gateway_left_behind_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let claim = published(folder.path());
    let card = fs::read(folder.path().join(CARD)).unwrap();
    drop(claim);
    // As after a kill: the file exists, the lock is free.
    fs::write(folder.path().join(CARD), card).unwrap();
    assert!(folder.path().join(LOCK).exists());
    assert!(find(folder.path()).is_none());
}

#[test]
fn the_token_is_made_once_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let first = Claim::take(folder.path()).unwrap().token(&Redactor::new()).unwrap();
    assert_eq!(first.expose().len(), 64);
    let redactor = Redactor::new();
    let again = Claim::take(folder.path()).unwrap().token(&redactor).unwrap();
    assert_eq!(first, again);
    assert_eq!(redactor.redact(again.expose()), "[REDACTED]");
}

#[test]
fn an_invalid_file_is_not_taken_for_a_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let _claim = Claim::take(folder.path()).unwrap();
    for text in ["", "{", r#"{"version":99}"#] {
        fs::write(folder.path().join(CARD), text).unwrap();
        assert!(find(folder.path()).is_none(), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn files_are_readable_only_by_the_owner() {
    use std::os::unix::fs::PermissionsExt as _;

    use super::TOKEN;

    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let _claim = published(&state);
    for (name, mode) in [(CARD, 0o600), (TOKEN, 0o600), (LOCK, 0o600), ("", 0o700)] {
        let mode_of = fs::metadata(state.join(name)).unwrap().permissions().mode();
        assert_eq!(mode_of & 0o777, mode, "{name}");
    }
}
