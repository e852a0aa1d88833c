//! Test servers on loopback with the wire format of the real ones.

#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(unreachable_pub, reason = "shared between test binaries")]

#[cfg(feature = "aws")]
pub mod aws;
#[cfg(feature = "gcp")]
pub mod gcp;
#[cfg(feature = "vault")]
pub mod tls;
#[cfg(feature = "vault")]
pub mod vault;

use std::time::Duration;

use openclaw_secrets::{
    Environment, Redactor, ResolveError, ResolveErrorKind, Resolver, SecretRef, SecretSettings,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// A server that stops when it is dropped.
pub struct Server {
    pub address: String,
    task: JoinHandle<()>,
}

impl Server {
    pub async fn start(router: axum::Router) -> Self {
        Self::listen(router, |listener| listener).await
    }

    /// Starts a server on the listener that `wrap` returns.
    async fn listen<L>(router: axum::Router, wrap: impl FnOnce(TcpListener) -> L) -> Self
    where
        L: axum::serve::Listener,
        L::Addr: std::fmt::Debug,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address").to_string();
        let serve = axum::serve(wrap(listener), router).into_future();
        let task = tokio::spawn(async move { serve.await.expect("serve") });
        Self { address, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn reference(text: &str) -> SecretRef {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

pub fn environment<const N: usize>(variables: [(&str, &str); N]) -> Environment {
    variables.into_iter().collect()
}

/// Settings with a long timeout, for busy machines.
pub fn settings() -> SecretSettings {
    SecretSettings { timeout: Duration::from_secs(60), ..SecretSettings::default() }
}

/// A resolver with shortcuts for tests.
pub struct Asker {
    pub resolver: Resolver,
    pub redactor: Redactor,
}

impl Asker {
    pub fn new(settings: SecretSettings, environment: Environment) -> Self {
        let redactor = Redactor::new();
        Self { resolver: Resolver::new(settings, environment, redactor.clone()), redactor }
    }

    pub async fn value(&self, text: &str) -> String {
        let value = self.resolver.resolve(&reference(text)).await;
        value.unwrap_or_else(|error| panic!("{error}")).expose().to_owned()
    }

    pub async fn error(&self, text: &str) -> ResolveError {
        self.resolver.resolve(&reference(text)).await.expect_err(text)
    }

    /// Returns the error, which must be of this kind.
    pub async fn fails(&self, text: &str, kind: ResolveErrorKind) -> ResolveError {
        let error = self.error(text).await;
        assert_eq!(error.kind(), kind, "{error}");
        error
    }
}
