//! A gzip bomb.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Bytes;

use super::bodies::{Body, Pieces, set_header, status};

/// A response that decompresses to this many megabytes of blanks, which JSON allows, without an end.
pub(super) fn bomb(megabytes: u64) -> Response<Body> {
    let Ok((head, piece)) = compressed() else { return status(500) };
    let mut head = Some(head);
    let mut left = megabytes;
    let body = Pieces(move || {
        left = left.checked_sub(1)?;
        Some(head.take().unwrap_or_else(|| piece.clone()))
    });
    let mut response = Response::new(body.boxed_unsync());
    set_header(&mut response, "content-type", "application/json");
    set_header(&mut response, "content-encoding", "gzip");
    response
}

/// Compresses a megabyte of blanks, and another one that can follow it any number of times: it refers
/// only to blanks before it, and ends at a whole byte.
fn compressed() -> io::Result<(Bytes, Bytes)> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let mut next = || {
        encoder.write_all(&vec![b' '; 1 << 20])?;
        encoder.flush()?;
        io::Result::Ok(Bytes::from(std::mem::take(encoder.get_mut())))
    };
    Ok((next()?, next()?))
}
