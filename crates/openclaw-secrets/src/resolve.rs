//! [`Resolver`]: references become values, in parallel, each within its time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream};

use crate::{
    Environment, Provider, Redactor, ResolveError, ResolveErrorKind, SecretRef, SecretString,
    SecretTemplate, Settings,
    providers::{self, Fetch},
    resolve_error::Failure,
};

/// How many secrets are fetched at the same time.
const AT_ONCE: usize = 32;

/// Fetches secrets. A clone shares connections and logins.
///
/// Whatever it fetches is known to the [`Redactor`] before the caller sees it. Nothing is cached: who
/// starts a server gets the value of today. Every method can be cancelled by dropping its future.
///
/// ```
/// # use openclaw_secrets::*;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let environment: Environment = [("TOKEN", "t0ken")].into_iter().collect();
/// let resolver = Resolver::new(Settings::default(), environment, Redactor::new());
///
/// let header = SecretTemplate::parse("Bearer secret://env/TOKEN")?;
/// assert_eq!(resolver.resolve_template(&header).await?.expose(), "Bearer t0ken");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Resolver {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Arc<Settings>,
    providers: BTreeMap<Provider, Box<dyn Fetch>>,
    redactor: Redactor,
}

impl Resolver {
    /// A resolver for these settings. Nothing is contacted before a secret is asked for.
    #[must_use]
    pub fn new(settings: Settings, environment: Environment, redactor: Redactor) -> Self {
        let settings = Arc::new(settings);
        let context = providers::Context {
            settings: settings.clone(),
            environment,
            redactor: redactor.clone(),
        };
        let providers = Provider::ALL
            .into_iter()
            .map(|provider| (provider, providers::provider(provider, &context)))
            .collect();
        Self { shared: Arc::new(Shared { settings, providers, redactor }) }
    }

    /// The value of one secret.
    ///
    /// # Errors
    /// If it cannot be had, or not within its time.
    pub async fn resolve(&self, reference: &SecretRef) -> Result<SecretString, ResolveError> {
        let value = self.fetch(reference).await;
        self.shared.redactor.add_all(&value);
        value.map_err(|failure| self.error(reference, failure))
    }

    /// The text of a config string, with its references replaced.
    ///
    /// # Errors
    /// The error of the first reference, in the order of the text, that cannot be had.
    pub async fn resolve_template(
        &self,
        template: &SecretTemplate,
    ) -> Result<SecretString, ResolveError> {
        let values = self.resolve_all(template.references()).await;
        template.fill(|reference| match values.get(reference) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(error)) => Err(error.clone()),
            None => {
                let failure = Failure::new(ResolveErrorKind::Failed, "it was not looked up");
                Err(self.error(reference, failure))
            }
        })
    }

    /// The values of many secrets, side by side, each distinct one asked for once.
    pub async fn resolve_all(
        &self,
        references: impl IntoIterator<Item = &SecretRef>,
    ) -> BTreeMap<SecretRef, Result<SecretString, ResolveError>> {
        let distinct: BTreeSet<SecretRef> = references.into_iter().cloned().collect();
        let values: Vec<_> = stream::iter(distinct)
            .map(|reference| async {
                let value = self.fetch(&reference).await;
                (reference, value)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        self.shared.redactor.add_all(values.iter().flat_map(|(_, value)| value));
        let explain = |(reference, value): (SecretRef, Result<_, Failure>)| {
            let value = value.map_err(|failure| self.error(&reference, failure));
            (reference, value)
        };
        values.into_iter().map(explain).collect()
    }

    /// A value that the redactor does not know yet.
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, Failure> {
        let Some(provider) = self.shared.providers.get(&reference.provider()) else {
            return Err(Failure::new(ResolveErrorKind::NotConfigured, "no such provider"));
        };
        let limit = self.time_for(reference);
        let value = match tokio::time::timeout(limit, provider.fetch(reference)).await {
            Ok(value) => value?,
            Err(_) => return Err(Failure::timed_out(reference.provider(), limit)),
        };
        if value.is_empty() {
            return Err(Failure::new(ResolveErrorKind::Empty, "the secret is empty"));
        }
        Ok(value)
    }

    fn error(&self, reference: &SecretRef, failure: Failure) -> ResolveError {
        let redactor = &self.shared.redactor;
        ResolveError::new(reference, failure, |text| redactor.redact(text).into_owned())
    }

    fn time_for(&self, reference: &SecretRef) -> Duration {
        let settings = &self.shared.settings;
        let own = match reference.provider() {
            Provider::Exec => settings.exec.get(reference.name()).and_then(|exec| exec.timeout),
            _ => None,
        };
        own.unwrap_or(settings.timeout)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}
