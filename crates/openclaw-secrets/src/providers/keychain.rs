//! `secret://keychain/NAME`: the keychain of the operating system. On a container or a server
//! without one, the error says so.

use async_trait::async_trait;
use tokio::task::spawn_blocking;

use super::Fetch;
use crate::keychain::{self, KeychainError, SERVICE};
use crate::{ResolveErrorKind, SecretRef, SecretString, resolve_error::ProviderFailure};

/// The user's keychain.
pub(super) struct Keychain;

#[async_trait]
impl Fetch for Keychain {
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let name = reference.name().to_owned();
        // The keychain may prompt the user.
        spawn_blocking(move || read(&name)).await.unwrap_or_else(|_| {
            Err(ProviderFailure::new(ResolveErrorKind::Failed, "the keychain library failed"))
        })
    }
}

fn read(name: &str) -> Result<SecretString, ProviderFailure> {
    keychain::get(name).map_err(|error| failure(error, name))
}

fn failure(error: KeychainError, name: &str) -> ProviderFailure {
    use ResolveErrorKind as Kind;
    match error {
        KeychainError::NoEntry => {
            let cause = format!("no keychain entry `{name}` for the service `{SERVICE}`");
            ProviderFailure::new(Kind::NotFound, cause)
                .hint(format!("add it with `openclaw secrets set {name}`"))
        }
        KeychainError::NoKeychain => {
            ProviderFailure::new(Kind::NotConfigured, "no keychain is running on this system")
                .hint("without a desktop session, use `secret://file/…` or `secret://env/…`")
        }
        KeychainError::Locked => {
            ProviderFailure::new(Kind::Denied, "the keychain is locked or access was denied")
                .hint("unlock it and try again")
        }
        KeychainError::Silent => {
            ProviderFailure::new(Kind::Unreachable, "the keychain does not respond")
                .hint("look for a window that asks to unlock it")
        }
        KeychainError::NotText => {
            ProviderFailure::new(Kind::NotText, "the keychain entry is not UTF-8 text")
        }
        KeychainError::Ambiguous => {
            let cause = format!("several keychain entries `{name}` for the service `{SERVICE}`");
            ProviderFailure::new(Kind::Failed, cause).hint("delete all but one of them")
        }
        KeychainError::Failed => ProviderFailure::new(Kind::Failed, "cannot read the keychain"),
    }
}
