//! Why a secret could not be had: which one, the cause in plain words, and what to do.

use std::time::Duration;

use crate::{Provider, SecretRef};

/// A secret that could not be had. It never holds a value, a token, or what a command printed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{reference}`: {cause}")]
pub struct ResolveError {
    reference: SecretRef,
    kind: ResolveErrorKind,
    cause: String,
    hint: Option<String>,
}

/// What a caller can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResolveErrorKind {
    /// The provider is not set up, or not in this build.
    NotConfigured,
    /// There is no such secret, version or field.
    NotFound,
    /// The provider refused: wrong credentials or missing rights.
    Denied,
    /// The provider did not answer, or could not answer now; trying again may help.
    Unreachable,
    /// It took too long; trying again may help.
    TimedOut,
    /// There is a secret, and it is empty.
    Empty,
    /// There is a secret, and it is not UTF-8 text.
    NotText,
    /// Something else went wrong.
    Failed,
}

impl ResolveError {
    pub(crate) fn new(
        reference: &SecretRef,
        failure: Failure,
        redact: impl Fn(&str) -> String,
    ) -> Self {
        let Failure { kind, cause, hint } = failure;
        let hint = hint.as_deref().map(&redact);
        Self { reference: reference.clone(), kind, cause: redact(&cause), hint }
    }

    /// The secret that was asked for.
    #[must_use]
    pub fn reference(&self) -> &SecretRef {
        &self.reference
    }

    /// What happened, for a caller that decides what to do.
    #[must_use]
    pub fn kind(&self) -> ResolveErrorKind {
        self.kind
    }

    /// What a user can do about it, if we know.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// What a provider says; the resolver adds for which secret.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ResolveErrorKind,
    pub(crate) cause: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: ResolveErrorKind, cause: impl Into<String>) -> Self {
        Self { kind, cause: cause.into(), hint: None }
    }

    /// The same, with advice.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn timed_out(provider: Provider, after: Duration) -> Self {
        let hint = match provider {
            Provider::Env | Provider::File => "check the disk that it is on",
            Provider::Exec => "run the command in a terminal; it may be waiting for an answer",
            Provider::Keychain => "unlock the keychain; it may be waiting for a password",
            Provider::Gcp => {
                "check the network, and log in with `gcloud auth application-default login`"
            }
            Provider::Aws => {
                "check the network, and set up credentials and a region with `aws configure`"
            }
            Provider::Vault => "check the network and the address of the Vault server",
        };
        Self::new(ResolveErrorKind::TimedOut, format!("no answer after {after:?}")).hint(hint)
    }
}
