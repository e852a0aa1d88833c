//! What servers have said that the next request to them must respect: their DPoP nonce, and that our
//! clock differs from theirs.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use http::HeaderMap;
use http::header::DATE;
use url::Url;

use crate::jwt;

/// The header with which a server hands out a nonce.
pub const NONCE_HEADER: &str = "dpop-nonce";

/// Maximum length of a nonce.
const MAX_NONCE: usize = 1024;
/// Maximum number of servers that are remembered.
const MAX_SERVERS: usize = 64;
/// A clock that differs by less, in seconds, is not the reason for a rejection.
const MIN_SKEW: i64 = 30;
/// A server whose clock differs by more, in seconds, is wrong itself: a day.
const MAX_SKEW: i64 = 24 * 60 * 60;

/// What servers have said, by origin. Clones share it.
#[derive(Clone, Default)]
pub struct ServerHints(Arc<Mutex<VecDeque<ServerHint>>>);

#[derive(Default)]
struct ServerHint {
    origin: String,
    nonce: Option<String>,
    /// How far their clock is ahead of ours, in seconds.
    skew: i64,
}

impl ServerHints {
    fn all(&self) -> MutexGuard<'_, VecDeque<ServerHint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get<T>(&self, url: &Url, of: impl FnOnce(&ServerHint) -> T) -> Option<T> {
        let origin = url.origin().ascii_serialization();
        self.all().iter().find(|peer| peer.origin == origin).map(of)
    }

    /// Changes what is known about a server, which is then the last to be forgotten.
    fn change<T>(&self, url: &Url, change: impl FnOnce(&mut ServerHint) -> T) -> T {
        let origin = url.origin().ascii_serialization();
        let mut all = self.all();
        let known = all.iter().position(|peer| peer.origin == origin).and_then(|at| all.remove(at));
        let mut peer = known.unwrap_or_else(|| ServerHint { origin, ..ServerHint::default() });
        let changed = change(&mut peer);
        if all.len() >= MAX_SERVERS {
            all.pop_front();
        }
        all.push_back(peer);
        changed
    }

    /// Returns the latest DPoP nonce of the server of a URL.
    pub fn nonce(&self, url: &Url) -> Option<String> {
        self.get(url, |peer| peer.nonce.clone()).flatten()
    }

    /// Remembers the nonce of a response, and returns whether there was a new one.
    pub fn note_nonce(&self, url: &Url, headers: &HeaderMap) -> bool {
        let Some(nonce) = nonce(headers) else { return false };
        self.change(url, |peer| {
            peer.nonce.as_ref() != Some(&nonce) && {
                peer.nonce = Some(nonce);
                true
            }
        })
    }

    /// Returns the Unix time in seconds, by the clock of the server of a URL if it is known.
    pub fn now(&self, url: &Url) -> u64 {
        let skew = self.get(url, |peer| peer.skew).unwrap_or_default();
        jwt::now().saturating_add_signed(skew)
    }

    /// Compares the clock of a server that has rejected a signature with ours. Returns whether the next
    /// signature will have another time.
    ///
    /// The time of other responses is not used: documents come from caches.
    pub fn note_time(&self, url: &Url, headers: &HeaderMap) -> bool {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
        let date = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
        let Some(date) = date.and_then(|date| i64::try_from(date.as_secs()).ok()) else {
            return false;
        };
        let skew = date.saturating_sub(jwt::now_signed());
        let is_news = |before: i64| skew.saturating_sub(before).abs() >= MIN_SKEW;
        skew.abs() <= MAX_SKEW
            && self.change(url, |peer| {
                is_news(peer.skew) && {
                    tracing::warn!(server = %peer.origin, seconds = skew, "the clocks differ");
                    peer.skew = skew;
                    true
                }
            })
    }
}

impl fmt::Debug for ServerHints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

/// Returns the nonce of a response, if it is valid (RFC 9449, section 8.1).
pub fn nonce(headers: &HeaderMap) -> Option<String> {
    let nonce = headers.get(NONCE_HEADER)?.to_str().ok()?;
    let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    let fits = !nonce.is_empty() && nonce.len() <= MAX_NONCE && nonce.bytes().all(is_allowed);
    fits.then(|| nonce.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        [(http::HeaderName::from_static(name), value.parse().unwrap())].into_iter().collect()
    }

    fn date(ahead: i64) -> HeaderMap {
        let at = i64::try_from(jwt::now()).unwrap() + ahead;
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at.try_into().unwrap());
        headers("date", &httpdate::fmt_http_date(at))
    }

    #[test]
    fn only_valid_nonces_are_used() {
        let with_nonce = |nonce| headers(NONCE_HEADER, nonce);
        assert_eq!(nonce(&with_nonce("n-1")).as_deref(), Some("n-1"));
        for bad in ["", "a b", "a\"b", "a\\b"] {
            assert_eq!(nonce(&with_nonce(bad)), None, "{bad}");
        }
    }

    #[test]
    fn the_latest_nonce_of_each_origin_is_kept() {
        let hints = ServerHints::default();
        let nonce = |value| headers("dpop-nonce", value);
        assert!(hints.note_nonce(&url("https://a.example/x"), &nonce("1")));
        assert!(!hints.note_nonce(&url("https://a.example/y"), &nonce("1")));
        assert!(hints.note_nonce(&url("https://a.example/y"), &nonce("2")));
        assert!(!hints.note_nonce(&url("https://a.example/"), &HeaderMap::new()));
        assert_eq!(hints.nonce(&url("https://a.example/z")).as_deref(), Some("2"));
        assert_eq!(hints.nonce(&url("https://a.example:8443/")), None);
    }

    #[test]
    fn servers_are_forgotten_in_the_order_of_their_last_news() {
        let hints = ServerHints::default();
        for number in 0..MAX_SERVERS {
            hints.note_nonce(
                &url(&format!("https://{number}.example")),
                &headers("dpop-nonce", "x"),
            );
        }
        hints.note_nonce(&url("https://0.example"), &headers("dpop-nonce", "y"));
        hints.note_nonce(&url("https://new.example"), &headers("dpop-nonce", "z"));
        assert!(hints.nonce(&url("https://0.example")).is_some());
        assert!(hints.nonce(&url("https://1.example")).is_none());
    }

    #[test]
    fn a_clock_that_differs_is_learned_once_and_for_one_server() {
        let (hints, one) = (ServerHints::default(), url("https://a.example/token"));
        assert!(!hints.note_time(&one, &date(5)), "not worth a retry");
        for ahead in [3600, -3600] {
            assert!(hints.note_time(&one, &date(ahead)));
            assert!(!hints.note_time(&one, &date(ahead)), "nothing new");
            let learned = i64::try_from(hints.now(&one)).unwrap() - jwt::now_signed();
            assert!((learned - ahead).abs() <= 2, "{learned}");
        }
        assert!(!hints.note_time(&one, &headers("date", "yesterday")));
        assert!(!hints.note_time(&one, &date(2 * MAX_SKEW)));
        assert!(hints.now(&url("https://b.example/")).abs_diff(jwt::now()) <= 1);
    }
}
