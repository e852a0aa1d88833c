//! How much memory JSON takes once it is a tree of values: `[0,0,…]` takes a hundred times its text.

use memchr::memchr2;

/// The memory of a value in a tree at most, besides the text of a string. Values of 72 bytes, in vectors
/// and tables that are partly empty: `{"a":0}`, which has three of the marks below, takes 500 bytes.
const VALUE: usize = 192;

/// Returns about how many bytes a JSON text takes at most when it is parsed into a tree, besides its
/// strings: those of its values. Reads the text once; the text need not be valid.
#[must_use]
pub fn tree_bytes(json: &[u8]) -> usize {
    let marks = count(json, |byte| matches!(byte, b',' | b':' | b'[' | b'{'));
    (marks + 1).saturating_mul(VALUE)
}

/// Returns how many members the objects in a JSON text have. Reads the text once; the text need not be
/// valid.
#[must_use]
pub fn member_count(json: &[u8]) -> usize {
    count(json, |byte| byte == b':')
}

/// Counts marks outside of strings.
fn count(json: &[u8], is_counted: impl Fn(u8) -> bool) -> usize {
    let (mut found, mut at) = (0, 0);
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at = end_of_string(json, at),
            byte => found += usize::from(is_counted(*byte)),
        }
    }
    found
}

/// Returns where a string ends that begins here.
fn end_of_string(json: &[u8], mut at: usize) -> usize {
    loop {
        let rest = json.get(at..).unwrap_or_default();
        let Some(found) = memchr2(b'"', b'\\', rest) else { return json.len() };
        match rest[found] {
            b'"' => return at + found + 1,
            // What follows is part of the string.
            _ => at += found + 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(json: &str) -> usize {
        tree_bytes(json.as_bytes()) / VALUE
    }

    #[test]
    fn every_value_counts_and_strings_count_once() {
        assert_eq!(values("0"), 1);
        assert_eq!(values("[0,0,0]"), 4);
        assert_eq!(values("[[],{},[0]]"), 7);
        assert_eq!(values(r#"{"a":1,"b":[]}"#), 6);
        assert_eq!(values(r#"["[,{:\"[,,\\","\\"]"#), 3);
        assert_eq!(values(r#"{"file":"AAAA,,,,[[[["}"#), 3);
        assert_eq!(member_count(br#"{"a:":[{"b":":"}],"c":0}"#), 3);
        for unfinished in ["", "\"", "\"\\", "[\"a\\"] {
            assert!(values(unfinished) <= 2, "{unfinished}");
        }
    }
}
