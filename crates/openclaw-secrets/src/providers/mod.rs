//! The secret providers, one module each.

mod env;
mod exec;
mod file;
mod text;

#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "gcp")]
mod gcp;
#[cfg(any(feature = "aws", feature = "gcp", feature = "vault"))]
mod http;
#[cfg(any(feature = "aws", feature = "gcp"))]
mod kept;
#[cfg(feature = "keychain")]
mod keychain;
#[cfg(feature = "vault")]
mod vault;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use crate::{
    Environment, Redactor, ResolveErrorKind, SecretProvider, SecretRef, SecretSettings,
    SecretString, resolve_error::ProviderFailure,
};

/// A secret provider. Calls are cancel safe.
#[async_trait]
pub(crate) trait Fetch: Send + Sync {
    /// Fetches a secret. The caller applies the timeout.
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure>;
}

/// The context of a provider.
#[derive(Clone)]
pub(crate) struct ProviderContext {
    pub(crate) settings: Arc<SecretSettings>,
    pub(crate) environment: Environment,
    /// Redacts the credentials that a provider uses itself.
    #[cfg_attr(not(any(feature = "aws", feature = "gcp", feature = "vault")), expect(dead_code))]
    pub(crate) redactor: Redactor,
}

/// Creates a provider. One that is not in this build returns an error for every secret.
pub(crate) fn provider(provider: SecretProvider, context: &ProviderContext) -> Box<dyn Fetch> {
    match provider {
        SecretProvider::Env => Box::new(env::Env::new(context)),
        SecretProvider::File => Box::new(file::File::new(context)),
        SecretProvider::Exec => Box::new(exec::ExecProvider::new(context)),
        #[cfg(feature = "keychain")]
        SecretProvider::Keychain => Box::new(keychain::Keychain),
        #[cfg(feature = "gcp")]
        SecretProvider::Gcp => Box::new(gcp::Gcp::new(context)),
        #[cfg(feature = "aws")]
        SecretProvider::Aws => Box::new(aws::Aws::new(context)),
        #[cfg(feature = "vault")]
        SecretProvider::Vault => Box::new(vault::Vault::new(context)),
        #[cfg(not(all(
            feature = "keychain",
            feature = "gcp",
            feature = "aws",
            feature = "vault"
        )))]
        _ => Box::new(NotBuilt),
    }
}

/// Replaces a provider whose cargo feature is disabled.
#[cfg(not(all(feature = "keychain", feature = "gcp", feature = "aws", feature = "vault")))]
struct NotBuilt;

#[cfg(not(all(feature = "keychain", feature = "gcp", feature = "aws", feature = "vault")))]
#[async_trait]
impl Fetch for NotBuilt {
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let provider = reference.provider();
        let what = match provider {
            SecretProvider::Aws => "AWS",
            SecretProvider::Gcp => "Google Cloud",
            SecretProvider::Vault => "Vault",
            _ => "keychain",
        };
        let failure = ProviderFailure::new(
            ResolveErrorKind::NotConfigured,
            format!("this build has no {what} support"),
        )
        .hint(format!("build with `--features {provider}`"));
        Err(failure)
    }
}

/// Resolves a path: `~/` is the home folder, relative paths start from `base_dir`.
fn expand(settings: &SecretSettings, path: &str) -> Result<PathBuf, ProviderFailure> {
    match (path.strip_prefix("~/"), &settings.home) {
        (Some(rest), Some(home)) => Ok(home.join(rest)),
        (Some(_), None) => Err(ProviderFailure::new(
            ResolveErrorKind::NotConfigured,
            "`~` cannot be used: no home folder",
        )
        .hint("use the full path, or set `HOME`")),
        (None, _) => Ok(settings.base_dir.join(Path::new(path))),
    }
}
