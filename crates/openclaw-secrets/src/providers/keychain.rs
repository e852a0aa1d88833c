//! `secret://keychain/NAME`: the keychain of the operating system, under the service `openclaw`.
//!
//! macOS: Keychain Services. Windows: Credential Manager. Elsewhere: the Secret Service (GNOME
//! Keyring, KWallet, KeePassXC) over D-Bus, implemented in Rust: no C library is needed to build or
//! to run, and on a container or a server without a Secret Service the error says so.

use futures_util::future::BoxFuture;
use keyring::{Entry, Error};
use tokio::task::spawn_blocking;

use super::Fetch;
use crate::{ResolveErrorKind, SecretRef, SecretString, resolve_error::Failure};

/// The service name of the entries.
const SERVICE: &str = "openclaw";

/// The user's keychain.
pub(super) struct Keychain;

impl Fetch for Keychain {
    fn fetch<'a>(
        &'a self,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretString, Failure>> {
        let name = reference.name().to_owned();
        Box::pin(async {
            // The keychain may prompt the user. If the caller times out, the thread keeps waiting:
            // it cannot be interrupted.
            spawn_blocking(move || read(&name)).await.unwrap_or_else(|_| {
                Err(Failure::new(ResolveErrorKind::Failed, "the keychain library failed"))
            })
        })
    }
}

fn read(name: &str) -> Result<SecretString, Failure> {
    let value = Entry::new(SERVICE, name).and_then(|entry| entry.get_password());
    value.map(SecretString::from).map_err(|error| failure(&error, name))
}

/// Converts an error by variant only: its text may contain the entry (`BadEncoding`).
fn failure(error: &Error, name: &str) -> Failure {
    use ResolveErrorKind as Kind;
    match error {
        Error::NoEntry => {
            let cause = format!("no keychain entry `{name}` for the service `{SERVICE}`");
            Failure::new(Kind::NotFound, cause).hint(advice(name))
        }
        Error::NoDefaultStore | Error::NotSupportedByStore(_) => {
            Failure::new(Kind::NotConfigured, "no keychain is running on this system")
                .hint("without a desktop session, use `secret://file/…` or `secret://env/…`")
        }
        Error::NoStorageAccess(_) => {
            Failure::new(Kind::Denied, "the keychain is locked or access was denied")
                .hint("unlock it and try again")
        }
        Error::BadEncoding(_) => {
            Failure::new(Kind::NotText, "the keychain entry is not UTF-8 text")
        }
        Error::Ambiguous(_) => {
            let cause = format!("several keychain entries `{name}` for the service `{SERVICE}`");
            Failure::new(Kind::Failed, cause)
        }
        _ => Failure::new(Kind::Failed, "cannot read the keychain"),
    }
}

/// Returns the command that creates an entry.
fn advice(name: &str) -> String {
    if cfg!(target_os = "macos") {
        format!("add it with `security add-generic-password -s {SERVICE} -a {name} -w`")
    } else if cfg!(windows) {
        format!("add it with `cmdkey /generic:{name}.{SERVICE} /user:{name} /pass`")
    } else {
        format!("add it with `secret-tool store --label={name} service {SERVICE} username {name}`")
    }
}
