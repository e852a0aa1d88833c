//! A browser without a screen: it signs in, and approves or denies what an authorization server asks.

use std::thread::{self, JoinHandle};

use url::Url;

use super::form;
use super::html::{self, Field};
use super::wire::{self, HttpResponse, split};

/// The number of pages and redirects after which a login is considered to be stuck.
const STEPS: usize = 30;

/// A browser with its cookies. It is blocking: in an asynchronous test that serves the callback
/// itself, use [`approve_in_background`](Self::approve_in_background).
///
/// ```no_run
/// use openclaw_testkit::oauth::{Browser, form};
///
/// # let authorization_url = "";
/// let callback = Browser::new().approve(authorization_url);
/// let code = &form::query(&callback)["code"];
/// ```
#[derive(Debug, Clone)]
pub struct Browser {
    user: String,
    cookies: Vec<Cookie>,
}

#[derive(Debug, Clone)]
struct Cookie {
    authority: String,
    path: String,
    name: String,
    value: String,
}

/// What the user clicks on the consent page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Approve,
    Deny,
}

impl Default for Browser {
    fn default() -> Self {
        Self::new()
    }
}

impl Browser {
    /// A browser without cookies, of the user `alice`.
    pub fn new() -> Self {
        Self::of("alice")
    }

    /// A browser without cookies, of this user.
    pub fn of(user: &str) -> Self {
        Self { user: user.to_owned(), cookies: Vec::new() }
    }

    /// Visits an authorization URL, signs in if asked to, and approves. Returns the redirect to the
    /// client's `redirect_uri`, which is not fetched.
    ///
    /// # Panics
    /// If the server does not redirect to it.
    pub fn approve(&mut self, url: &str) -> String {
        self.visit(url, Decision::Approve)
    }

    /// Like [`approve`](Self::approve), but denies on the consent page.
    ///
    /// # Panics
    /// If the server does not redirect to the client.
    pub fn deny(&mut self, url: &str) -> String {
        self.visit(url, Decision::Deny)
    }

    /// Like [`approve`](Self::approve), and fetches the redirect, as a real browser does. Returns the
    /// client's response.
    ///
    /// # Panics
    /// If the server does not redirect to the client, or the client does not respond.
    pub fn approve_and_return(&mut self, url: &str) -> HttpResponse {
        let callback = self.approve(url);
        wire::get(&callback)
    }

    /// Like [`deny`](Self::deny), and fetches the redirect.
    ///
    /// # Panics
    /// If the server does not redirect to the client, or the client does not respond.
    pub fn deny_and_return(&mut self, url: &str) -> HttpResponse {
        let callback = self.deny(url);
        wire::get(&callback)
    }

    /// Runs [`approve_and_return`](Self::approve_and_return) on another thread.
    pub fn approve_in_background(mut self, url: &str) -> JoinHandle<HttpResponse> {
        let url = url.to_owned();
        thread::spawn(move || self.approve_and_return(&url))
    }

    #[expect(clippy::panic, reason = "a test cannot continue without it")]
    fn visit(&mut self, url: &str, decision: Decision) -> String {
        let redirect_uri = form::query(url).remove("redirect_uri");
        let mut url = url.to_owned();
        let mut body = None;
        for _ in 0..STEPS {
            let response = self.request(&url, body.take());
            if let Some(location) = response.header("location") {
                let target = absolute(location, &url);
                if is_callback(&target, &url, redirect_uri.as_deref()) {
                    return target;
                }
                url = target;
                continue;
            }
            let page = response.text();
            let (target, form) = self.answer(&page, decision).unwrap_or_else(|| {
                panic!("{url}: HTTP {} and no form to submit: {page}", response.status)
            });
            url = absolute(&target, &url);
            body = form;
        }
        panic!("no redirect to the client after {STEPS} steps; the last is {url}");
    }

    /// Sends a request with the cookies of its address, and keeps those of the response.
    fn request(&mut self, url: &str, form: Option<String>) -> HttpResponse {
        let (authority, target) = split(url);
        let path = target.split('?').next().unwrap_or_default();
        let cookies = self.cookies.iter().filter(|cookie| cookie.is_for(authority, path));
        let cookies: Vec<_> = cookies.map(|it| format!("{}={}", it.name, it.value)).collect();
        let cookies = cookies.join("; ");
        let mut headers = vec![("accept", "text/html")];
        if !cookies.is_empty() {
            headers.push(("cookie", &cookies));
        }
        let response = if let Some(form) = form {
            headers.push(("content-type", "application/x-www-form-urlencoded"));
            wire::send("POST", url, &headers, &form)
        } else {
            wire::send("GET", url, &headers, "")
        };
        for (name, value) in &response.headers {
            if name == "set-cookie" {
                self.keep(authority, value);
            }
        }
        response
    }

    fn keep(&mut self, authority: &str, header: &str) {
        let mut parts = header.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|part| part.split_once('=')) else {
            return;
        };
        let path = parts.find_map(|part| part.strip_prefix("path=")).unwrap_or("/");
        self.cookies.retain(|it| {
            (it.authority.as_str(), it.path.as_str(), it.name.as_str()) != (authority, path, name)
        });
        if !value.is_empty() {
            self.cookies.push(Cookie {
                authority: authority.to_owned(),
                path: path.to_owned(),
                name: name.to_owned(),
                value: value.to_owned(),
            });
        }
    }

    /// Returns what is clicked on a page: a target, and a form unless it is a link.
    fn answer(&self, page: &str, decision: Decision) -> Option<(String, Option<String>)> {
        let form = html::form(page)?;
        let is_login = form.fields.iter().any(|field| field.kind == "password");
        let denies = decision == Decision::Deny && !is_login;
        if denies && let Some(cancel) = html::link(page, "Cancel") {
            return Some((cancel, None));
        }
        let named = |field: &&Field| field.kind == "submit" && !field.name.is_empty();
        let mut buttons = form.fields.iter().filter(named);
        let button =
            if denies { buttons.find(|field| field.value == "deny") } else { buttons.next() };
        let inputs = form.fields.iter().filter(|field| field.kind != "submit");
        let pairs: Vec<_> = inputs
            .chain(button)
            .map(|field| match field.kind.as_str() {
                "password" => (field.name.as_str(), "password"),
                "text" | "email" => (field.name.as_str(), self.user.as_str()),
                _ => (field.name.as_str(), field.value.as_str()),
            })
            .collect();
        Some((form.action, Some(form::encode(&pairs))))
    }
}

impl Cookie {
    fn is_for(&self, authority: &str, path: &str) -> bool {
        let inside = path.strip_prefix(self.path.trim_end_matches('/'));
        self.authority == authority
            && inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Whether a redirect returns to the client: to its `redirect_uri`, or to any other origin if the
/// authorization URL has none.
fn is_callback(target: &str, from: &str, redirect_uri: Option<&str>) -> bool {
    match redirect_uri {
        Some(uri) => {
            let rest = target.strip_prefix(uri);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '&', '#']))
        }
        None => split(target).0 != split(from).0,
    }
}

/// Resolves a location or a form's action against the page's URL.
fn absolute(location: &str, page: &str) -> String {
    // A complete one stays as the server wrote it.
    if location.contains("://") {
        return location.to_owned();
    }
    let resolved = Url::parse(page).and_then(|page| page.join(location));
    resolved.map_or_else(|_| location.to_owned(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_sent_only_to_their_address() {
        let mut browser = Browser::new();
        browser.keep("a:1", "one=1; path=/in; HttpOnly");
        browser.keep("a:1", "two=2");
        let sent = |authority: &str, path: &str| {
            let cookies = browser.cookies.iter().filter(|cookie| cookie.is_for(authority, path));
            cookies.map(|cookie| cookie.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(sent("a:1", "/in/side"), ["one", "two"]);
        assert_eq!(sent("a:1", "/inside"), ["two"]);
        assert!(sent("b:1", "/in").is_empty());
    }

    #[test]
    fn a_cookie_is_replaced_and_deleted() {
        let mut browser = Browser::new();
        browser.keep("a:1", "one=1; path=/");
        browser.keep("a:1", "one=2; path=/");
        assert_eq!(browser.cookies.len(), 1);
        browser.keep("a:1", "one=; path=/");
        assert!(browser.cookies.is_empty());
    }

    #[test]
    fn only_a_redirect_to_the_client_is_the_callback() {
        let uri = Some("http://127.0.0.1:9/callback");
        assert!(is_callback("http://127.0.0.1:9/callback?code=1", "http://a/x", uri));
        assert!(!is_callback("http://127.0.0.1:9/callback2", "http://a/x", uri));
        assert!(is_callback("http://b/x", "http://a/x", None));
        assert!(!is_callback("http://a/y", "http://a/x", None));
    }
}
