//! `secret://env/VARIABLE`: the host environment.

use futures_util::future::BoxFuture;

use super::{Fetch, ProviderContext};
use crate::{
    Environment, ResolveErrorKind, SecretRef, SecretString, resolve_error::ProviderFailure,
};

/// Variables of the environment that was passed in.
pub(super) struct Env {
    environment: Environment,
}

impl Env {
    pub(super) fn new(context: &ProviderContext) -> Self {
        Self { environment: context.environment.clone() }
    }
}

impl Fetch for Env {
    fn fetch<'a>(
        &'a self,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretString, ProviderFailure>> {
        let variable = reference.name();
        let value = match self.environment.get(variable) {
            Some(value) if value.is_empty() => Err(ProviderFailure::new(
                ResolveErrorKind::Empty,
                format!("the environment variable `{variable}` is empty"),
            )),
            Some(value) => Ok(SecretString::from(value)),
            None => Err(ProviderFailure::new(
                ResolveErrorKind::NotFound,
                format!("the environment variable `{variable}` is not set"),
            )
            .hint(format!("set `{variable}` where OpenClaw is started"))),
        };
        Box::pin(std::future::ready(value))
    }
}
