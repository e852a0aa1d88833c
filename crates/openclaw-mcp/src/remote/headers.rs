//! The headers of a server's configuration: secrets are resolved here, and nowhere earlier (K2).

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use openclaw_config::HttpServer;
use openclaw_secrets::{ResolveError, Resolver, SecretString};

const AUTHORIZATION: &str = "Authorization";

/// Resolves the headers of a server, side by side. Its key becomes `Authorization`, unless that is among
/// the headers already.
///
/// # Errors
/// The first secret that cannot be had. The server must not be spoken to then.
pub async fn headers(
    server: &HttpServer,
    resolver: &Resolver,
) -> Result<BTreeMap<String, SecretString>, ResolveError> {
    let own = server.headers.iter().map(|(name, template)| async move {
        // As a credential: what stands in a header must not show up in a log, wherever it came from.
        Ok((name.clone(), resolver.resolve_credential(template).await?))
    });
    let mut headers: BTreeMap<String, SecretString> =
        try_join_all(own).await?.into_iter().collect();
    let is_authorized = headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION));
    if let Some(key) = server.api_key.as_ref().filter(|_| !is_authorized) {
        let key = resolver.resolve_credential(key).await?;
        let bearer = SecretString::from(format!("Bearer {}", key.expose()));
        headers.insert(AUTHORIZATION.to_owned(), bearer);
    }
    Ok(headers)
}
