//! What a server says in `WWW-Authenticate` (RFC 9110, section 11.6.1; RFC 6750; RFC 9728).

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;
use url::Url;

use crate::dpop;

/// Maximum number of scopes that are taken from a challenge.
const MAX_SCOPES: usize = 100;
/// Maximum length of a scope or an error code.
const MAX_WORD: usize = 256;

/// How a token must be presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: DPoP`, with a proof (RFC 9449).
    Dpop,
}

/// What a server asks for when it rejects a request with 401 or 403.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthChallenge {
    /// How a token must be presented.
    pub scheme: Scheme,
    /// Whether there is a Bearer challenge, perhaps besides another one.
    pub takes_bearer: bool,
    /// Where the protected resource metadata is.
    pub resource_metadata: Option<Url>,
    /// The scopes that the request needs.
    pub scope: Option<Vec<String>>,
    /// The error code, such as `invalid_token` or `insufficient_scope`.
    pub error: Option<String>,
    /// The nonce for the next proof, from the `DPoP-Nonce` header.
    pub dpop_nonce: Option<String>,
}

impl AuthChallenge {
    /// Reads all `WWW-Authenticate` headers of a response. Returns the first DPoP challenge, or else
    /// the first Bearer challenge; what it lacks is taken from the other challenges.
    pub fn parse(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let found: Vec<Raw> = values.flat_map(|value| parse(value.as_bytes())).collect();
        let usable = || found.iter().filter_map(|raw| Some((scheme(&raw.scheme)?, raw)));
        let dpop = usable().find(|(scheme, _)| *scheme == Scheme::Dpop);
        let (scheme, chosen) = dpop.or_else(|| usable().next())?;
        let others = usable().map(|(_, raw)| raw);
        let all = || std::iter::once(chosen).chain(others.clone());
        let param = |name: &str| all().find_map(|raw| raw.param(name));
        Some(Self {
            scheme,
            takes_bearer: usable().any(|(scheme, _)| scheme == Scheme::Bearer),
            resource_metadata: param("resource_metadata").and_then(|url| Url::parse(url).ok()),
            scope: param("scope").map(scopes).filter(|scopes| !scopes.is_empty()),
            error: param("error").filter(|error| is_word(error)).map(str::to_owned),
            dpop_nonce: dpop::nonce(headers),
        })
    }

    /// Whether the token lacks permissions (RFC 6750, section 3.1): ask for more scopes.
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// Whether the proof was rejected, perhaps because of its time (RFC 9449, section 7.1).
    pub fn is_invalid_dpop_proof(&self) -> bool {
        self.error.as_deref() == Some("invalid_dpop_proof")
    }

    /// Whether the token was rejected, and not only its proof.
    pub(crate) fn is_about_token(&self) -> bool {
        !matches!(self.error.as_deref(), Some("invalid_dpop_proof" | "use_dpop_nonce"))
    }

    /// Whether the request must be repeated with the server's nonce (RFC 9449, section 9).
    pub fn is_use_dpop_nonce(&self) -> bool {
        self.error.as_deref() == Some("use_dpop_nonce") && self.dpop_nonce.is_some()
    }
}

/// Returns the scopes of a space-separated list, without invalid and repeated ones.
pub(crate) fn scopes(text: &str) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in text.split_ascii_whitespace().filter(|scope| is_word(scope)) {
        if scopes.len() < MAX_SCOPES && !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

/// RFC 6749, appendix A: visible ASCII without quotes and backslashes.
fn is_word(text: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    (1..=MAX_WORD).contains(&text.len()) && text.bytes().all(is_allowed)
}

fn scheme(name: &str) -> Option<Scheme> {
    match name.to_ascii_lowercase().as_str() {
        "bearer" => Some(Scheme::Bearer),
        "dpop" => Some(Scheme::Dpop),
        _ => None,
    }
}

/// A challenge of any scheme.
struct Raw {
    scheme: String,
    params: Vec<(String, String)>,
}

impl Raw {
    fn param(&self, name: &str) -> Option<&str> {
        let found = self.params.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads the challenges of one header. What does not fit the grammar is skipped; values without
/// quotes may contain any characters up to a comma or space, since servers send URLs that way.
fn parse(value: &[u8]) -> Vec<Raw> {
    let mut found: Vec<Raw> = Vec::new();
    let mut rest = Reader(value);
    loop {
        rest.skip(|byte| matches!(byte, b' ' | b'\t' | b','));
        if rest.0.is_empty() {
            return found;
        }
        let word = rest.take(is_token);
        if word.is_empty() {
            rest.skip_garbage();
            continue;
        }
        let mut after = Reader(rest.0);
        after.skip(is_space);
        if after.eat(b'=') {
            after.skip(is_space);
            let value = after.value();
            rest = after;
            if let (Some(value), Some(challenge)) = (value, found.last_mut()) {
                challenge.params.push((text(word), value));
            }
        } else {
            found.push(Raw { scheme: text(word), params: Vec::new() });
            rest.skip(is_space);
            rest.skip_token68();
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !fits(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    fn skip(&mut self, fits: impl Fn(u8) -> bool) {
        self.take(fits);
    }

    fn eat(&mut self, wanted: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == wanted => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// A parameter's value: a quoted string, or what stands before the next comma or space.
    fn value(&mut self) -> Option<String> {
        if !self.eat(b'"') {
            let value = self.take(|byte| !matches!(byte, b' ' | b'\t' | b',' | b'"'));
            return (!value.is_empty()).then(|| text(value));
        }
        let mut value = Vec::new();
        while let Some((first, rest)) = self.0.split_first() {
            self.0 = rest;
            match first {
                b'"' => return Some(text(&value)),
                b'\\' => {
                    let (escaped, rest) = self.0.split_first()?;
                    self.0 = rest;
                    value.push(*escaped);
                }
                byte => value.push(*byte),
            }
        }
        // A string without its closing quote is cut off: do not use half of it.
        None
    }

    /// Skips the credentials-like part of schemes such as `Negotiate`.
    fn skip_token68(&mut self) {
        let mut after = Reader(self.0);
        let is_68 = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
        if after.take(is_68).is_empty() {
            return;
        }
        after.skip(|byte| byte == b'=');
        after.skip(is_space);
        if matches!(after.0.first(), None | Some(b',')) {
            *self = after;
        }
    }

    /// Skips one byte that starts nothing, or a quoted string as a whole.
    fn skip_garbage(&mut self) {
        if self.0.first() == Some(&b'"') {
            self.value();
        } else {
            self.0 = self.0.get(1..).unwrap_or_default();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
#[path = "challenge_tests.rs"]
mod tests;
