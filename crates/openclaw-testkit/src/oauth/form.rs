//! `application/x-www-form-urlencoded`: query strings and the bodies of token requests.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The unreserved characters of RFC 3986 are not encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes these pairs.
pub fn encode(pairs: &[(&str, &str)]) -> String {
    let encode = |text| utf8_percent_encode(text, ENCODED).to_string();
    let pairs: Vec<_> =
        pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&")
}

/// Decodes a form; of a name that occurs twice, the last value is kept.
pub fn decode(text: &str) -> BTreeMap<String, String> {
    let decode =
        |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

/// Decodes the query of a URL.
pub fn query(url: &str) -> BTreeMap<String, String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    decode(query.split('#').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_unchanged() {
        let pairs = [("scope", "a b+c"), ("redirect_uri", "http://127.0.0.1:1/x?y=z&ä")];
        let decoded = decode(&encode(&pairs));
        let expected = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(decoded, BTreeMap::from(expected));
    }

    #[test]
    fn the_query_of_a_url_ends_at_its_fragment() {
        assert_eq!(query("http://x/y?code=1+2#code=3")["code"], "1 2");
        assert!(query("http://x/y").is_empty());
    }
}
