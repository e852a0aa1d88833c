//! `logs.tail`: the end of the gateway's log.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use openclaw_protocol::ErrorShape;
use openclaw_protocol::logs::{TailParams, TailResult};

use super::Reply;

/// Default and maximum number of lines.
const LINES: usize = 500;
const MOST_LINES: usize = 5_000;
/// Default and maximum number of bytes read.
const BYTES: u64 = 256 * 1024;
const MOST_BYTES: u64 = 1024 * 1024;

pub(super) async fn tail(folder: Option<&Path>, params: TailParams) -> Reply<TailResult> {
    let Some(file) = folder.map(|folder| folder.join("gateway.log")) else {
        return Ok(TailResult::default());
    };
    let read = tokio::task::spawn_blocking(move || read(&file, &params)).await;
    read.map_err(|_| ErrorShape::unavailable("cannot read the log"))
}

/// Reads whole lines. A gateway in the foreground writes none: the result is empty then.
fn read(path: &Path, params: &TailParams) -> TailResult {
    let file = path.display().to_string();
    let nothing = || TailResult { file: file.clone(), ..TailResult::default() };
    let Ok(mut log) = openclaw_files::open(path) else { return nothing() };
    let Ok(size) = log.metadata().map(|it| it.len()) else { return nothing() };
    let most = params.max_bytes.unwrap_or(BYTES).clamp(1, MOST_BYTES);
    let is_reset = params.cursor.is_some_and(|cursor| cursor > size);
    let wanted = params.cursor.filter(|_| !is_reset).unwrap_or(0);
    let begin = wanted.max(size.saturating_sub(most));
    let mut bytes = Vec::new();
    let end = log.seek(SeekFrom::Start(begin));
    if end.and_then(|_| log.take(size - begin).read_to_end(&mut bytes)).is_err() {
        return nothing();
    }
    // A line that is being written is left for the next request, a cut one is dropped.
    let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(&bytes[..complete]);
    let is_cut = begin > wanted;
    let mut lines: Vec<&str> = text.lines().skip(usize::from(is_cut)).collect();
    let limit = params.limit.and_then(|it| usize::try_from(it).ok()).unwrap_or(LINES);
    let dropped = lines.len().saturating_sub(limit.clamp(1, MOST_LINES));
    lines.drain(..dropped);
    TailResult {
        file,
        cursor: begin + complete as u64,
        size,
        lines: lines.into_iter().map(ToOwned::to_owned).collect(),
        truncated: (is_cut || dropped > 0).then_some(true),
        reset: is_reset.then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::{TailParams, read};

    #[test]
    fn a_cursor_continues_where_the_last_complete_line_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.log");
        std::fs::write(&path, "one\ntwo\nthr").unwrap();
        let first = read(&path, &TailParams::default());
        assert_eq!((first.lines, first.cursor), (vec!["one".to_owned(), "two".to_owned()], 8));
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let more = TailParams { cursor: Some(8), ..TailParams::default() };
        assert_eq!(read(&path, &more).lines, ["three"]);
        let replaced = TailParams { cursor: Some(800), ..TailParams::default() };
        let replaced = read(&path, &replaced);
        assert_eq!((replaced.reset, replaced.lines.len()), (Some(true), 3));
        let short = TailParams { max_bytes: Some(8), ..TailParams::default() };
        let short = read(&path, &short);
        assert_eq!((short.lines, short.truncated), (vec!["three".to_owned()], Some(true)));
    }
}
