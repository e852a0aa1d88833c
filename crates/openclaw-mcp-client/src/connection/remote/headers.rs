//! The configured headers of a server. Secrets are resolved here, and not earlier (K2).

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use openclaw_config::{HttpServer, ProxySetting};
use openclaw_secrets::{ResolveError, Resolver, SecretString};

use super::userinfo;
use crate::process::launch::setting;

/// Resolves the headers of a server concurrently. Its key becomes `Authorization`; the
/// configuration rejects an entry with both. Without either, user and password from the URL are
/// used.
///
/// # Errors
/// If a secret cannot be resolved. The server must not be contacted then.
pub async fn headers(
    server: &HttpServer,
    resolver: &Resolver,
) -> Result<BTreeMap<String, SecretString>, ResolveError> {
    let own = server.headers.iter().map(|(name, template)| async move {
        Ok((name.clone(), setting(name, template, resolver).await?))
    });
    let mut headers: BTreeMap<String, SecretString> =
        try_join_all(own).await?.into_iter().collect();
    if let Some(key) = &server.api_key {
        let key = resolver.resolve_credential(key).await?;
        let bearer = SecretString::from(format!("Bearer {}", key.expose()));
        headers.insert("Authorization".to_owned(), bearer);
    }
    let url = server.url.expose();
    userinfo::hide(url, resolver.redactor());
    resolver.redactor().add_all(&server.url.credentials());
    resolver.redactor().add_credentials(&server.url.named_credentials());
    if let ProxySetting::Url(proxy) = &server.proxy {
        userinfo::hide(proxy.expose(), resolver.redactor());
        resolver.redactor().add_all(&proxy.credentials());
    }
    if userinfo::counts(server) {
        headers.insert("Authorization".to_owned(), userinfo::basic(url));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use openclaw_config::{LoadEnvironment, Transport, load_text};
    use openclaw_secrets::{Environment, Redactor, SecretSettings};

    use super::*;

    async fn resolved(entry: &str) -> Result<Vec<(String, String)>, ResolveError> {
        let text = format!("{{ mcp: {{ servers: {{ x: {entry} }} }} }}");
        let config =
            load_text(Path::new("openclaw.json"), &text, LoadEnvironment::empty()).config.unwrap();
        let Transport::Http(server) = &config.agents[0].mcp.servers["x"].connection.transport
        else {
            unreachable!()
        };
        let host: Environment = [("TOKEN", "sesame-open")].into_iter().collect();
        let resolver = Resolver::new(SecretSettings::default(), host, Redactor::new());
        let headers = headers(server, &resolver).await?;
        Ok(headers.into_iter().map(|(name, value)| (name, value.expose().to_owned())).collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[tokio::test]
    async fn secrets_are_resolved_and_the_key_becomes_a_bearer_token() {
        let entry =
            "{ url: 'https://a.example/mcp', apiKey: 'secret://env/TOKEN', headers: { X: 'y' } }";
        let expected = pairs(&[("Authorization", "Bearer sesame-open"), ("X", "y")]);
        assert_eq!(resolved(entry).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn user_and_password_in_the_url_become_a_header_unless_there_is_one() {
        let basic = |value| pairs(&[("Authorization", value)]);
        for (entry, expected) in [
            ("{ url: 'https://u:p%40ss@a.example/mcp' }", basic("Basic dTpwQHNz")),
            ("{ url: 'https://u@a.example/mcp' }", basic("Basic dTo=")),
            ("{ url: 'https://u:p@a.example/', apiKey: 'k1' }", basic("Bearer k1")),
            (
                "{ url: 'https://u:p@a.example/', headers: { authorization: 'x' } }",
                pairs(&[("authorization", "x")]),
            ),
        ] {
            assert_eq!(resolved(entry).await.unwrap(), expected, "{entry}");
        }
    }

    #[tokio::test]
    async fn a_secret_that_cannot_be_resolved_is_named() {
        let entry = "{ url: 'https://a.example/mcp', apiKey: 'secret://env/NOPE' }";
        let error = resolved(entry).await.unwrap_err();
        assert_eq!(error.reference().to_string(), "secret://env/NOPE");
    }
}
