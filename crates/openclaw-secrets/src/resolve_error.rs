//! Why a secret could not be resolved: the reference, the cause and a hint.

use std::time::Duration;

use crate::{SecretProvider, SecretRef};

/// Why a secret could not be resolved. Never contains a value, a token or a command's output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{reference}`: {cause}")]
pub struct ResolveError {
    reference: SecretRef,
    kind: ResolveErrorKind,
    cause: String,
    hint: Option<String>,
}

/// The kind of a [`ResolveError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResolveErrorKind {
    /// The provider is not configured, or not in this build.
    NotConfigured,
    /// The secret, version or field does not exist.
    NotFound,
    /// The provider denied access: invalid credentials or missing permissions.
    Denied,
    /// The provider is unreachable or temporarily unavailable; a retry may help.
    Unreachable,
    /// The request timed out; a retry may help.
    TimedOut,
    /// The secret exists, but is empty.
    Empty,
    /// The secret exists, but is not UTF-8 text.
    NotText,
    /// Any other failure.
    Failed,
}

impl ResolveError {
    pub(crate) fn new(
        reference: &SecretRef,
        failure: ProviderFailure,
        redact: impl Fn(&str) -> String,
    ) -> Self {
        let ProviderFailure { kind, cause, hint } = failure;
        let hint = hint.as_deref().map(&redact);
        Self { reference: reference.clone(), kind, cause: redact(&cause), hint }
    }

    /// The requested secret.
    #[must_use]
    pub fn reference(&self) -> &SecretRef {
        &self.reference
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ResolveErrorKind {
        self.kind
    }

    /// How the user can fix it, if known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// The failure of a provider; the resolver adds the reference.
#[derive(Debug)]
pub(crate) struct ProviderFailure {
    pub(crate) kind: ResolveErrorKind,
    pub(crate) cause: String,
    pub(crate) hint: Option<String>,
}

impl ProviderFailure {
    pub(crate) fn new(kind: ResolveErrorKind, cause: impl Into<String>) -> Self {
        Self { kind, cause: cause.into(), hint: None }
    }

    /// Sets the hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn timed_out(provider: SecretProvider, after: Duration) -> Self {
        let hint = match provider {
            SecretProvider::Env | SecretProvider::File => "check the disk",
            SecretProvider::Exec => "run the command in a terminal; it may be waiting for input",
            SecretProvider::Keychain => "unlock the keychain; it may be waiting for a password",
            SecretProvider::Gcp => {
                "check the network, and log in with `gcloud auth application-default login`"
            }
            SecretProvider::Aws => {
                "check the network, and set up credentials and a region with `aws configure`"
            }
            SecretProvider::Vault => "check the network and the Vault address",
        };
        Self::new(ResolveErrorKind::TimedOut, format!("timed out after {} ms", after.as_millis()))
            .hint(hint)
    }
}
