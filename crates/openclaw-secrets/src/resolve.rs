//! [`Resolver`]: references become values, in parallel, each within its time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use crate::{
    Environment, Provider, Redactor, ResolveError, ResolveErrorKind, SecretRef, SecretString,
    SecretTemplate, Settings, credential,
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
/// assert_eq!(resolver.resolve_credential(&header).await?.expose(), "Bearer t0ken");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Resolver {
    shared: Arc<Shared>,
}

/// What came of checking one secret. Its value is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The secret that was asked for.
    pub reference: SecretRef,
    /// How long it took, from when it was asked for; waiting for others does not count.
    pub took: Duration,
    /// Why it cannot be had, if so.
    pub error: Option<ResolveError>,
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

    /// The filter that knows what was fetched.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.shared.redactor
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

    /// The text of a config string that is no credential as a whole, with its references replaced.
    ///
    /// For an address, an argument, a variable of a server: only the values that are put in become
    /// known to the redactor. Of `LOG_LEVEL: debug` every `debug` of the log would go otherwise. For
    /// a setting that is there to hold a credential use [`Resolver::resolve_credential`].
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

    /// The text of a config string that is a credential, with its references replaced.
    ///
    /// For a key, a password, a token, an `Authorization` header: people write them in the clear too,
    /// or the config has put a `${VARIABLE}` in. So, besides the values of the references, these are
    /// known to the redactor from then on: the whole text; what stands after the authentication
    /// scheme, if the first of several words is one (`Bearer` itself is not hidden); and every other
    /// literal word of at least 8 bytes.
    ///
    /// ```
    /// # use openclaw_secrets::*;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let environment = Environment::new(|_| None);
    /// let redactor = Redactor::new();
    /// let resolver = Resolver::new(Settings::default(), environment, redactor.clone());
    ///
    /// resolver.resolve_credential(&SecretTemplate::parse("Bearer sk-in-the-clear")?).await?;
    /// assert_eq!(redactor.redact("Bearer of sk-in-the-clear"), "Bearer of [REDACTED]");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Resolver::resolve_template`]. Literal words are known to the redactor even so.
    pub async fn resolve_credential(
        &self,
        template: &SecretTemplate,
    ) -> Result<SecretString, ResolveError> {
        let redactor = &self.shared.redactor;
        redactor.add_all(&credential::secret_words(template));
        let filled = self.resolve_template(template).await?;
        redactor.add_all(credential::without_scheme(template, &filled).iter().chain([&filled]));
        Ok(filled)
    }

    /// Whether many secrets can be had, and how long each takes, in the order in which they are given.
    ///
    /// They are fetched side by side, as by [`Resolver::resolve_all`]; a reference that is given
    /// twice is fetched twice. A value is made known to the redactor and dropped.
    pub async fn check_all(
        &self,
        references: impl IntoIterator<Item = &SecretRef>,
    ) -> Vec<Checked> {
        let references: Vec<SecretRef> = references.into_iter().cloned().collect();
        let mut checked: Vec<(usize, Checked)> = stream::iter(references.into_iter().enumerate())
            .map(|(place, reference)| async move {
                // Here, and not where the future is made: it waits for its turn first.
                let start = Instant::now();
                let value = self.fetch(&reference).await;
                let took = start.elapsed();
                self.shared.redactor.add_all(&value);
                let error = value.err().map(|failure| self.error(&reference, failure));
                (place, Checked { reference, took, error })
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        checked.sort_unstable_by_key(|(place, _)| *place);
        checked.into_iter().map(|(_, checked)| checked).collect()
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
