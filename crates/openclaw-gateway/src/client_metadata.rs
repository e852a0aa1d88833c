//! The client metadata document of this program (CIMD), which the gateway serves if it has a public
//! URL.

use openclaw_oauth::client::metadata_document;
use serde_json::Value;
use url::Url;

/// The path of the document under the public URL.
pub(crate) const PATH: &str = "/oauth/client-metadata.json";

/// The redirect URIs of logins. Their port may differ (RFC 8252, section 7.3).
const REDIRECT_URIS: [&str; 2] = ["http://127.0.0.1/callback", "http://localhost/callback"];

/// Returns the URL of the document of a gateway with this public URL.
#[must_use]
pub fn url(public: &Url) -> Option<Url> {
    Url::parse(&format!("{}{PATH}", public.as_str().trim_end_matches('/'))).ok()
}

/// Returns the document to be served at this URL.
#[must_use]
pub fn document(url: &Url) -> Value {
    metadata_document(url, &REDIRECT_URIS.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_its_own_url_and_both_loopback_hosts() {
        for public in ["https://example.com/claw", "https://example.com/claw/"] {
            let url = url(&Url::parse(public).unwrap()).unwrap();
            assert_eq!(url.as_str(), "https://example.com/claw/oauth/client-metadata.json");
            let document = document(&url);
            assert_eq!(document["client_id"], url.as_str());
            assert_eq!(document["redirect_uris"], serde_json::json!(REDIRECT_URIS));
            assert_eq!(document["token_endpoint_auth_method"], "none");
        }
    }
}
