//! [`Resolver`]: resolves references concurrently, each with a timeout.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use crate::{
    Environment, Redactor, ResolveError, ResolveErrorKind, SecretProvider, SecretRef,
    SecretSettings, SecretString, SecretTemplate, credential,
    providers::{self, Fetch},
    resolve_error::ProviderFailure,
};

/// How many secrets are fetched concurrently.
const AT_ONCE: usize = 32;

/// Fetches secrets. Clones share connections and logins.
///
/// Every value is added to the [`Redactor`] before it is returned. Nothing is cached: a server gets
/// the current value when it is started. All methods are cancel safe.
///
/// ```
/// # use openclaw_secrets::*;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let environment: Environment = [("TOKEN", "t0ken")].into_iter().collect();
/// let resolver = Resolver::new(SecretSettings::default(), environment, Redactor::new());
///
/// let header = SecretTemplate::parse("Bearer secret://env/TOKEN")?;
/// assert_eq!(resolver.resolve_credential(&header).await?.expose(), "Bearer t0ken");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Resolver {
    shared: Arc<Shared>,
}

/// The result of checking a secret, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The requested secret.
    pub reference: SecretRef,
    /// How long the fetch took, without the time spent waiting for a free slot.
    pub took: Duration,
    /// Why it could not be resolved, if so.
    pub error: Option<ResolveError>,
}

struct Shared {
    settings: Arc<SecretSettings>,
    providers: BTreeMap<SecretProvider, Box<dyn Fetch>>,
    redactor: Redactor,
}

impl Resolver {
    /// Creates a resolver. Providers are not contacted before a secret is requested.
    #[must_use]
    pub fn new(settings: SecretSettings, environment: Environment, redactor: Redactor) -> Self {
        let settings = Arc::new(settings);
        let context = providers::ProviderContext {
            settings: settings.clone(),
            environment,
            redactor: redactor.clone(),
        };
        let providers = SecretProvider::ALL
            .into_iter()
            .map(|provider| (provider, providers::provider(provider, &context)))
            .collect();
        Self { shared: Arc::new(Shared { settings, providers, redactor }) }
    }

    /// Returns the redactor that all fetched values are added to.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.shared.redactor
    }

    /// Resolves one secret.
    ///
    /// # Errors
    /// If the provider fails or times out.
    pub async fn resolve(&self, reference: &SecretRef) -> Result<SecretString, ResolveError> {
        let value = self.fetch(reference).await;
        self.shared.redactor.add_credentials(&value);
        value.map_err(|failure| self.error(reference, failure))
    }

    /// Replaces the references in a config string that is not a credential as a whole.
    ///
    /// For URLs, arguments and variables of a server: only the resolved values are added to the
    /// redactor. Otherwise `LOG_LEVEL: debug` would hide every `debug` in the log. For a setting
    /// that contains a credential use [`Resolver::resolve_credential`].
    ///
    /// # Errors
    /// Returns the error of the first reference in the text that cannot be resolved.
    pub async fn resolve_template(
        &self,
        template: &SecretTemplate,
    ) -> Result<SecretString, ResolveError> {
        let values = self.resolve_all(template.references()).await;
        template.fill(|reference| match values.get(reference) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(error)) => Err(error.clone()),
            None => {
                let failure = ProviderFailure::new(ResolveErrorKind::Failed, "not resolved");
                Err(self.error(reference, failure))
            }
        })
    }

    /// Replaces the references in a config string that is a credential.
    ///
    /// For keys, passwords, tokens and `Authorization` headers, which users also write in plaintext
    /// or as a `${VARIABLE}`. So, besides the resolved values, these are added to the redactor: the
    /// whole text; the text after the authentication scheme, if the first of several words is one
    /// (`Bearer` itself is not hidden); and every other literal word of at least 8 bytes.
    ///
    /// ```
    /// # use openclaw_secrets::*;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let environment = Environment::new(|_| None);
    /// let redactor = Redactor::new();
    /// let resolver = Resolver::new(SecretSettings::default(), environment, redactor.clone());
    ///
    /// resolver.resolve_credential(&SecretTemplate::parse("Bearer sk-in-the-clear")?).await?;
    /// assert_eq!(redactor.redact("Bearer of sk-in-the-clear"), "Bearer of [REDACTED]");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Like [`Resolver::resolve_template`]. Literal words are added to the redactor even then.
    pub async fn resolve_credential(
        &self,
        template: &SecretTemplate,
    ) -> Result<SecretString, ResolveError> {
        let redactor = &self.shared.redactor;
        redactor.add_credentials(&credential::secret_words(template));
        let filled = self.resolve_template(template).await?;
        let alone = credential::without_scheme(template, &filled);
        redactor.add_credentials(alone.iter().chain([&filled]));
        Ok(filled)
    }

    /// Like [`Resolver::resolve_credential`], for a setting that may also be something else: it is redacted
    /// as well, but what has it in its name or address is not taken for one that gives a credential away.
    ///
    /// # Errors
    /// Returns the error of the first reference in the text that cannot be resolved.
    pub async fn resolve_hidden(
        &self,
        template: &SecretTemplate,
    ) -> Result<SecretString, ResolveError> {
        let redactor = &self.shared.redactor;
        redactor.add_all(&credential::secret_words(template));
        let filled = self.resolve_template(template).await?;
        redactor.add_all(credential::without_scheme(template, &filled).iter().chain([&filled]));
        Ok(filled)
    }

    /// Checks whether secrets resolve, and how long each takes. Results are in the given order.
    ///
    /// They are fetched concurrently, as by [`Resolver::resolve_all`]; a reference that is given
    /// twice is fetched twice. Values are added to the redactor and dropped.
    pub async fn check_all(
        &self,
        references: impl IntoIterator<Item = &SecretRef>,
    ) -> Vec<Checked> {
        let references: Vec<SecretRef> = references.into_iter().cloned().collect();
        let mut checked: Vec<(usize, Checked)> = stream::iter(references.into_iter().enumerate())
            .map(|(place, reference)| async move {
                // Inside the future, so that waiting for a free slot does not count.
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

    /// Resolves secrets concurrently; each distinct reference is fetched once.
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
        self.shared.redactor.add_credentials(values.iter().flat_map(|(_, value)| value));
        let explain = |(reference, value): (SecretRef, Result<_, ProviderFailure>)| {
            let value = value.map_err(|failure| self.error(&reference, failure));
            (reference, value)
        };
        values.into_iter().map(explain).collect()
    }

    /// Fetches a value without adding it to the redactor.
    async fn fetch(&self, reference: &SecretRef) -> Result<SecretString, ProviderFailure> {
        let Some(provider) = self.shared.providers.get(&reference.provider()) else {
            return Err(ProviderFailure::new(ResolveErrorKind::NotConfigured, "no such provider"));
        };
        let limit = self.time_for(reference);
        let value = match tokio::time::timeout(limit, provider.fetch(reference)).await {
            Ok(value) => value?,
            Err(_) => return Err(ProviderFailure::timed_out(reference.provider(), limit)),
        };
        if value.is_empty() {
            return Err(ProviderFailure::new(ResolveErrorKind::Empty, "the secret is empty"));
        }
        Ok(value)
    }

    fn error(&self, reference: &SecretRef, failure: ProviderFailure) -> ResolveError {
        let redactor = &self.shared.redactor;
        ResolveError::new(reference, failure, |text| redactor.redact(text).into_owned())
    }

    fn time_for(&self, reference: &SecretRef) -> Duration {
        let settings = &self.shared.settings;
        let own = match reference.provider() {
            SecretProvider::Exec => {
                settings.exec.get(reference.name()).and_then(|exec| exec.timeout)
            }
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
