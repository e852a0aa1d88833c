//! `secret://env/VARIABLE`: the host environment.

use async_trait::async_trait;

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

#[async_trait]
impl Fetch for Env {
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let variable = reference.name();
        match self.environment.get(variable) {
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
        }
    }
}
