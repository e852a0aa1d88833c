//! Who we are to Google Cloud: the application default credentials, and the project they belong to.
//!
//! `google-cloud-auth` could look for them by itself, but only in the environment of the process. Here
//! they are looked for in the one that was handed in, in the same order (google.aip.dev/auth/4110),
//! and the library does what follows: signing, exchanging, caching and refreshing tokens.

use std::{path::PathBuf, time::Duration};

use google_cloud_auth::credentials::{
    CacheableResource, Credentials, external_account, impersonated, mds, service_account,
    user_account,
};
use reqwest::{
    Client,
    header::{AUTHORIZATION, HeaderMap},
};
use serde_json::Value;

use crate::{
    ResolveErrorKind, SecretString,
    providers::{Context, http::Credential},
    resolve_error::Failure,
};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// By address: looking up `metadata.google.internal` can take long where it does not exist.
const METADATA_HOST: &str = "169.254.169.254";
/// A metadata server is next door. Elsewhere nobody answers at that address, and waiting for the
/// time-out would hide the real problem: that there are no credentials.
const METADATA_PATIENCE: Duration = Duration::from_secs(3);

/// Credentials, with what is known about their project.
pub(super) struct Identity {
    credentials: Credentials,
    token: Credential,
    project: Option<String>,
    client: Client,
    metadata: String,
}

impl Identity {
    pub(super) async fn load(context: &Context, client: &Client) -> Result<Self, Failure> {
        let variable = |name| context.environment.get_set(name);
        let host = variable("GCE_METADATA_HOST").unwrap_or_else(|| METADATA_HOST.to_owned());
        let metadata = format!("http://{host}");
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
                from_key(key)?
            }
            None => {
                ask_metadata(client, &metadata, "").await.map_err(|()| no_credentials())?;
                mds::Builder::default()
                    .with_endpoint(&metadata)
                    .build()
                    .map_err(|_| no_credentials())?
            }
        };
        let token = Credential::new(context.redactor.clone());
        Ok(Self { credentials, token, project, client: client.clone(), metadata })
    }

    /// What a request must carry.
    pub(super) async fn headers(&self) -> Result<HeaderMap, Failure> {
        let headers = match self.credentials.headers(Default::default()).await {
            Ok(CacheableResource::New { data, .. }) => data,
            Ok(CacheableResource::NotModified) => HeaderMap::new(),
            Err(error) if error.is_transient() => {
                let cause = "Google Cloud gave no access token just now";
                return Err(Failure::new(ResolveErrorKind::Unreachable, cause));
            }
            Err(_) => {
                let cause = "Google Cloud gave no access token for the credentials";
                return Err(Failure::new(ResolveErrorKind::Denied, cause)
                    .hint("log in again with `gcloud auth application-default login`"));
            }
        };
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if let Some(token) = bearer.and_then(|value| value.strip_prefix("Bearer ")) {
            self.token.set(SecretString::from(token));
        }
        Ok(headers)
    }

    /// The project of secrets that are named without one.
    pub(super) async fn project(&self) -> Result<String, Failure> {
        if let Some(project) = &self.project {
            return Ok(project.clone());
        }
        let path = "/computeMetadata/v1/project/project-id";
        ask_metadata(&self.client, &self.metadata, path).await.map_err(|()| {
            let cause = "the Google Cloud project is not known";
            Failure::new(ResolveErrorKind::NotConfigured, cause).hint(
                "set `secrets.gcp.project` in the config or `GOOGLE_CLOUD_PROJECT`, or write \
                 `secret://gcp/projects/PROJECT/secrets/NAME`",
            )
        })
    }
}

/// The credentials file, if there is one.
async fn load_key(context: &Context) -> Result<Option<Value>, Failure> {
    let named = context.environment.get_set("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
    let is_named = named.is_some();
    let Some(path) = named.or_else(|| well_known(context)) else { return Ok(None) };
    let bad = |what: &str| {
        let cause = format!("the credentials file `{}` {what}", path.display());
        Failure::new(ResolveErrorKind::NotConfigured, cause)
            .hint("check `GOOGLE_APPLICATION_CREDENTIALS`")
    };
    match tokio::fs::read(&path).await {
        Ok(json) => {
            let json = zeroize::Zeroizing::new(json);
            serde_json::from_slice(&json).map(Some).map_err(|_| bad("is not JSON"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => Ok(None),
        Err(error) => Err(bad(&format!("cannot be read: {}", error.kind()))),
    }
}

/// Where `gcloud auth application-default login` leaves its file.
fn well_known(context: &Context) -> Option<PathBuf> {
    let folder = if cfg!(windows) {
        PathBuf::from(context.environment.get_set("APPDATA")?).join("gcloud")
    } else {
        context.settings.home.as_ref()?.join(".config/gcloud")
    };
    Some(folder.join("application_default_credentials.json"))
}

fn from_key(key: Value) -> Result<Credentials, Failure> {
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
        _ => {
            let cause = format!("credentials of type `{kind}` are not supported");
            return Err(Failure::new(ResolveErrorKind::NotConfigured, cause));
        }
    };
    built.map_err(|_| {
        // The library's words are left out: they may quote the file.
        let cause = format!("the `{kind}` credentials are not complete");
        Failure::new(ResolveErrorKind::NotConfigured, cause).hint(
            "download the key again, or log in again with `gcloud auth application-default login`",
        )
    })
}

/// What the metadata server says to a path; an error if there is none, or something else answers.
async fn ask_metadata(client: &Client, root: &str, path: &str) -> Result<String, ()> {
    let request = client
        .get(format!("{root}{path}"))
        .header("Metadata-Flavor", "Google")
        .timeout(METADATA_PATIENCE);
    let response = request.send().await.map_err(drop)?;
    let is_google = response.headers().get("Metadata-Flavor").is_some_and(|v| v == "Google");
    if !is_google || !response.status().is_success() {
        return Err(());
    }
    Ok(response.text().await.map_err(drop)?.trim().to_owned())
}

fn no_credentials() -> Failure {
    Failure::new(ResolveErrorKind::NotConfigured, "there are no Google Cloud credentials").hint(
        "run `gcloud auth application-default login`, or set `GOOGLE_APPLICATION_CREDENTIALS` to a \
         key file",
    )
}
