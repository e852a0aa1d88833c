//! `secret://keychain/NAME`: the keychain of the operating system, under the service `openclaw`.
//!
//! macOS: Keychain Services. Windows: Credential Manager. Elsewhere: the Secret Service (GNOME Keyring,
//! KWallet, KeePassXC) over D-Bus, spoken in Rust: no C library is needed to build or to run, and a
//! container or a bare server, where there is none, gets an error that says so.

use futures_util::future::BoxFuture;
use keyring::{Entry, Error};
use tokio::task::spawn_blocking;

use super::Fetch;
use crate::{ResolveErrorKind, SecretRef, SecretString, resolve_error::Failure};

/// The service under which entries are filed.
const SERVICE: &str = "openclaw";

/// The keychain of this user.
pub(super) struct Keychain;

impl Fetch for Keychain {
    fn fetch<'a>(
        &'a self,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretString, Failure>> {
        let name = reference.name().to_owned();
        Box::pin(async {
            // The keychain may ask the user. If the caller does not wait that long, the thread still
            // does: it cannot be interrupted, and ends with the answer.
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

/// By variant only: the error's own text may hold the entry (`BadEncoding`).
fn failure(error: &Error, name: &str) -> Failure {
    use ResolveErrorKind as Kind;
    match error {
        Error::NoEntry => {
            let cause = format!("the keychain has no entry `{name}` of the service `{SERVICE}`");
            Failure::new(Kind::NotFound, cause).hint(advice(name))
        }
        Error::NoDefaultStore | Error::NotSupportedByStore(_) => {
            Failure::new(Kind::NotConfigured, "this system has no keychain that is running").hint(
                "use `secret://file/…` or `secret://env/…` where nobody is logged in to a desktop",
            )
        }
        Error::NoStorageAccess(_) => {
            Failure::new(Kind::Denied, "the keychain is locked, or access was refused")
                .hint("unlock it and try again")
        }
        Error::BadEncoding(_) => Failure::new(Kind::NotText, "the entry is not UTF-8 text"),
        Error::Ambiguous(_) => {
            let cause = format!("the keychain has several entries `{name}` of `{SERVICE}`");
            Failure::new(Kind::Failed, cause)
        }
        _ => Failure::new(Kind::Failed, "the keychain could not be read"),
    }
}

/// How an entry is made.
fn advice(name: &str) -> String {
    if cfg!(target_os = "macos") {
        format!("add it with `security add-generic-password -s {SERVICE} -a {name} -w`")
    } else if cfg!(windows) {
        format!("add it with `cmdkey /generic:{name}.{SERVICE} /user:{name} /pass`")
    } else {
        format!("add it with `secret-tool store --label={name} service {SERVICE} username {name}`")
    }
}
