//! The places that secrets come from, one module each.

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

use futures_util::future::BoxFuture;

use crate::{
    Environment, Provider, Redactor, ResolveErrorKind, SecretRef, SecretString, Settings,
    resolve_error::Failure,
};

/// A place that secrets come from. A call can be cancelled at any time.
pub(crate) trait Fetch: Send + Sync {
    /// The value of one secret. The time is limited by the caller.
    fn fetch<'a>(
        &'a self,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretString, Failure>>;
}

/// What providers are made from.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) settings: Arc<Settings>,
    pub(crate) environment: Environment,
    /// For the credentials that a provider uses itself.
    #[cfg_attr(not(any(feature = "aws", feature = "gcp", feature = "vault")), expect(dead_code))]
    pub(crate) redactor: Redactor,
}

/// The provider of this name, or one that says that the build does not have it.
pub(crate) fn provider(provider: Provider, context: &Context) -> Box<dyn Fetch> {
    match provider {
        Provider::Env => Box::new(env::Env::new(context)),
        Provider::File => Box::new(file::File::new(context)),
        Provider::Exec => Box::new(exec::Exec::new(context)),
        #[cfg(feature = "keychain")]
        Provider::Keychain => Box::new(keychain::Keychain),
        #[cfg(feature = "gcp")]
        Provider::Gcp => Box::new(gcp::Gcp::new(context)),
        #[cfg(feature = "aws")]
        Provider::Aws => Box::new(aws::Aws::new(context)),
        #[cfg(feature = "vault")]
        Provider::Vault => Box::new(vault::Vault::new(context)),
        #[cfg(not(all(
            feature = "keychain",
            feature = "gcp",
            feature = "aws",
            feature = "vault"
        )))]
        _ => Box::new(NotBuilt),
    }
}

/// Stands in for a provider whose cargo feature is off.
#[cfg(not(all(feature = "keychain", feature = "gcp", feature = "aws", feature = "vault")))]
struct NotBuilt;

#[cfg(not(all(feature = "keychain", feature = "gcp", feature = "aws", feature = "vault")))]
impl Fetch for NotBuilt {
    fn fetch<'a>(
        &'a self,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretString, Failure>> {
        let provider = reference.provider();
        let what = match provider {
            Provider::Aws => "AWS",
            Provider::Gcp => "Google Cloud",
            Provider::Vault => "Vault",
            _ => "keychain",
        };
        let failure = Failure::new(
            ResolveErrorKind::NotConfigured,
            format!("this build has no {what} support"),
        )
        .hint(format!("build with `--features {provider}`"));
        Box::pin(std::future::ready(Err(failure)))
    }
}

/// A path as users write it: `~/` is the home folder, and a relative one starts from `base_dir`.
fn expand(settings: &Settings, path: &str) -> Result<PathBuf, Failure> {
    match (path.strip_prefix("~/"), &settings.home) {
        (Some(rest), Some(home)) => Ok(home.join(rest)),
        (Some(_), None) => {
            Err(Failure::new(ResolveErrorKind::NotConfigured, "the home folder is not known")
                .hint("write the whole path, or set `HOME`"))
        }
        (None, _) => Ok(settings.base_dir.join(Path::new(path))),
    }
}
