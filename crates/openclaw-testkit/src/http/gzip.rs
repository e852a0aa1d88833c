//! A gzip bomb, generated on the fly without a compressor.

use hyper::Response;
use hyper::body::Bytes;

use super::bodies::{Body, Pieces, set_header};
use http_body_util::BodyExt;

/// Eight matches of 258 bytes: length code 285 (`11000101`) and distance code 0 (`00000`) of the fixed
/// Huffman table are 13 bits, so that eight matches fill 13 bytes.
const MATCHES: usize = 8;
const MATCH: usize = 258;

/// A response that decompresses to 159 times its size: blanks, which JSON allows, without an end.
pub(super) fn bomb(megabytes: u64) -> Response<Body> {
    let unpacked_per_piece = (MATCH * MATCHES * 1024) as u64;
    let mut left = (megabytes << 20).div_ceil(unpacked_per_piece);
    let piece = Bytes::from(matches().repeat(1024));
    let mut head = Some(Bytes::from(head()));
    let body = Pieces(move || {
        head.take().or_else(|| {
            left = left.checked_sub(1)?;
            Some(piece.clone())
        })
    });
    let mut response = Response::new(body.boxed_unsync());
    set_header(&mut response, "content-type", "application/json");
    set_header(&mut response, "content-encoding", "gzip");
    response
}

/// Bits from the lowest up, as deflate requires.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    /// Appends a Huffman code, highest bit first.
    fn code(&mut self, code: u16, length: usize) {
        for bit in (0..length).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(code >> bit & 1 == 1) << (self.used % 8);
            }
            self.used += 1;
        }
    }
}

/// The gzip header, and the start of a deflate block, with blanks up to a byte boundary.
fn head() -> Vec<u8> {
    let mut bits = Bits::default();
    bits.code(0, 1); // not the last block
    bits.code(0b10, 2); // fixed Huffman codes: 01, lowest bit first
    // 3 bits so far; a literal has 8 and a match 13, and 3 + 8 + 13 bits are whole bytes.
    bits.code(0x30 + u16::from(b' '), 8);
    again(&mut bits);
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    bytes.extend(bits.bytes);
    bytes
}

fn matches() -> Vec<u8> {
    let mut bits = Bits::default();
    for _ in 0..MATCHES {
        again(&mut bits);
    }
    bits.bytes
}

fn again(bits: &mut Bits) {
    bits.code(0b1100_0101, 8);
    bits.code(0, 5);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_join_at_whole_bytes() {
        let mut bits = Bits::default();
        bits.code(0, 11);
        again(&mut bits);
        assert_eq!(bits.used % 8, 0);
        assert_eq!(matches().len(), 13);
        assert_eq!(head().len(), 10 + 3);
    }
}
