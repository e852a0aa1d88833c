//! The signing library's access to this machine: variables, files and HTTP, all bounded.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use reqsign_core::{Env, Error, FileRead, HttpSend};
use reqwest::{Client, Url, redirect};

use crate::{
    Environment, ResolveErrorKind,
    providers::{ProviderContext, http as web, text},
    resolve_error::ProviderFailure,
};

/// The variables that the library may read. Others are set on its providers or not needed.
const VARIABLES: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
];

/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(3);
/// The timeout of metadata services, which are local. Outside AWS nothing responds at their
/// address, and a longer timeout would hide the real problem: that there are no credentials.
const PATIENCE: Duration = Duration::from_secs(3);
/// Credentials have a few thousand bytes.
const MAX_BODY: usize = 64 * 1024;

/// Creates a client for AWS services. No redirects: a signature is valid for one URL.
pub(super) fn client() -> Result<Client, ProviderFailure> {
    web::client(|builder| builder.redirect(redirect::Policy::none()).connect_timeout(CONNECT))
}

/// Creates the library's context for this machine.
pub(super) fn context(context: &ProviderContext) -> Result<reqsign_core::Context, ProviderFailure> {
    let next_door = web::client(|builder| {
        builder.redirect(redirect::Policy::none()).no_proxy().timeout(PATIENCE)
    })?;
    let variables =
        Variables { environment: context.environment.clone(), home: context.settings.home.clone() };
    Ok(reqsign_core::Context::new()
        .with_env(variables)
        .with_file_read(Files)
        .with_http_send(Http { services: client()?, next_door }))
}

#[derive(Debug)]
struct Variables {
    environment: Environment,
    home: Option<PathBuf>,
}

impl Env for Variables {
    fn var(&self, key: &str) -> Option<String> {
        VARIABLES.contains(&key).then(|| self.environment.get_set(key)).flatten()
    }

    fn vars(&self) -> HashMap<String, String> {
        VARIABLES.iter().filter_map(|key| Some(((*key).to_owned(), self.var(key)?))).collect()
    }

    fn home_dir(&self) -> Option<PathBuf> {
        self.home.clone()
    }
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        let content = read(Path::new(path)).await;
        content
            .map_err(|_| Error::config_invalid("cannot read the file"))?
            .ok_or_else(|| Error::config_invalid("file not found"))
    }
}

/// Reads a file of at most 1 MiB. `None` if it does not exist.
pub(super) async fn read(path: &Path) -> Result<Option<Vec<u8>>, ProviderFailure> {
    let file = match text::open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let cause = format!("cannot open the file: {error}");
            return Err(ProviderFailure::new(ResolveErrorKind::Failed, cause));
        }
    };
    let mut content = text::buffer(4096);
    text::read_to_end(file, &mut content).await?;
    Ok(Some(std::mem::take(&mut *content)))
}

struct Http {
    services: Client,
    next_door: Client,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

impl HttpSend for Http {
    async fn http_send(&self, request: Request<Bytes>) -> reqsign_core::Result<Response<Bytes>> {
        // Sources are dropped: they quote URLs, which may contain an account or a token.
        let request = reqwest::Request::try_from(request)
            .map_err(|_| Error::request_invalid("cannot create the request"))?;
        let client = if request.url().scheme() == "https" {
            &self.services
        } else if is_next_door(request.url()) {
            &self.next_door
        } else {
            return Err(Error::config_invalid("unencrypted connection for credentials"));
        };
        let unreachable = || Error::unexpected("no response").set_retryable(true);
        let response = client.execute(request).await.map_err(|_| unreachable())?;
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        let body = web::body("AWS", response, MAX_BODY).await.map_err(|_| unreachable())?;
        *answer.body_mut() = Bytes::copy_from_slice(&body);
        Ok(answer)
    }
}

/// Whether a URL is on this machine or a metadata service. Only these may be unencrypted.
fn is_next_door(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    match address {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_and_metadata_services_may_be_unencrypted() {
        let next_door = |url| is_next_door(&Url::parse(url).expect("URL"));
        for url in [
            "http://169.254.170.2/v2/credentials",
            "http://[fd00:ec2::23]/v1/credentials",
            "http://127.0.0.1:1338/",
            "http://localhost/x",
        ] {
            assert!(next_door(url), "{url}");
        }
        assert!(!next_door("http://198.51.100.7/"));
        assert!(!next_door("http://localhost.example.com/"));
    }
}
