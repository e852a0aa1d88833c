//! A line that is longer than its limit: it is skipped, and the request that it was is answered.

use serde_json::value::RawValue;

use super::incoming::is_id;

/// Bytes at the beginning and at the end of an overlong line that are searched for its id. SDKs write it
/// there.
const ENDS: usize = 256;

/// An overlong line.
#[derive(Debug)]
pub(crate) struct OverlongLine {
    /// Its id as JSON, if it is at its beginning.
    id: Option<String>,
    /// Its last bytes.
    tail: Vec<u8>,
}

impl OverlongLine {
    /// A line with this beginning.
    pub(crate) fn new(start: &[u8]) -> Self {
        let mut line = Self { id: id_at_start(start), tail: Vec::new() };
        line.add(start);
        line
    }

    /// Skips more of it.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(ENDS)..]);
        self.tail.drain(..self.tail.len().saturating_sub(ENDS));
    }

    /// Returns the id of its request as JSON, if it is known.
    pub(crate) fn id(self) -> Option<String> {
        self.id.or_else(|| id_at_end(&self.tail))
    }
}

/// Returns the id of a request whose beginning this is, if only plain members stand before it.
fn id_at_start(line: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(line.get(..ENDS).unwrap_or(line));
    let (before, value) = head.split_once("\"id\":")?;
    // In a string, the quotes would be escaped; in `params`, it is another id.
    if before.matches(['{', '[']).count() != 1 {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<&RawValue>();
    let id = values.next()?.ok()?.get();
    let rest = value.get(values.byte_offset()..)?.trim_start();
    // Otherwise, it may be longer.
    (is_id(id) && rest.starts_with([',', '}'])).then(|| id.to_owned())
}

/// Returns the id of a request whose end this is, if `id` is its last member.
fn id_at_end(tail: &[u8]) -> Option<String> {
    let tail = String::from_utf8_lossy(tail);
    let (_, value) = tail.trim_end().strip_suffix('}')?.rsplit_once("\"id\":")?;
    let id = serde_json::from_str::<&RawValue>(value.trim()).ok()?.get();
    is_id(id).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_overlong_line_is_found_at_its_beginning_and_at_its_end() {
        let number = Some("901".to_owned());
        let text = Some("\"a,b\"".to_owned());
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":901,"method":"tools/call","params":{"#, &number),
            (r#"{"id": 901, "method": "x"#, &number),
            (r#"{"jsonrpc":"2.0","id":"a,b","method":"x"#, &text),
            (r#"{"jsonrpc":"2.0","params":{"id":7,"x":"#, &None),
            (r#"{"jsonrpc":"2.0","id":90"#, &None),
            (r#"[{"id":901,"method":"x"#, &None),
        ] {
            assert_eq!(id_at_start(line.as_bytes()), *id, "{line}");
        }
        assert_eq!(id_at_end(br#"xx"}},"jsonrpc":"2.0","id":901}"#), number);
        // The tail may begin within a character.
        assert_eq!(id_at_end(b"\x82\xac\"},\"id\":901}"), number);
    }

    #[test]
    fn a_line_that_arrives_in_pieces_keeps_its_id() {
        let mut line = OverlongLine::new(br#"{"method":"tools/call","params":{"x":""#);
        let pieces = [&[b'x'; 1_000][..], b"\"},\"id\"", b":7}"];
        pieces.iter().for_each(|piece| line.add(piece));
        assert_eq!(line.id().as_deref(), Some("7"));
    }
}
