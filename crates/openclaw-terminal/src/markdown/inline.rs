//! The inline marks of one line: emphasis, code and links.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::Canvas;
use openclaw_content::printable;

const CODE: Style = AnsiColor::Cyan.on_default();
/// Begins a paragraph without being visible, so that nothing in the line is taken for a block. Emphasis
/// may follow it.
const LEAD: char = '\u{a0}';

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH)
}

/// Renders a text in a base style. The URL of a link is always shown.
pub(super) fn render(text: &str, base: Style, canvas: Canvas) -> String {
    let source = format!("{LEAD}{text}");
    let mut out = Inline { out: String::with_capacity(text.len()), styles: vec![base], canvas };
    let (mut links, mut is_first) = (Vec::new(), true);
    for event in parse(&source) {
        match event {
            Event::Start(Tag::Strong) => out.begin("**", Style::bold),
            Event::End(TagEnd::Strong) => out.end("**"),
            Event::Start(Tag::Emphasis) => out.begin("*", Style::italic),
            Event::End(TagEnd::Emphasis) => out.end("*"),
            Event::Start(Tag::Strikethrough) => out.begin("~~", Style::strikethrough),
            Event::End(TagEnd::Strikethrough) => out.end("~~"),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push((dest_url, out.out.len()));
                out.begin("", Style::underline);
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                out.end("");
                let Some((url, start)) = links.pop() else { continue };
                let shown = anstream::adapter::strip_str(&out.out[start..]).to_string();
                if shown != *url && format!("mailto:{shown}") != *url {
                    out.text(&format!(" ({url})"));
                }
            }
            Event::Code(code) => {
                let mark = if canvas.colour { "" } else { "`" };
                out.word_by_word(&format!("{mark}{code}{mark}"), CODE);
            }
            Event::Text(text) if is_first => {
                is_first = false;
                out.text(text.strip_prefix(LEAD).unwrap_or(&text));
            }
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => out.text(&text),
            Event::SoftBreak | Event::HardBreak => out.text(" "),
            _ => {}
        }
    }
    out.out
}

struct Inline {
    out: String,
    /// The styles of the open marks, the base style first.
    styles: Vec<Style>,
    canvas: Canvas,
}

impl Inline {
    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn begin(&mut self, mark: &str, style: fn(Style) -> Style) {
        self.styles.push(style(self.style()));
        self.mark(mark);
    }

    fn end(&mut self, mark: &str) {
        self.mark(mark);
        self.styles.pop();
    }

    fn mark(&mut self, mark: &str) {
        if !self.canvas.colour {
            self.out.push_str(mark);
        }
    }

    fn text(&mut self, text: &str) {
        self.word_by_word(text, self.style());
    }

    /// Styles each word on its own, so that a line can be broken between them. The parser decodes
    /// entities, which may be control characters.
    fn word_by_word(&mut self, text: &str, style: Style) {
        let text = printable(text).replace('\n', " ");
        for (at, word) in text.split(' ').enumerate() {
            if at > 0 {
                self.out.push(' ');
            }
            self.out.push_str(&super::styled(word, style, self.canvas));
        }
    }
}

/// Returns the end of the part of an incomplete line whose rendering cannot change any more: before
/// the last word, and before a mark that may be closed later.
pub(super) fn final_end(line: &str) -> usize {
    let Some(end) = line.rfind(' ') else { return 0 };
    let text = line[..end].trim_start();
    if is_block_mark(text.trim_end()) {
        return 0;
    }
    // The mark of a list item is not emphasis.
    let text = super::item(text).map_or(text, |(_, text)| text);
    let start = end - text.len();
    match first_open(text) {
        Some(open) => line[..start + open].rfind(' ').unwrap_or(0),
        None => end,
    }
}

/// Whether a text is the mark of a heading, a list item or a quote, whose text follows.
fn is_block_mark(text: &str) -> bool {
    let number = text.strip_suffix(['.', ')']).unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number || text.bytes().all(|c| c == b'#') || matches!(text, "-" | "*" | "+" | ">")
}

/// Returns the position of the first mark that may be closed later.
fn first_open(text: &str) -> Option<usize> {
    let source = format!("{LEAD}{text}");
    let texts = parse(&source).into_offset_iter().filter_map(|(event, range)| match event {
        Event::Text(_) => Some(range),
        _ => None,
    });
    let lead = LEAD.len_utf8();
    let mut open = texts.filter_map(|range| {
        let marks = source[range.clone()].char_indices().map(|(at, c)| (range.start + at, c));
        marks.filter(|(at, _)| *at >= lead).find(|(at, c)| is_open(&source, *at, *c))
    });
    open.next().map(|(at, _)| at - lead)
}

/// Whether an unmatched character may begin a construct that continues after the text.
fn is_open(source: &str, at: usize, mark: char) -> bool {
    let before = source[..at].chars().next_back();
    let rest = &source[at + mark.len_utf8()..];
    let is_before_word = !rest.starts_with(char::is_whitespace);
    if before == Some('\\') {
        return false;
    }
    match mark {
        '`' => true,
        '*' => is_before_word,
        '_' => is_before_word && !before.is_some_and(char::is_alphanumeric),
        '~' => rest.starts_with('~') || before == Some('~'),
        // Only `](` makes it a link.
        '[' => rest.find(']').is_none_or(|end| rest[end + 1..].starts_with('(')),
        '<' => {
            rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') && !rest.contains('>')
        }
        _ => false,
    }
}
