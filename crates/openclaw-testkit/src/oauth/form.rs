//! `application/x-www-form-urlencoded`: query strings and the bodies of token requests.

use std::collections::BTreeMap;

use url::form_urlencoded;

/// Encodes these pairs.
pub fn encode(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Decodes a form; of a name that occurs twice, the last value is kept.
pub fn decode(text: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// Decodes the query of a URL.
pub fn query(url: &str) -> BTreeMap<String, String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    decode(query.split('#').next().unwrap_or_default())
}
