//! Directories created by a gateway are private to the user.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::{Place, config, stop};

#[tokio::test]
async fn the_workspace_is_made_for_the_user_alone() {
    let place = Place::new(&config(&json!({})));
    let gateway = place.start().await;
    let workspace = std::fs::metadata(place.path().join("state/workspace")).unwrap();
    assert_eq!(workspace.permissions().mode() & 0o777, 0o700);
    stop(&gateway).await;
}
