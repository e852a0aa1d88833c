//! Clients, codes and tokens.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The tokens of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// The client to which they were issued.
    pub client_id: String,
    /// The access token.
    pub access_token: String,
    /// The refresh token, if there is one.
    pub refresh_token: Option<String>,
    /// The granted scope.
    pub scope: String,
}

/// A registered client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) secret: Option<String>,
    /// Any, if empty.
    pub(super) redirect_uris: Vec<String>,
}

/// What a code stands for.
#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) client_id: String,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) scope: String,
    pub(super) resource: Option<String>,
}

#[derive(Debug)]
struct Access {
    login: u64,
    scope: String,
    end: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct Refresh {
    login: u64,
    pub(super) client_id: String,
    pub(super) scope: String,
    used: bool,
    /// The one that it replaces.
    replaces: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct TokenStore {
    pub(super) clients: HashMap<String, Client>,
    codes: HashMap<String, Code>,
    access: HashMap<String, Access>,
    refresh: HashMap<String, Refresh>,
    /// So that every id and token is different.
    number: u64,
}

impl TokenStore {
    pub(super) fn new(clients: &[(String, Option<String>)]) -> Self {
        let client = |(id, secret): &(String, Option<String>)| {
            (id.clone(), Client { secret: secret.clone(), redirect_uris: Vec::new() })
        };
        Self { clients: clients.iter().map(client).collect(), ..Self::default() }
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Registers a client; returns its id.
    pub(super) fn register(&mut self, redirect_uris: Vec<String>, has_secret: bool) -> String {
        let number = self.next();
        let secret = has_secret.then(|| format!("test-client-secret-{number}"));
        let id = format!("test-client-{number}");
        self.clients.insert(id.clone(), Client { secret, redirect_uris });
        id
    }

    pub(super) fn new_code(&mut self, code: Code) -> String {
        let id = format!("test-code-{}", self.next());
        self.codes.insert(id.clone(), code);
        id
    }

    /// Takes a code, which can be used once.
    pub(super) fn take_code(&mut self, code: &str) -> Option<Code> {
        self.codes.remove(code)
    }

    /// Begins a login.
    pub(super) fn issue(
        &mut self,
        client_id: &str,
        scope: &str,
        lifetime: Duration,
        refreshes: bool,
    ) -> Tokens {
        let login = self.next();
        self.issue_for(login, client_id, scope, lifetime, refreshes)
    }

    pub(super) fn issue_directly(&mut self, scope: &str, lifetime: Duration) -> Tokens {
        let client = self.register(Vec::new(), false);
        self.issue(&client, scope, lifetime, true)
    }

    fn issue_for(
        &mut self,
        login: u64,
        client_id: &str,
        scope: &str,
        lifetime: Duration,
        refreshes: bool,
    ) -> Tokens {
        let number = self.next();
        let access_token = format!("test-access-token-{number}");
        let end = Instant::now() + lifetime;
        self.access.insert(access_token.clone(), Access { login, scope: scope.to_owned(), end });
        let refresh_token = refreshes.then(|| {
            let token = format!("test-refresh-token-{number}");
            let (client_id, scope) = (client_id.to_owned(), scope.to_owned());
            self.refresh.insert(
                token.clone(),
                Refresh { login, client_id, scope, used: false, replaces: None },
            );
            token
        });
        let (client_id, scope) = (client_id.to_owned(), scope.to_owned());
        Tokens { client_id, access_token, refresh_token, scope }
    }

    /// Returns the scope of an access token, if it is valid.
    pub(super) fn access(&self, token: &str) -> Option<String> {
        let access = self.access.get(token)?;
        (Instant::now() < access.end).then(|| access.scope.clone())
    }

    /// Returns a refresh token, if it is valid. The reuse of one that was replaced ends its login; with
    /// `grace`, only if its successor was used.
    pub(super) fn refresh(&mut self, token: &str, grace: bool) -> Option<Refresh> {
        let refresh = self.refresh.get(token)?.clone();
        let is_successor =
            |other: &&Refresh| other.used && other.replaces.as_deref() == Some(token);
        let is_over = !grace || self.refresh.values().find(is_successor).is_some();
        if refresh.used && is_over {
            self.end_login(refresh.login);
            return None;
        }
        Some(refresh)
    }

    /// Continues the login of a refresh token, which is replaced.
    pub(super) fn renew(&mut self, token: &str, scope: &str, lifetime: Duration) -> Option<Tokens> {
        let refresh = self.refresh.get_mut(token)?;
        refresh.used = true;
        let (login, client_id) = (refresh.login, refresh.client_id.clone());
        let tokens = self.issue_for(login, &client_id, scope, lifetime, true);
        if let Some(new) = tokens.refresh_token.as_ref().and_then(|new| self.refresh.get_mut(new)) {
            new.replaces = Some(token.to_owned());
        }
        Some(tokens)
    }

    /// Revokes a token, and with a refresh token its login.
    pub(super) fn revoke(&mut self, token: &str) {
        self.access.remove(token);
        if let Some(refresh) = self.refresh.get(token) {
            self.end_login(refresh.login);
        }
    }

    fn end_login(&mut self, login: u64) {
        self.access.retain(|_, access| access.login != login);
        self.refresh.retain(|_, refresh| refresh.login != login);
    }

    pub(super) fn expire_access_tokens(&mut self) {
        self.access.clear();
    }

    pub(super) fn revoke_all(&mut self) {
        self.access.clear();
        self.refresh.clear();
    }
}
