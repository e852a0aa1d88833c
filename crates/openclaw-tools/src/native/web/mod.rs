//! `web_fetch`: fetches a page from the public internet (T8, U4).
//!
//! Addresses are checked after name resolution, on those that the connection is made to: a name
//! whose addresses change between check and use (DNS rebinding) gains nothing. Every redirect is
//! checked in the same way.

mod body;
mod hosts;
mod html;
mod rules;

pub(super) use hosts::host;
pub use openclaw_net::client::{BadProxy, ProxyAddress};
pub use openclaw_net::resolver::{GuardedResolver, NotPublic};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use openclaw_net::client::{ClientOptions, TrustedRoots, guarded};
use reqwest::dns::Resolve;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Certificate, Client, Response};
use serde::Deserialize;
use tokio::sync::OnceCell;
use url::Url;

use super::reply::OutcomeBuilder;
use crate::address::AllowPrivate;
use crate::approval::ApprovalRule;
use crate::outcome::ToolFailure;
use rules::{FetchError, check};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;
/// Accepted media types.
const WANTED: &str =
    "text/html, application/xhtml+xml, application/json, text/*, image/*, */*;q=0.5";

/// Settings of `web_fetch`.
#[derive(Clone)]
pub struct WebSettings {
    /// Which fetches need an approval; with `Auto`, the first from each host in a session.
    pub approval: ApprovalRule,
    /// Hosts that need none: names in lower case, or `*.` and a name for all below it.
    pub allow_hosts: Vec<String>,
    /// Hosts and networks that may be reached although they are not public.
    pub allow_private: AllowPrivate,
    /// Maximum number of characters of text per call.
    pub max_chars: usize,
    /// Timeout of a fetch, including redirects.
    pub timeout: Duration,
    /// Proxy for all requests. It resolves names itself: then only names and addresses in the URL
    /// can be checked, not what a name resolves to.
    pub proxy: Option<ProxyAddress>,
    /// Certificate authorities to trust instead of the system's.
    pub authorities: Option<Vec<Certificate>>,
    /// Resolver; the system's if absent. Its results are checked in any case.
    pub resolver: Option<Arc<dyn Resolve>>,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            approval: ApprovalRule::default(),
            allow_hosts: Vec::new(),
            allow_private: AllowPrivate::default(),
            max_chars: 50_000,
            timeout: Duration::from_secs(30),
            proxy: None,
            authorities: None,
            resolver: None,
        }
    }
}

impl fmt::Debug for WebSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSettings")
            .field("approval", &self.approval)
            .field("allow_hosts", &self.allow_hosts)
            .field("allow_private", &self.allow_private)
            .field("max_chars", &self.max_chars)
            .field("timeout", &self.timeout)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct FetchArguments {
    url: String,
    max_chars: Option<usize>,
}

/// Fetches pages.
#[derive(Debug)]
pub(super) struct Web {
    settings: WebSettings,
    /// Created at the first fetch: loading the system's certificates is slow.
    client: OnceCell<Client>,
}

impl Web {
    pub(super) fn new(settings: WebSettings) -> Self {
        Self { settings, client: OnceCell::new() }
    }

    /// Fetches a page. A redirect to another host is followed if `is_approved` or the settings allow
    /// that host: the approval of the call was for the first one.
    pub(super) async fn fetch(
        &self,
        asked: FetchArguments,
        is_approved: &(dyn Fn(&Url) -> bool + Sync),
    ) -> OutcomeBuilder {
        let max_chars = asked.max_chars.unwrap_or(usize::MAX).min(self.settings.max_chars);
        let fetching = Box::pin(self.fetch_page(&asked.url, max_chars, is_approved));
        match tokio::time::timeout(self.settings.timeout, fetching).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(why)) => OutcomeBuilder::failed(why.failure(), format!("Fetch failed: {why}.")),
            Err(_) => {
                let seconds = self.settings.timeout.as_secs();
                let words = format!("Fetch failed: timed out after {seconds} s.");
                OutcomeBuilder::failed(ToolFailure::TimedOut, words)
            }
        }
    }

    async fn fetch_page(
        &self,
        url: &str,
        max_chars: usize,
        is_approved: &(dyn Fn(&Url) -> bool + Sync),
    ) -> Result<OutcomeBuilder, FetchError> {
        let url = Url::parse(url.trim()).map_err(|_| FetchError::NoAddress)?;
        let (url, response) = self.follow(url, is_approved).await?;
        let status = response.status();
        let is_packed = response
            .headers()
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
        if is_packed {
            // A small body could expand to a huge one.
            return Err(FetchError::Packed);
        }
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type =
            content_type.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let body = body::read(response).await?;
        let mut reply = OutcomeBuilder::default();
        if !status.is_success() {
            let words = format!("The server returned HTTP {}.", status.as_u16());
            reply = reply.marked_as_error(None).say(words);
        }
        Ok(body.show(reply, &content_type, url.as_str(), max_chars))
    }

    /// Returns the response, after following redirects.
    async fn follow(
        &self,
        mut url: Url,
        is_approved: &(dyn Fn(&Url) -> bool + Sync),
    ) -> Result<(Url, Response), FetchError> {
        let settings = &self.settings;
        let client = self.client.get_or_try_init(|| client(settings)).await?;
        for _ in 0..=MAX_REDIRECTS {
            check(&url, settings)?;
            let request = client.get(url.clone());
            let request = request.header(ACCEPT, WANTED).header(ACCEPT_ENCODING, "identity");
            let response = request.send().await.map_err(|error| FetchError::from_client(&error))?;
            let target = response.headers().get(LOCATION).filter(|_| is_redirect(&response));
            let Some(target) = target else { return Ok((url, response)) };
            let target = target.to_str().ok().and_then(|target| url.join(target).ok());
            let target = target.ok_or(FetchError::BadRedirect)?;
            if target.scheme() != url.scheme() {
                return Err(FetchError::OtherScheme);
            }
            check(&target, settings)?;
            let is_free = hosts::rule(&target, settings) == ApprovalRule::Never;
            if host(&target) != host(&url) && !is_free && !is_approved(&target) {
                return Err(FetchError::OtherHost(host(&target).unwrap_or_default()));
            }
            url = target;
        }
        Err(FetchError::TooManyRedirects)
    }
}

async fn client(settings: &WebSettings) -> Result<Client, FetchError> {
    let options = ClientOptions {
        allow_private: settings.allow_private.clone(),
        proxy: settings.proxy.clone(),
        roots: settings.authorities.clone().map_or(TrustedRoots::System, TrustedRoots::Only),
        resolver: settings.resolver.clone(),
    };
    guarded(&options).await.map_err(|_| FetchError::NoClient)
}

fn is_redirect(response: &Response) -> bool {
    matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308)
}
