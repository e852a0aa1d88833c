//! The output of commands: text or JSON on stdout, errors and notes on stderr.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Table, presets};
use openclaw_config::{Report, Severity};
pub(crate) use openclaw_content::printable;
use openclaw_content::wrap_words;
use serde::Serialize;
use serde_json::Value;

use crate::error::CommandError;
use openclaw_terminal::ascii::{ascii, ascii_columns};
use openclaw_terminal::markdown::{Canvas, Markdown};
use openclaw_terminal::style::{ERROR, FAINT, HINT, WARNING};
use openclaw_terminal::wrap::{columns, wrap, wrap_under};

/// The width of messages that do not go to a terminal.
const DEFAULT_WIDTH: u16 = 120;

/// The output of a command. The first write error is kept; later writes are dropped.
pub(crate) struct Output {
    pub(crate) json: bool,
    // Not locked: `demo-server` writes to stdout directly.
    stdout: anstream::AutoStream<io::Stdout>,
    failed: Option<io::Error>,
    /// Whether a JSON document was written to stdout.
    has_result: bool,
    /// Whether stdout and stderr are terminals that do not show UTF-8.
    is_ascii: bool,
    is_stderr_ascii: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            stdout: anstream::stdout(),
            failed: None,
            has_result: false,
            is_ascii: false,
            is_stderr_ascii: false,
        }
    }

    /// Sets whether terminals show UTF-8. Pipes and files always get UTF-8.
    pub(crate) fn with_utf8(self, has_utf8: bool) -> Self {
        let is_ascii = !has_utf8 && io::stdout().is_terminal();
        let is_stderr_ascii = !has_utf8 && io::stderr().is_terminal();
        Self { is_ascii, is_stderr_ascii, ..self }
    }

    /// The mark of a prompt for a message.
    pub(crate) fn mark(&self) -> &'static str {
        if self.is_ascii { "> " } else { "› " }
    }

    /// Writes a line to stderr.
    fn stderr_line(&self, line: &str) {
        let line = if self.is_stderr_ascii { ascii(line) } else { line.into() };
        let _ = writeln!(anstream::stderr().lock(), "{line}");
    }

    /// Writes a line of text.
    pub(crate) fn line(&mut self, text: impl Display) {
        self.raw(format!("{text}\n").as_bytes());
    }

    /// Writes lines that are laid out in columns, and keeps their width.
    pub(crate) fn laid_out(&mut self, text: &str) {
        match self.is_ascii {
            true => self.line(ascii_columns(text)),
            false => self.line(text),
        }
    }

    /// Replaces characters that the terminal does not show, before the text is wrapped.
    fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_ascii { ascii(text) } else { text.into() }
    }

    /// Writes a line that may be long: on a terminal, it is wrapped between words.
    pub(crate) fn folded(&mut self, text: impl Display) {
        match self.columns() {
            Some(width) => self.line(wrap(&self.shown(&text.to_string()), width)),
            None => self.line(text),
        }
    }

    /// Like [`folded`](Self::folded), but after a label; further lines are indented by its width.
    pub(crate) fn labelled(&mut self, label: &str, text: &str) {
        let line = format!("{label}{text}");
        match self.columns() {
            Some(width) => {
                let line = self.shown(&line);
                self.line(wrap_under(&line, &" ".repeat(columns(label)), width));
            }
            None => self.line(line),
        }
    }

    /// The width of the terminal; `None` if stdout is not a terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        io::stdout().is_terminal().then(|| usize::from(self.width()))
    }

    /// The number of lines of the terminal; `None` if stdout is not a terminal.
    pub(crate) fn lines(&self) -> Option<usize> {
        let size =
            terminal_size::terminal_size_of(io::stdout()).filter(|_| self.columns().is_some());
        size.map(|(_, height)| height.0.into())
    }

    /// Writes a terminal control sequence, even if colours are off.
    pub(crate) fn command(&mut self, sequence: &str) {
        self.flush();
        if self.failed.is_none() {
            let mut stdout = io::stdout();
            self.failed = stdout.write_all(sequence.as_bytes()).and_then(|()| stdout.flush()).err();
        }
    }

    /// Writes a prompt that fits the terminal, without a line break, and flushes.
    pub(crate) fn prompt(&mut self, text: &str) {
        let width = self.columns().unwrap_or(usize::MAX);
        self.raw(wrap(&self.shown(text), width).as_bytes());
        self.flush();
    }

    /// Flushes stdout.
    pub(crate) fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.stdout.flush().err();
        }
    }

    /// Whether a write failed: usually because the reader has closed the pipe.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Writes a value as JSON.
    pub(crate) fn value(&mut self, value: &Value) {
        self.has_result = true;
        self.document(&format!("{value:#}"));
    }

    /// Writes a JSON document that others may follow, such as an error.
    pub(crate) fn document(&mut self, json: &str) {
        match io::stdout().is_terminal() {
            true => self.line(harmless_json(json)),
            false => self.passed(&format!("{json}\n")),
        }
    }

    /// Writes data as JSON. Raw JSON in it is kept unchanged.
    pub(crate) fn data(&mut self, data: &impl Serialize) {
        let text = match serde_json::to_string_pretty(data) {
            Ok(text) => text,
            Err(error) => {
                self.failed = self.failed.take().or(Some(error.into()));
                return;
            }
        };
        self.has_result = true;
        self.document(&text);
    }

    /// Writes untrusted text and a final line break; on a terminal, it is sanitized.
    pub(crate) fn outside(&mut self, text: &str) {
        if io::stdout().is_terminal() {
            let text = text.replace("\r\n", "\n").replace('\t', "    ");
            self.raw(printable(&text).as_bytes());
        } else {
            self.passed(text);
        }
        if !text.ends_with('\n') {
            self.raw(b"\n");
        }
    }

    /// Writes text to a pipe or file unchanged: the filter that removes our colours would remove
    /// its escape sequences, too.
    fn passed(&mut self, text: &str) {
        self.flush();
        if self.failed.is_none() {
            self.failed = io::stdout().write_all(text.as_bytes()).err();
        }
    }

    /// The terminal as Markdown is rendered for it.
    pub(crate) fn canvas(&self) -> Canvas {
        let colour = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        Canvas { width: usize::from(self.width()), colour }
    }

    /// Writes the whole text of a model. On a terminal, its Markdown is rendered.
    pub(crate) fn answer(&mut self, text: &str) {
        let text = said(text);
        let shown = match self.columns() {
            Some(_) => {
                let (mut markdown, canvas) = (Markdown::default(), self.canvas());
                let shown = markdown.push(&text.replace('\t', "    "), canvas);
                shown + &markdown.finish(canvas)
            }
            None => text,
        };
        self.raw(shown.as_bytes());
        if !shown.ends_with('\n') {
            self.raw(b"\n");
        }
    }

    /// Writes bytes as they are, except on a terminal that does not show UTF-8.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            let shown = match self.is_ascii {
                true => ascii(&String::from_utf8_lossy(bytes)).into_owned().into_bytes().into(),
                false => Cow::Borrowed(bytes),
            };
            self.failed = self.stdout.write_all(&shown).err();
        }
    }

    /// Prints an error to stderr. With `--json`, also to stdout, unless a result is already there:
    /// programs expect a single document.
    pub(crate) fn error(&mut self, error: &CommandError) {
        let CommandError::Failed(failure) = error else { return };
        if self.json && !self.has_result {
            self.value(&failure.to_json());
        }
        if let Some(report) = &failure.report {
            if !self.json {
                self.report(report);
            }
        } else {
            let message = self.wrapped("error: ", &failure.line());
            self.stderr_line(&format!("{ERROR}error{ERROR:#}: {message}"));
        }
        for line in &failure.last_lines {
            self.stderr_line(&format!("  {FAINT}| {}{FAINT:#}", printable(line)));
        }
        if let Some(hint) = &failure.hint {
            self.stderr_line(&format!("{HINT}hint{HINT:#}: {}", self.wrapped("hint: ", hint)));
        }
    }

    /// Writes a line to stderr, wrapped to the terminal.
    pub(crate) fn aside(&mut self, line: &str) {
        let is_terminal = io::stderr().is_terminal();
        let width = is_terminal.then(|| usize::from(self.labelled_width()));
        let line = if self.is_stderr_ascii { ascii(line) } else { line.into() };
        let line = match width {
            Some(width) => Cow::Owned(wrap(&line, width)),
            None => line,
        };
        self.stderr_line(&line);
    }

    /// Wraps text that follows a prefix on stderr, if that is a terminal.
    fn wrapped(&self, prefix: &str, text: &str) -> String {
        let text = if self.is_stderr_ascii { ascii(text) } else { text.into() };
        let text = printable(&text);
        let stderr = io::stderr();
        let size = terminal_size::terminal_size_of(&stderr).filter(|_| stderr.is_terminal());
        let Some((width, _)) = size else { return text.into_owned() };
        let room = usize::from(width.0).saturating_sub(prefix.len()).max(20);
        let fits = |line: &str| line.chars().count() <= room;
        let lines = text.lines().map(|line| match fits(line) {
            true => line.to_owned(),
            false => wrap_words(line, room).join(&format!("\n{}", " ".repeat(prefix.len()))),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Writes a note to stderr.
    pub(crate) fn note(&mut self, message: &str) {
        let message = self.wrapped("note: ", message);
        self.stderr_line(&format!("{HINT}note{HINT:#}: {message}"));
    }

    /// Writes a warning to stderr.
    pub(crate) fn warning(&mut self, message: &str) {
        let message = self.wrapped("warning: ", message);
        self.stderr_line(&format!("{WARNING}warning{WARNING:#}: {message}"));
    }

    /// Writes the findings in a configuration to stderr.
    pub(crate) fn report(&mut self, report: &Report) {
        let stderr = io::stderr();
        let colour = stderr.is_terminal() && colour_wanted();
        let width =
            terminal_size::terminal_size_of(&stderr).map_or(140, |(width, _)| width.0.into());
        let text = report.render(openclaw_config::Style { colour, width });
        let mut stderr = anstream::stderr().lock();
        let _ = stderr.write_all(text.as_bytes());
        let _ = writeln!(stderr, "{}", summary(report));
    }

    /// The width of the terminal on stdout. Without a terminal, nothing is truncated.
    pub(crate) fn width(&self) -> u16 {
        terminal_size::terminal_size_of(io::stdout()).map_or(u16::MAX, |(width, _)| width.0)
    }

    /// The width of the terminal on stderr, or the default.
    pub(crate) fn labelled_width(&self) -> u16 {
        terminal_size::terminal_size_of(io::stderr()).map_or(DEFAULT_WIDTH, |(width, _)| width.0)
    }

    /// Writes a table that fits the terminal.
    pub(crate) fn table(&mut self, rows: impl IntoIterator<Item = Vec<Cell>>) {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(self.width().max(20))
            // `stdout` removes the colours again if they are off.
            .enforce_styling()
            .add_rows(rows);
        table.style_text_only();
        // Keys should be searchable: they are not wrapped unless they are very long.
        let is_short = table.column_max_content_widths().first() <= Some(&(self.width() / 2));
        if let Some(keys) = table.column_mut(0).filter(|_| is_short) {
            keys.set_constraint(ColumnConstraint::ContentWidth);
        }
        for line in table.lines() {
            self.laid_out(line.trim_end());
        }
    }

    /// Flushes stdout, and returns the first write error.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.stdout.flush(),
        }
    }
}

/// Escapes DEL, C1 controls and bidirectional formatting characters in JSON, which contains them
/// only in strings. Serializers escape the other controls.
fn harmless_json(json: &str) -> Cow<'_, str> {
    let commands = |c: char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !json.contains(commands) {
        return json.into();
    }
    let mut text = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match commands(c) {
            true => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => text.push(c),
        }
    }
    text.into()
}

/// Sanitizes text of a model, or a piece of it, like [`printable`], but keeps tabs.
pub(crate) fn said(text: &str) -> String {
    // A `\r\n` may be split between two pieces, so every `\r` is removed.
    let text = text.replace('\r', "");
    text.split('\t').map(printable).collect::<Vec<_>>().join("\t")
}

/// Joins the text to one line, and truncates it at the end.
pub(crate) fn cut(text: &str, room: usize) -> String {
    let text = text.replace('\n', " ");
    if text.chars().count() <= room {
        return text;
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Truncates a line at the start.
pub(crate) fn cut_front(text: &str, room: usize) -> String {
    let chars = text.chars().count();
    if chars <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(chars + 1 - room.max(1)).collect();
    format!("…{kept}")
}

/// A column of a table with one line per row.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    /// The widths it is shrunk to in the first and in the second pass.
    pub(crate) widths: [usize; 2],
    pub(crate) cut: fn(&str, usize) -> String,
}

/// Truncates the cells of a table so that each row fits the width; the last column shrinks first.
pub(crate) fn fit(rows: &[Vec<String>], columns: &[Column], width: u16) -> Vec<Vec<String>> {
    let lengths =
        |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(|it| it.chars().count());
    let mut widths: Vec<usize> =
        (0..columns.len()).map(|at| lengths(at).max().unwrap_or(0)).collect();
    // A blank on both sides of each column.
    let room = usize::from(width).saturating_sub(2 * columns.len());
    let excess = |widths: &[usize]| widths.iter().sum::<usize>().saturating_sub(room);
    for step in 0..2 {
        for (at, column) in columns.iter().enumerate().rev() {
            let spare = widths[at].saturating_sub(column.widths[step]);
            widths[at] -= excess(&widths).min(spare);
        }
    }
    while excess(&widths) > 0
        && let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > 1)
    {
        *widest -= 1;
    }
    let cells = |row: &Vec<String>| -> Vec<String> {
        let sized = row.iter().zip(columns).zip(&widths);
        sized.map(|((text, column), room)| (column.cut)(text, *room)).collect()
    };
    rows.iter().map(cells).collect()
}

/// "1 tool", "2 tools"
pub(crate) fn plural(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// "2 errors, 1 warning"
pub(crate) fn summary(report: &Report) -> String {
    let count = |severity, singular: &str| match report.count(severity) {
        0 => None,
        1 => Some(format!("1 {singular}")),
        many => Some(format!("{many} {singular}s")),
    };
    let counts = [
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
        count(Severity::Note, "note"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    if counts.is_empty() { "no problems".to_owned() } else { counts.join(", ") }
}

/// Removes the colours of a line that is written past [`Output`], if they are off.
pub(crate) fn coloured(line: &str) -> Cow<'_, str> {
    match colour_wanted() {
        true => line.into(),
        false => anstream::adapter::strip_str(line).to_string().into(),
    }
}

/// Whether stderr may be coloured, according to `NO_COLOR`, `CLICOLOR_FORCE` and `TERM`.
pub(crate) fn colour_wanted() -> bool {
    anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_to_the_width_and_the_last_column_first() {
        let row = || vec!["name".to_owned(), "x".repeat(30), "y".repeat(100)];
        let columns = [[4, 4], [30, 10], [8, 8]].map(|widths| Column { widths, cut });
        for width in [20, 40, 60, 80, 120, 200] {
            let rows = fit(&[row()], &columns, width);
            let total: usize = rows[0].iter().map(|it| it.chars().count() + 2).sum();
            assert!(total <= usize::from(width), "{width}: {rows:?}");
            assert_eq!(rows[0][0], "name", "{width}: {rows:?}");
            assert_eq!(rows[0][1].chars().count() == 30, width >= 60, "{width}: {rows:?}");
        }
    }

    #[test]
    fn control_characters_in_model_text_are_escaped() {
        assert_eq!(said("a\r\n\tb\u{202e}c\u{1b}[2J"), "a\n\tb\\u{202e}c\\u{1b}[2J");
    }

    #[test]
    fn json_for_a_terminal_has_no_control_characters_and_the_same_values() {
        let value =
            serde_json::json!({ "a\u{9b}": "\u{7f}\u{85}é\u{202e}\u{2066}\u{200f}\u{1b}[2J" });
        for json in [value.to_string(), format!("{value:#}")] {
            let shown = harmless_json(&json);
            assert!(shown.contains(r"\u009b") && shown.contains(r"\u007f\u0085é\u202e"), "{shown}");
            assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown}");
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn long_text_is_truncated_at_the_end_or_at_the_start() {
        assert_eq!((cut("abcdef", 4), cut("abcd", 4)), ("abc…".to_owned(), "abcd".to_owned()));
        assert_eq!(cut_front("/a/b/openclaw.json:7", 8), "….json:7");
        for room in 0..8 {
            for cut in [cut, cut_front] {
                assert!(cut("0123456789", room).chars().count() <= room.max(1), "{room}");
            }
        }
    }
}
