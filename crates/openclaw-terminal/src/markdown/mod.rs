//! Markdown of a model on the terminal, rendered while it streams.
//!
//! Output is only appended: a word is written as soon as its rendering is final, a line of code and a
//! table when they are complete. Nothing is drawn again, so nothing flickers, and a screen reader
//! reads each word once.

mod code;
mod inline;
mod table;

use std::borrow::Cow;

use self::code::CodeBlock;
use crate::style::{FAINT, STRONG};
use crate::wrap::{columns, wrap_under};

/// A longer line is written as it is, in bytes: rendering it again and again would take too long.
const MAX_LINE: usize = 4 * 1024;
/// A longer table is written as text, in bytes and rows.
const MAX_TABLE: usize = 64 * 1024;
const MAX_ROWS: usize = 500;
/// The width of a horizontal rule.
const RULE: usize = 40;

/// The terminal to render for.
#[derive(Debug, Clone, Copy)]
pub struct Canvas {
    /// The columns of the terminal.
    pub width: usize,
    /// Whether text can be styled. If not, the marks of emphasis are kept.
    pub colour: bool,
}

/// Renders streamed Markdown.
#[derive(Debug, Default)]
pub struct Markdown {
    /// The source of this line.
    line: String,
    /// What is written of this line.
    shown: String,
    /// Whether the rest of this line is written as it is.
    is_long: bool,
    code: Option<CodeBlock>,
    /// The rows of a table that may continue.
    table: Vec<String>,
}

impl Markdown {
    /// Returns what to write for the next chunk, which must be sanitized.
    pub fn push(&mut self, text: &str, canvas: Canvas) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in text.split_inclusive('\n') {
            let (text, is_whole) = match piece.strip_suffix('\n') {
                Some(text) => (text, true),
                None => (piece, false),
            };
            if self.is_long {
                out.push_str(text);
            } else {
                self.line.push_str(text);
            }
            if is_whole {
                self.end_line(canvas, &mut out);
            }
        }
        self.advance(canvas, &mut out);
        out
    }

    /// Returns the rest of an incomplete line or table, after which other output follows. A code
    /// block stays open.
    pub fn finish(&mut self, canvas: Canvas) -> String {
        let mut out = String::new();
        if self.is_at_line_start() && self.table.is_empty() {
            return out;
        }
        if self.is_at_line_start() {
            self.end_table(canvas, &mut out);
        } else {
            self.end_line(canvas, &mut out);
            self.end_table(canvas, &mut out);
        }
        if out.ends_with('\n') {
            out.pop();
        }
        out
    }

    fn is_at_line_start(&self) -> bool {
        self.line.is_empty() && !self.is_long
    }

    /// Writes the words of this line whose rendering is final.
    fn advance(&mut self, canvas: Canvas, out: &mut String) {
        let start = self.line.trim_start();
        let is_fence = |mark: &str| start.starts_with(mark) || mark.starts_with(start);
        if self.is_long || self.code.is_some() || is_fence("```") || is_fence("~~~") {
            return;
        }
        if start.starts_with('|') && self.line.len() <= MAX_LINE {
            return;
        }
        self.end_table(canvas, out);
        let end = inline::final_end(&self.line);
        self.write(render(self.line[..end].trim_end(), canvas), out);
        if self.line.len() > MAX_LINE {
            let rest = self.line[end..].to_owned();
            out.push_str(&rest);
            self.is_long = true;
        }
    }

    fn end_line(&mut self, canvas: Canvas, out: &mut String) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_long) {
            self.shown.clear();
            out.push('\n');
            return;
        }
        if let Some(code) = &mut self.code {
            if code.is_closed_by(&line) {
                out.push_str(&styled(&line, FAINT, canvas));
                self.code = None;
            } else {
                out.push_str(&code.render(&line, canvas));
            }
            out.push('\n');
            return;
        }
        if line.trim_start().starts_with('|') && self.shown.is_empty() {
            let bytes: usize = self.table.iter().map(String::len).sum();
            self.table.push(line);
            if bytes > MAX_TABLE || self.table.len() > MAX_ROWS {
                self.table_as_text(canvas, out);
            }
            return;
        }
        self.end_table(canvas, out);
        self.code = CodeBlock::opened_by(&line);
        match self.code {
            Some(_) => out.push_str(&styled(&line, FAINT, canvas)),
            None => self.write(render(line.trim_end(), canvas), out),
        }
        self.shown.clear();
        out.push('\n');
    }

    fn end_table(&mut self, canvas: Canvas, out: &mut String) {
        if table::is_table(&self.table) {
            out.push_str(&table::render(&self.table, canvas));
            self.table.clear();
        } else {
            self.table_as_text(canvas, out);
        }
    }

    fn table_as_text(&mut self, canvas: Canvas, out: &mut String) {
        for row in std::mem::take(&mut self.table) {
            out.push_str(&render(row.trim_end(), canvas));
            out.push('\n');
        }
    }

    /// Writes the rest of a line, of which the beginning may be written.
    fn write(&mut self, rendered: String, out: &mut String) {
        match rendered.strip_prefix(self.shown.as_str()) {
            Some(rest) => out.push_str(rest),
            // What follows has changed the meaning of the beginning.
            None => {
                out.push('\n');
                out.push_str(&rendered);
            }
        }
        self.shown = rendered;
    }
}

/// Wraps text that is not Markdown. The words of a row stay in their column.
pub fn wrap_plain(text: &str, canvas: Canvas) -> String {
    let wrapped = text.split('\n').map(|line| {
        let margin = line.len() - line.trim_start_matches(' ').len();
        wrapped(line, &" ".repeat(second_cell(line).unwrap_or(margin)), canvas)
    });
    wrapped.collect::<Vec<_>>().join("\n")
}

/// Renders a line, or its beginning, outside of code blocks and tables.
fn render(line: &str, canvas: Canvas) -> String {
    let text = line.trim_start_matches(' ');
    let margin = &line[..line.len() - text.len()];
    let inline = |text: &str, base| inline::render(text, base, canvas);
    if let Some(title) = heading(text) {
        let marks = if canvas.colour { "" } else { &text[..text.len() - title.len()] };
        return wrapped(&format!("{marks}{}", inline(title, STRONG)), "", canvas);
    }
    if is_rule(text) {
        return styled(&"─".repeat(RULE.min(canvas.width)), FAINT, canvas).into_owned();
    }
    if let Some(quote) = text.strip_prefix('>') {
        let bar = styled("│", FAINT, canvas);
        let quote = quote.strip_prefix(' ').unwrap_or(quote);
        let before = format!("{margin}{bar} ");
        return wrapped(&format!("{before}{}", inline(quote, FAINT)), &before, canvas);
    }
    if let Some((mark, text)) = item(text) {
        let mark = if mark.starts_with(['-', '*', '+']) && canvas.colour { "•" } else { mark };
        let before = " ".repeat(margin.len() + columns(mark) + 1);
        let text = inline(text, anstyle::Style::new());
        return wrapped(&format!("{margin}{mark} {text}"), &before, canvas);
    }
    let before = " ".repeat(second_cell(line).unwrap_or(margin.len()));
    let text = inline(text, anstyle::Style::new());
    wrapped(&format!("{margin}{text}"), &before, canvas)
}

fn wrapped(line: &str, before: &str, canvas: Canvas) -> String {
    wrap_under(line, before, canvas.width)
}

/// Returns the title of a heading.
fn heading(text: &str) -> Option<&str> {
    let title = text.trim_start_matches('#');
    let level = text.len() - title.len();
    (1..=6).contains(&level).then(|| title.strip_prefix(' ')).flatten()
}

fn is_rule(text: &str) -> bool {
    let marks: String = text.split(' ').collect();
    marks.len() >= 3 && ["-", "*", "_"].iter().any(|mark| marks.replace(mark, "").is_empty())
}

/// Splits a list item into its mark and its text.
fn item(text: &str) -> Option<(&str, &str)> {
    let (mark, rest) = text.split_once(' ')?;
    let number = mark.strip_suffix(['.', ')']).unwrap_or_default();
    let is_number =
        (1..=9).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit());
    (is_number || matches!(mark, "-" | "*" | "+")).then_some((mark, rest.trim_start()))
}

/// Returns the column of the second cell of a row in plain text: it is indented by two spaces, and has
/// at least two before its second cell.
fn second_cell(line: &str) -> Option<usize> {
    let text = line.strip_prefix("  ")?;
    let gap = text.trim_start().find("  ")? + text.len() - text.trim_start().len();
    let rest = text[gap..].trim_start();
    (!rest.is_empty()).then(|| columns(&line[..line.len() - rest.len()]))
}

/// Styles a text, if that is possible.
fn styled(text: &str, style: anstyle::Style, canvas: Canvas) -> Cow<'_, str> {
    match canvas.colour && !text.is_empty() {
        true => format!("{style}{text}{style:#}").into(),
        false => text.into(),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
