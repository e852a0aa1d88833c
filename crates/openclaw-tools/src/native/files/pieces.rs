//! Reads a file in pieces: lines, with long lines split.

use std::io::{self, BufRead};

/// Maximum size of a piece in bytes; longer lines are split.
pub(super) const MAX_PIECE: usize = 4_000;

/// Reads the next piece, including its line break, and appends it. Returns its size; 0 at the end.
pub(super) fn next(from: &mut impl BufRead, into: &mut Vec<u8>) -> io::Result<usize> {
    let mut taken = 0;
    loop {
        let buffer = match from.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            return Ok(taken);
        }
        let room = MAX_PIECE.saturating_sub(taken);
        let window = buffer.get(..room).unwrap_or(buffer);
        let (end, is_done) = match window.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None if room > 0 => (window.len(), false),
            // At the limit: complete the last character, by at most three bytes.
            None => match buffer.first() {
                Some(b'\n') => (1, true),
                Some(0x80..=0xbf) if taken < MAX_PIECE + 3 => (1, false),
                _ => return Ok(taken),
            },
        };
        into.extend_from_slice(buffer.get(..end).unwrap_or_default());
        from.consume(end);
        taken += end;
        if is_done {
            return Ok(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn pieces(text: &[u8]) -> Vec<Vec<u8>> {
        let mut from = BufReader::with_capacity(7, text);
        let mut all = Vec::new();
        loop {
            let mut piece = Vec::new();
            if next(&mut from, &mut piece).unwrap() == 0 {
                return all;
            }
            all.push(piece);
        }
    }

    #[test]
    fn lines_are_pieces_and_long_lines_are_several() {
        assert_eq!(pieces(b"a\n\nb"), [&b"a\n"[..], b"\n", b"b"]);
        let long = pieces("é".repeat(3_000).as_bytes());
        assert_eq!(long.iter().map(Vec::len).collect::<Vec<_>>(), [4_000, 2_000]);
        let odd = pieces(format!("x{}", "é".repeat(3_000)).as_bytes());
        assert!(odd.iter().all(|piece| std::str::from_utf8(piece).is_ok()));
        let full = format!("{}\nb", "x".repeat(MAX_PIECE));
        assert_eq!(pieces(full.as_bytes()).len(), 2);
    }

    #[test]
    fn no_bytes_are_lost_even_if_they_are_not_text() {
        let bytes = [0x80_u8; 20_000];
        assert_eq!(pieces(&bytes).concat(), bytes);
    }
}
