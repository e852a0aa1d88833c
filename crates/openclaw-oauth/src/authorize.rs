//! The login: the URL that the user opens, and the check of what comes back (RFC 6749, section 4.1;
//! RFC 7636; RFC 9207).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openclaw_secrets::SecretString;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::{Url, form_urlencoded};

use crate::client::ClientIdentity;
use crate::dpop::DpopKey;
use crate::error::AuthError;
use crate::http::quoted;
use crate::jwt;
use crate::metadata::{AuthorizationServer, Discovery, OFFLINE_ACCESS};

/// A login that has begun. It serializes with its secrets, so that another process can finish it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationRequest {
    /// The authorization server.
    pub server: AuthorizationServer,
    /// The client that asks.
    pub client: ClientIdentity,
    /// Where the browser is sent afterwards.
    pub redirect_uri: String,
    /// The RFC 8707 resource.
    pub resource: String,
    /// The requested scopes.
    pub scopes: Option<Vec<String>>,
    /// The key that the tokens will be bound to.
    pub dpop: Option<DpopKey>,
    endpoint: Url,
    #[serde(with = "crate::secret")]
    state: SecretString,
    #[serde(with = "crate::secret")]
    verifier: SecretString,
}

impl AuthorizationRequest {
    /// Begins a login, with a new state, PKCE verifier and, where used, DPoP key.
    ///
    /// # Errors
    /// If there is no randomness, the client belongs to another authorization server, or the server
    /// has no authorization endpoint.
    pub fn new(
        discovery: &Discovery,
        client: ClientIdentity,
        redirect_uri: &str,
    ) -> Result<Self, AuthError> {
        let server = discovery.server.clone();
        if client.issuer != server.issuer {
            let cause = "the client is registered at another server".to_owned();
            return Err(AuthError::NotRegistered { issuer: quoted(&server.issuer), cause });
        }
        let endpoint = server.authorization_endpoint.clone().ok_or_else(|| {
            let cause = "has no authorization endpoint".to_owned();
            AuthError::Unsupported { issuer: quoted(&server.issuer), cause }
        })?;
        Ok(Self {
            endpoint,
            server,
            client,
            redirect_uri: redirect_uri.to_owned(),
            resource: discovery.resource.clone(),
            scopes: discovery.scopes.clone(),
            dpop: discovery.dpop.then(DpopKey::generate).transpose()?,
            state: jwt::random()?.into(),
            verifier: jwt::random()?.into(),
        })
    }

    /// Returns the URL that the user opens in a browser.
    pub fn url(&self) -> Url {
        let mut url = self.endpoint.clone();
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose()));
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("state", self.state.expose())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.resource);
        if let Some(scopes) = self.scopes.as_ref().filter(|scopes| !scopes.is_empty()) {
            query.append_pair("scope", &scopes.join(" "));
            // OpenID Connect, section 11: without consent, no refresh token is issued.
            if scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
                query.append_pair("prompt", "consent");
            }
        }
        if let Some(key) = &self.dpop {
            query.append_pair("dpop_jkt", &key.thumbprint());
        }
        drop(query);
        url
    }

    /// Returns the state, for finding the request of a callback.
    pub fn state(&self) -> &SecretString {
        &self.state
    }

    /// Returns the PKCE verifier, for the token request.
    pub fn verifier(&self) -> &SecretString {
        &self.verifier
    }

    /// Checks a response to this login, and returns its code.
    ///
    /// # Errors
    /// [`AuthError::Mismatch`] if state or issuer differ, and [`AuthError::Rejected`] if the response
    /// is an error.
    pub fn check(&self, params: &CallbackParams) -> Result<SecretString, AuthError> {
        // Compared in constant time.
        if params.state.as_ref() != Some(&self.state) {
            let cause =
                if params.state.is_some() { "it belongs to another login" } else { "no state" };
            return Err(AuthError::Mismatch(cause.to_owned()));
        }
        self.check_issuer(params)?;
        self.check_path(params)?;
        params.code()
    }

    /// Like [`check`](Self::check), but accepts a bare code that the user pasted, which has neither
    /// state nor issuer, where responses have no issuer anyway.
    ///
    /// # Errors
    /// As for [`check`](Self::check), if it is not a bare code, or the issuer is missing.
    pub fn check_pasted(&self, params: &CallbackParams) -> Result<SecretString, AuthError> {
        if !params.is_bare {
            return self.check(params);
        }
        // The code of another authorization server, perhaps (RFC 9207, section 2.4).
        self.check_issuer(params)?;
        params.code()
    }

    /// RFC 9700, section 4.4.2.2: the redirect URI belongs to the authorization server.
    fn check_path(&self, params: &CallbackParams) -> Result<(), AuthError> {
        match &params.path {
            Some(path) if path != self.callback_path() => {
                Err(AuthError::Mismatch("it came to the redirect URL of another server".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the path of the redirect URI.
    pub(crate) fn callback_path(&self) -> &str {
        path_of(&self.redirect_uri).unwrap_or_default()
    }

    /// RFC 9207, section 2.4, also for error responses: identical, without any normalization.
    fn check_issuer(&self, params: &CallbackParams) -> Result<(), AuthError> {
        match &params.issuer {
            Some(issuer) if *issuer == self.server.issuer => Ok(()),
            Some(issuer) => {
                let (found, expected) = (quoted(issuer), quoted(&self.server.issuer));
                Err(AuthError::Mismatch(format!("the issuer is {found}, not {expected}")))
            }
            None if self.server.authorization_response_iss_parameter_supported => {
                Err(AuthError::Mismatch("the issuer is missing".to_owned()))
            }
            None => Ok(()),
        }
    }
}

/// What a browser, or a user, brings back from a login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallbackParams {
    code: Option<SecretString>,
    state: Option<SecretString>,
    issuer: Option<String>,
    error: Option<String>,
    description: Option<String>,
    /// The path of a whole URL.
    path: Option<String>,
    is_bare: bool,
}

impl CallbackParams {
    /// Reads a whole callback URL, its path and query, a query, or a bare code.
    ///
    /// # Errors
    /// [`AuthError::Mismatch`] if it has neither a code nor an error, or a parameter occurs twice
    /// (RFC 6749, section 3.1).
    pub fn parse(text: &str) -> Result<Self, AuthError> {
        let text = text.trim();
        let without_fragment = text.split('#').next().unwrap_or_default();
        let query = match without_fragment.split_once('?') {
            Some((_, query)) => query,
            None => without_fragment,
        };
        let mut params =
            Self { path: path_of(without_fragment).map(str::to_owned), ..Self::default() };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let is_repeated = match &*name {
                "code" => params.code.replace(value.into()).is_some(),
                "state" => params.state.replace(value.into()).is_some(),
                "iss" => params.issuer.replace(value).is_some(),
                "error" => params.error.replace(value).is_some(),
                "error_description" => params.description.replace(value).is_some(),
                _ => false,
            };
            if is_repeated {
                let cause = format!("`{}` occurs twice", quoted(&name));
                return Err(AuthError::Mismatch(cause));
            }
        }
        if params.code.is_some() || params.error.is_some() {
            return Ok(params);
        }
        let is_code = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '&' | '#');
        let is_bare = params.state.is_none() && !text.contains("://") && text.chars().all(is_code);
        if text.is_empty() || !is_bare {
            return Err(AuthError::Mismatch("it has no code".to_owned()));
        }
        Ok(Self { code: Some(text.into()), is_bare: true, ..params })
    }

    fn code(&self) -> Result<SecretString, AuthError> {
        if let Some(error) = &self.error {
            return Err(AuthError::Rejected {
                what: "the login",
                code: quoted(error),
                description: self.description.as_deref().map(quoted),
            });
        }
        let code = self.code.clone().filter(|code| !code.is_empty());
        code.ok_or_else(|| AuthError::Mismatch("it has no code".to_owned()))
    }
}

/// Returns the path of a whole URL.
fn path_of(url: &str) -> Option<&str> {
    let (address, _) = url.split_once('?').unwrap_or((url, ""));
    let (_, rest) = address.split_once("://")?;
    rest.find('/').map_or(Some(""), |at| rest.get(at..))
}

#[cfg(test)]
#[path = "authorize_tests.rs"]
pub(crate) mod tests;
