//! A DNS resolver that rejects addresses that are not public.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{AllowPrivate, is_public};

/// A host name resolves to an address that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host name resolves to an address that is not on the public internet")]
pub struct NotPublic;

/// A resolver for clients that follow untrusted URLs: results of another resolver are returned only
/// if all addresses are public or allowed.
pub struct GuardedResolver {
    inner: Arc<dyn Resolve>,
    allowed: AllowPrivate,
    /// A host that may have any address: a configured proxy.
    trusted: Option<String>,
}

impl GuardedResolver {
    /// Wraps a resolver, or the system's if none is given.
    pub fn new(inner: Option<Arc<dyn Resolve>>, allowed: AllowPrivate) -> Self {
        Self { inner: inner.unwrap_or_else(|| Arc::new(System)), allowed, trusted: None }
    }

    /// Allows any address for one host.
    pub(crate) fn trusting(mut self, host: Option<String>) -> Self {
        self.trusted = host;
        self
    }
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedResolver").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_trusted =
            self.allowed.host(name.as_str()) || self.trusted.as_deref() == Some(name.as_str());
        let allowed = self.allowed.clone();
        let looking_up = self.inner.resolve(name);
        Box::pin(async move {
            let found: Vec<SocketAddr> = looking_up.await?.collect();
            let is_fine = |address: &SocketAddr| {
                is_trusted || is_public(address.ip()) || allowed.address(address.ip())
            };
            if !found.iter().all(is_fine) {
                return Err(NotPublic.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The system's resolver.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
