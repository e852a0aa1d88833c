//! URLs that can be displayed.

use std::fmt;

use openclaw_secrets::SecretString;
use url::Url;

use crate::credential;

/// A URL that is displayed as written, without its user info and query values.
#[derive(Clone)]
pub struct SafeUrl {
    url: Url,
    written: String,
}

impl SafeUrl {
    /// Wraps a URL and its text as written, with variables unexpanded.
    pub(crate) fn new(url: Url, written: &str) -> Self {
        Self { url, written: written.to_owned() }
    }

    /// Whether `written` parses to the same URL.
    pub fn is(&self, written: &str) -> bool {
        Url::parse(written.trim()).is_ok_and(|url| url == self.url)
    }

    /// Returns the credentials in it, to be registered with a redactor.
    pub fn credentials(&self) -> Vec<SecretString> {
        credential::url_credentials(self.url.as_str())
    }

    /// Like [`credentials`](Self::credentials), without values of the query that may be something else.
    pub fn named_credentials(&self) -> Vec<SecretString> {
        credential::named_url_credentials(self.url.as_str())
    }

    /// Returns the URL itself. Do not display it.
    pub fn expose(&self) -> &Url {
        &self.url
    }
}

impl PartialEq for SafeUrl {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for SafeUrl {}

impl From<Url> for SafeUrl {
    fn from(url: Url) -> Self {
        let written = url.to_string();
        Self { url, written }
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&credential::safe_address(&self.written))
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
