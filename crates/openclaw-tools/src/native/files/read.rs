//! `read`: parts of a text file, an image, or a description of other files.

use std::io::{self, BufRead as _, BufReader, Read as _};

use cap_std::fs::File;
use openclaw_content::Source;
use serde::Deserialize;

use super::super::reply::{MAX_IMAGE, OutcomeBuilder, beginning, named, too_large_picture};
use super::super::workspace::Workspace;
use super::{pieces, refused};
use crate::media::image_type;

/// Default number of lines.
const LINES: u64 = 2_000;
/// Number of bytes checked to decide whether a file is text.
const HEAD: usize = 8 * 1024;
/// Maximum number of bytes skipped before a part.
const MAX_SKIPPED: u64 = 1024 * 1024 * 1024;

#[derive(Debug, Deserialize)]
pub(in super::super) struct ReadArguments {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

pub(in super::super) fn read(
    workspace: &Workspace,
    asked: &ReadArguments,
    max_chars: usize,
) -> OutcomeBuilder {
    let path = asked.path.as_str();
    let (file, metadata) = match workspace.open_file(path) {
        Ok(opened) => opened,
        Err(why) => return refused(path, &why),
    };
    let size = metadata.len();
    show(file, size, asked, max_chars).unwrap_or_else(|error| refused(path, &error.into()))
}

fn show(
    file: File,
    size: u64,
    asked: &ReadArguments,
    max_chars: usize,
) -> io::Result<OutcomeBuilder> {
    let name = named(&asked.path);
    let mut file = BufReader::with_capacity(HEAD, file);
    let head = file.fill_buf()?;
    if let Some(mime_type) = image_type(head) {
        if size > MAX_IMAGE as u64 {
            return Ok(OutcomeBuilder::default().say(too_large_picture()));
        }
        let mut bytes = Vec::new();
        // It may have grown in the meantime.
        file.take(MAX_IMAGE as u64 + 1).read_to_end(&mut bytes)?;
        return Ok(OutcomeBuilder::default().picture(mime_type, &bytes));
    }
    if !is_text(head) {
        return Ok(
            OutcomeBuilder::default().say(format!("{name} is a binary file of {size} bytes."))
        );
    }
    let first = asked.offset.unwrap_or(1);
    let Some(skipped) = skip(&mut file, first - 1)? else {
        let words = format!("{name} has no line {first}. It has {size} bytes.");
        return Ok(if first == 1 {
            OutcomeBuilder::default().say(format!("{name} is empty."))
        } else {
            OutcomeBuilder::error(words)
        });
    };
    let part = part(&mut file, asked.limit.unwrap_or(LINES), max_chars)?;
    let next = first + part.lines;
    let left = size.saturating_sub(skipped + part.bytes);
    let reply = OutcomeBuilder::default().show(part.text, Source::file(asked.path.as_str()));
    if part.is_line_cut {
        let words =
            format!("Line {first} is too long to be shown whole. {left} more bytes follow.");
        return Ok(reply.cut().say(words));
    }
    Ok(match left {
        0 => reply,
        _ => reply.cut().say(format!(
            "These are lines {first} to {}. {left} more bytes follow: continue with offset {next}.",
            next - 1
        )),
    })
}

fn is_text(head: &[u8]) -> bool {
    let is_whole = match std::str::from_utf8(head) {
        Ok(_) => true,
        // A character may be split where the head ends.
        Err(error) => error.error_len().is_none() && head.len() == HEAD,
    };
    is_whole && !head.contains(&0)
}

/// Skips lines; returns their size in bytes, or `None` if no line follows.
fn skip(file: &mut BufReader<File>, lines: u64) -> io::Result<Option<u64>> {
    let mut bytes = 0;
    let mut piece = Vec::new();
    for _ in 0..lines {
        piece.clear();
        let taken = pieces::next(file, &mut piece)?;
        bytes += taken as u64;
        if taken == 0 || bytes > MAX_SKIPPED {
            return Ok(None);
        }
    }
    Ok((!file.fill_buf()?.is_empty()).then_some(bytes))
}

/// Lines of a file.
#[derive(Default)]
struct Part {
    text: String,
    lines: u64,
    bytes: u64,
    is_line_cut: bool,
}

fn part(file: &mut BufReader<File>, limit: u64, max_chars: usize) -> io::Result<Part> {
    let mut part = Part::default();
    let mut chars = 0;
    let mut piece = Vec::new();
    while part.lines < limit {
        piece.clear();
        let taken = pieces::next(file, &mut piece)?;
        let text = String::from_utf8_lossy(&piece);
        let more = text.chars().count();
        let is_too_long = chars + more > max_chars;
        if taken == 0 || (is_too_long && part.lines > 0) {
            break;
        }
        part.lines += 1;
        part.bytes += taken as u64;
        chars += more;
        if is_too_long {
            part.text.push_str(beginning(&text, max_chars).0);
            part.is_line_cut = true;
            break;
        }
        part.text.push_str(&text);
    }
    Ok(part)
}
