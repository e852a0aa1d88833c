//! Registration, authorization, tokens and revocation.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hyper::Response;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::OAuthRequest;
use super::shared::{Shared, json, redirect};
use super::tokens::{Client, Code, Tokens};
use crate::engine::lock;
use crate::http::bodies::{Body, status, text};
use crate::oauth::script::Parameter;
use crate::oauth::{form, wire};

/// A refused request: status, error code, description.
type Refusal = (u16, &'static str, &'static str);

impl Shared {
    /// RFC 7591, section 3.2.
    pub(super) fn register(&self, request: &OAuthRequest) -> Response<Body> {
        if !lock(&self.script).registration {
            return status(404);
        }
        let mut document = request.json.clone();
        let uris = document["redirect_uris"].as_array().into_iter().flatten();
        let uris: Vec<_> = uris.filter_map(Value::as_str).map(str::to_owned).collect();
        if uris.is_empty() {
            return refused((400, "invalid_redirect_uri", "redirect_uris is missing"));
        }
        let has_secret = document["token_endpoint_auth_method"] != "none";
        let mut tokens = lock(&self.tokens);
        let id = tokens.register(uris, has_secret);
        document["client_id_issued_at"] = json!(0);
        if let Some(secret) = tokens.clients.get(&id).and_then(|client| client.secret.as_ref()) {
            document["client_secret"] = json!(secret);
            document["client_secret_expires_at"] = json!(0);
        }
        document["client_id"] = json!(id);
        json(201, &document)
    }

    /// Redirects to the client with a code: there is no user to ask.
    pub(super) fn authorize(&self, request: &OAuthRequest) -> Response<Body> {
        let get = |name: &str| request.query.get(name).map(String::as_str);
        let (client_id, uri) = (get("client_id").unwrap_or_default(), get("redirect_uri"));
        let Some(client) = self.client(client_id) else {
            return text(400, "text/plain", "unknown client");
        };
        let known = |uri: &&str| {
            let is_it = |it: &String| it == uri || *it == without_port(uri);
            client.redirect_uris.is_empty() || client.redirect_uris.iter().any(is_it)
        };
        let Some(uri) = uri.filter(known) else {
            return text(400, "text/plain", "unknown redirect_uri");
        };
        let (error, default_scope) = {
            let script = lock(&self.script);
            (script.authorize_error.clone(), script.scope.clone())
        };
        let outcome = match error {
            Some(error) => ("error", error),
            None if get("response_type") != Some("code") => {
                ("error", "unsupported_response_type".into())
            }
            None if get("code_challenge_method") != Some("S256") => {
                ("error", "invalid_request".into())
            }
            None => {
                let code = Code {
                    client_id: client_id.to_owned(),
                    redirect_uri: uri.to_owned(),
                    challenge: get("code_challenge").unwrap_or_default().to_owned(),
                    scope: match get("scope") {
                        Some(scope) if !scope.is_empty() => scope.to_owned(),
                        _ => default_scope,
                    },
                    resource: get("resource").map(str::to_owned),
                };
                ("code", lock(&self.tokens).new_code(code))
            }
        };
        let script = lock(&self.script);
        let right_state = get("state").map(str::to_owned);
        let state = parameter(&script.state, right_state);
        let iss = parameter(&script.iss, Some(self.issuer()));
        let mut pairs = vec![(outcome.0, outcome.1.as_str())];
        pairs.extend(state.as_deref().map(|state| ("state", state)));
        pairs.extend(iss.as_deref().map(|iss| ("iss", iss)));
        let separator = if uri.contains('?') { '&' } else { '?' };
        redirect(302, &format!("{uri}{separator}{}", form::encode(&pairs)))
    }

    pub(super) fn exchange_code(&self, request: &OAuthRequest) -> Response<Body> {
        self.tokens_for_code(request).unwrap_or_else(refused)
    }

    fn tokens_for_code(&self, request: &OAuthRequest) -> Result<Response<Body>, Refusal> {
        let client_id = self.authenticate(request)?;
        let get = |name: &str| request.form.get(name).map(String::as_str).unwrap_or_default();
        match get("grant_type") {
            "authorization_code" => {}
            "client_credentials" => {
                self.check_resource(request)?;
                let (scope, lifetime) = {
                    let script = lock(&self.script);
                    (script.scope.clone(), script.lifetime)
                };
                let tokens = lock(&self.tokens).issue(&client_id, &scope, lifetime, false);
                return Ok(self.token_response(request, &tokens));
            }
            _ => return Err((400, "unsupported_grant_type", "")),
        }
        let code = lock(&self.tokens).take_code(get("code"));
        let code = code.ok_or((400, "invalid_grant", "unknown code"))?;
        if code.client_id != client_id || code.redirect_uri != get("redirect_uri") {
            return Err((400, "invalid_grant", "another client or redirect_uri"));
        }
        let digest = Sha256::digest(get("code_verifier").as_bytes());
        if BASE64_URL_SAFE_NO_PAD.encode(digest) != code.challenge {
            return Err((400, "invalid_grant", "wrong code_verifier"));
        }
        self.check_resource(request)?;
        if request.form.get("resource").is_some_and(|it| Some(it) != code.resource.as_ref()) {
            return Err((400, "invalid_target", "another resource than authorized"));
        }
        let script = lock(&self.script);
        let (refreshes, lifetime) = (script.refresh_tokens, script.lifetime);
        drop(script);
        let tokens = lock(&self.tokens).issue(&client_id, &code.scope, lifetime, refreshes);
        Ok(self.token_response(request, &tokens))
    }

    pub(super) fn refresh(&self, request: &OAuthRequest) -> Response<Body> {
        self.refreshed_tokens(request).unwrap_or_else(refused)
    }

    fn refreshed_tokens(&self, request: &OAuthRequest) -> Result<Response<Body>, Refusal> {
        let client_id = self.authenticate(request)?;
        self.check_resource(request)?;
        let token = request.form.get("refresh_token").map(String::as_str).unwrap_or_default();
        let (lifetime, grace) = {
            let script = lock(&self.script);
            (script.lifetime, script.grace)
        };
        // One lock for check and use: of two concurrent refreshes, one is a reuse.
        let mut store = lock(&self.tokens);
        let refresh = store.refresh(token, grace).filter(|refresh| refresh.client_id == client_id);
        let refresh = refresh.ok_or((400, "invalid_grant", "invalid refresh token"))?;
        let scope = request.form.get("scope").unwrap_or(&refresh.scope).clone();
        if scope.split(' ').any(|one| !refresh.scope.split(' ').any(|it| it == one)) {
            return Err((400, "invalid_scope", "more than was granted"));
        }
        let tokens = store.renew(token, &scope, lifetime);
        drop(store);
        let tokens = tokens.ok_or((400, "invalid_grant", "invalid refresh token"))?;
        Ok(self.token_response(request, &tokens))
    }

    /// RFC 7009: success for unknown tokens, too.
    pub(super) fn revoke(&self, request: &OAuthRequest) -> Response<Body> {
        if let Err(refusal) = self.authenticate(request) {
            return refused(refusal);
        }
        if let Some(token) = request.form.get("token") {
            lock(&self.tokens).revoke(token);
        }
        status(200)
    }

    fn token_response(&self, request: &OAuthRequest, tokens: &Tokens) -> Response<Body> {
        let script = lock(&self.script);
        let is_bound = script.binds_tokens && request.headers.contains_key("dpop");
        let mut body = json!({
            "access_token": tokens.access_token,
            "token_type": if is_bound { "DPoP" } else { script.token_type.as_str() },
            "scope": tokens.scope,
        });
        if let Some(seconds) = script.expires_in {
            body["expires_in"] = json!(seconds);
        }
        if let Some(token) = &tokens.refresh_token {
            body["refresh_token"] = json!(token);
        }
        json(200, &body)
    }

    /// Only the protected MCP server is a valid resource (RFC 8707, section 2).
    fn check_resource(&self, request: &OAuthRequest) -> Result<(), Refusal> {
        match request.form.get("resource") {
            Some(resource) if *resource != self.resource() => {
                Err((400, "invalid_target", "unknown resource"))
            }
            _ => Ok(()),
        }
    }

    fn client(&self, id: &str) -> Option<Client> {
        let registered = lock(&self.tokens).clients.get(id).cloned();
        registered.or_else(|| self.client_by_document(id))
    }

    /// Returns the client of a metadata document, which must name its own URL.
    fn client_by_document(&self, id: &str) -> Option<Client> {
        let (is_offered, place) = {
            let script = lock(&self.script);
            (script.client_id_documents, script.documents_at.clone())
        };
        let (_, path) = id.strip_prefix("https://").filter(|_| is_offered)?.split_once('/')?;
        let redirect_uris = match place {
            Some(place) => {
                let document = wire::get(&format!("{place}/{path}")).json();
                let uris =
                    document["redirect_uris"].as_array().filter(|_| document["client_id"] == id)?;
                uris.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            None => Vec::new(),
        };
        Some(Client { secret: None, redirect_uris })
    }

    /// Returns the client of a request with the right secret, in the header or in the form; if the
    /// script wants the form, only there.
    fn authenticate(&self, request: &OAuthRequest) -> Result<String, Refusal> {
        let header = request.headers.get("authorization").and_then(|it| it.strip_prefix("Basic "));
        let header = header.filter(|_| !lock(&self.script).secrets_in_form);
        let (id, secret) = match header {
            Some(encoded) => {
                let decoded = BASE64_STANDARD.decode(encoded).unwrap_or_default();
                let decoded = String::from_utf8_lossy(&decoded).into_owned();
                let (id, secret) = decoded.split_once(':').unwrap_or_default();
                let text = |text: &str| form::decode(&format!("x={text}")).remove("x");
                (text(id), text(secret))
            }
            None => {
                let get = |name: &str| request.form.get(name).cloned();
                (get("client_id"), get("client_secret"))
            }
        };
        let id = id.unwrap_or_default();
        match self.client(&id) {
            Some(client) if client.secret == secret => Ok(id),
            Some(_) => Err((401, "invalid_client", "wrong secret")),
            None => Err((401, "invalid_client", "unknown client")),
        }
    }
}

/// Removes the port of a loopback address (RFC 8252, section 7.3).
fn without_port(uri: &str) -> String {
    const HERE: &str = "http://127.0.0.1";
    match uri.strip_prefix(HERE).and_then(|rest| rest.strip_prefix(':')) {
        Some(rest) => format!("{HERE}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit())),
        None => uri.to_owned(),
    }
}

fn refused((code, error, description): Refusal) -> Response<Body> {
    json(code, &json!({ "error": error, "error_description": description }))
}

fn parameter(wanted: &Parameter, right: Option<String>) -> Option<String> {
    match wanted {
        Parameter::Correct => right,
        Parameter::Missing => None,
        Parameter::Other(value) => Some(value.clone()),
    }
}
