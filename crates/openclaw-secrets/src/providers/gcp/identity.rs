//! The application default credentials of Google Cloud, and the project they belong to.
//!
//! `google-cloud-auth` could find them by itself, but only in the environment of the process. This
//! module searches the [`Environment`](crate::Environment) that was passed in, in the same order
//! (google.aip.dev/auth/4110); the library signs, exchanges, caches and refreshes tokens.

use std::path::PathBuf;

use google_cloud_auth::credentials::{
    CacheableResource, Credentials, external_account, impersonated, service_account, user_account,
};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;

use super::metadata::Metadata;
use crate::{
    ResolveErrorKind, SecretString,
    providers::{ProviderContext, http::ProviderCredential, text},
    resolve_error::ProviderFailure,
};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Credentials and their project.
pub(super) struct GcpIdentity {
    /// From the credentials file; `None` to use those of the metadata server.
    credentials: Option<Credentials>,
    token: ProviderCredential,
    project: Option<String>,
    metadata: Metadata,
}

impl GcpIdentity {
    pub(super) async fn load(context: &ProviderContext) -> Result<Self, ProviderFailure> {
        let variable = |name| context.environment.get_set(name);
        let metadata = Metadata::new(context)?;
        let key = load_key(context).await?;
        let mut project =
            context.settings.gcp.project.clone().or_else(|| variable("GOOGLE_CLOUD_PROJECT"));
        let credentials = match key {
            Some(mut key) => {
                let of_key = key["project_id"].as_str().or(key["quota_project_id"].as_str());
                project = project.or_else(|| of_key.map(str::to_owned));
                if let Some(quota) = variable("GOOGLE_CLOUD_QUOTA_PROJECT")
                    && let Some(fields) = key.as_object_mut()
                {
                    fields.insert("quota_project_id".to_owned(), quota.into());
                }
                Some(from_key(key)?)
            }
            None if metadata.is_there().await => None,
            None => return Err(no_credentials()),
        };
        let token = ProviderCredential::new(context.redactor.clone());
        Ok(Self { credentials, token, project, metadata })
    }

    /// Returns the headers that authenticate a request.
    pub(super) async fn headers(&self) -> Result<HeaderMap, ProviderFailure> {
        let headers = match &self.credentials {
            Some(credentials) => of_library(credentials).await?,
            None => bearer(&self.metadata.token().await?)?,
        };
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if let Some(token) = bearer.and_then(|value| value.strip_prefix("Bearer ")) {
            self.token.set(SecretString::from(token));
        }
        Ok(headers)
    }

    /// Returns the project for secrets that are named without one.
    pub(super) async fn project(&self) -> Result<String, ProviderFailure> {
        if let Some(project) = &self.project {
            return Ok(project.clone());
        }
        self.metadata.project().await.ok_or_else(|| {
            let cause = "no Google Cloud project configured";
            ProviderFailure::new(ResolveErrorKind::NotConfigured, cause).hint(
                "set `secrets.gcp.project` in the configuration or `GOOGLE_CLOUD_PROJECT`, or write \
                 `secret://gcp/projects/PROJECT/secrets/NAME`",
            )
        })
    }
}

async fn of_library(credentials: &Credentials) -> Result<HeaderMap, ProviderFailure> {
    match credentials.headers(Default::default()).await {
        Ok(CacheableResource::New { data, .. }) => Ok(data),
        Ok(CacheableResource::NotModified) => Ok(HeaderMap::new()),
        Err(error) if error.is_transient() => {
            let cause = "Google Cloud temporarily issued no access token";
            Err(ProviderFailure::new(ResolveErrorKind::Unreachable, cause))
        }
        Err(_) => {
            let cause = "Google Cloud issued no access token for the credentials";
            Err(ProviderFailure::new(ResolveErrorKind::Denied, cause)
                .hint("log in again with `gcloud auth application-default login`"))
        }
    }
}

fn bearer(token: &SecretString) -> Result<HeaderMap, ProviderFailure> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose())).map_err(|_| {
        let cause = "the metadata server returned an invalid access token";
        ProviderFailure::new(ResolveErrorKind::Failed, cause)
    })?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

/// Reads the credentials file, if there is one.
async fn load_key(context: &ProviderContext) -> Result<Option<Value>, ProviderFailure> {
    let named = context.environment.get_set("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
    let is_named = named.is_some();
    let Some(path) = named.or_else(|| well_known(context)) else { return Ok(None) };
    let bad = |what: &str| {
        let cause = format!("the credentials file `{}` {what}", path.display());
        ProviderFailure::new(ResolveErrorKind::NotConfigured, cause).hint(if is_named {
            "check `GOOGLE_APPLICATION_CREDENTIALS`"
        } else {
            "log in again with `gcloud auth application-default login`"
        })
    };
    match text::read_file(&path).await {
        Ok(json) => serde_json::from_slice(&json).map(Some).map_err(|_| bad("is not JSON")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => Ok(None),
        Err(error) => Err(bad(&format!("cannot be read: {error}"))),
    }
}

/// Returns the path that `gcloud auth application-default login` writes to.
fn well_known(context: &ProviderContext) -> Option<PathBuf> {
    let variable = |name| context.environment.get_set(name).map(PathBuf::from);
    let folder = match variable("CLOUDSDK_CONFIG") {
        Some(folder) => folder,
        None if cfg!(windows) => variable("APPDATA")?.join("gcloud"),
        None => context.settings.home.as_ref()?.join(".config/gcloud"),
    };
    Some(folder.join("application_default_credentials.json"))
}

fn from_key(key: Value) -> Result<Credentials, ProviderFailure> {
    let kind = key["type"].as_str().unwrap_or_default().to_owned();
    let built = match kind.as_str() {
        "authorized_user" => user_account::Builder::new(key).with_scopes([SCOPE]).build(),
        "service_account" => service_account::Builder::new(key)
            .with_access_specifier(service_account::AccessSpecifier::from_scopes([SCOPE]))
            .build(),
        "impersonated_service_account" => {
            impersonated::Builder::new(key).with_scopes([SCOPE]).build()
        }
        "external_account" => external_account::Builder::new(key).with_scopes([SCOPE]).build(),
        "" => return Err(incomplete("the Google Cloud credentials have no `type`")),
        _ => {
            let cause = format!("credentials of type `{kind}` are not supported");
            return Err(ProviderFailure::new(ResolveErrorKind::NotConfigured, cause));
        }
    };
    // The library's message is omitted: it may quote the file.
    built.map_err(|_| incomplete(&format!("the `{kind}` credentials are incomplete")))
}

fn incomplete(cause: &str) -> ProviderFailure {
    ProviderFailure::new(ResolveErrorKind::NotConfigured, cause).hint(
        "download the key again, or log in again with `gcloud auth application-default login`",
    )
}

fn no_credentials() -> ProviderFailure {
    ProviderFailure::new(ResolveErrorKind::NotConfigured, "no Google Cloud credentials found").hint(
        "run `gcloud auth application-default login`, or set `GOOGLE_APPLICATION_CREDENTIALS` to a \
         key file",
    )
}
