//! The stored logins at servers, and where the key that encrypts them is kept.

use std::path::Path;

use openclaw_oauth::store::{GrantStore as _, KeyPlace};

use crate::commands::check::Check;
use crate::edge::Edge;
use crate::output::plural;
use crate::state_files;

/// Checks that all logins can be read.
pub(super) async fn checks(state: &Path, edge: &Edge) -> Vec<Check> {
    let store = state_files::logins(state, edge.key_options());
    let listing = match store.list().await {
        Ok(listing) => listing,
        Err(error) => return vec![Check::bad(error.to_string(), None)],
    };
    let readable = listing.grants.iter().filter(|(_, grant)| grant.is_ok()).count();
    let mut checks = vec![match listing.grants.len() + listing.damaged.len() {
        0 => Check::note("none"),
        _ => Check::good(format!("{} readable", plural(readable, "login"))),
    }];
    for (key, grant) in &listing.grants {
        if let Err(error) = grant {
            let server = &key.server;
            let advice = format!("run `openclaw mcp login {server}` to log in again");
            checks.push(Check::bad(format!("{server}: {error}"), Some(advice)));
        }
    }
    for error in &listing.damaged {
        let folder = state.join("mcp").join("tokens");
        let advice = format!("delete the damaged file in {}, and log in again", folder.display());
        checks.push(Check::bad(error.to_string(), Some(advice)));
    }
    checks.push(match store.key_place().await {
        Some(KeyPlace::Keychain) | None => Check::good("encrypted with a key in the keychain"),
        Some(KeyPlace::File(reason)) => {
            Check::note(format!("encrypted with a key in a file: {reason}"))
        }
    });
    checks
}
