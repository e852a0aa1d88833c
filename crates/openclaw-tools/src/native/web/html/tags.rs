//! HTML tags, as far as they affect the text.

/// A tag, a comment or a declaration.
#[derive(Debug, Default)]
pub(super) struct Tag<'a> {
    /// Name in lower case; empty for comments and declarations.
    pub(super) name: String,
    pub(super) is_end: bool,
    /// Whether it is self-closing: `<svg/>`.
    pub(super) is_closed: bool,
    attributes: &'a str,
}

/// How an element affects the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Not at all.
    Inline,
    /// Its content is not text.
    Unseen,
    /// It is on lines of its own.
    Block,
    /// It is surrounded by empty lines.
    Paragraph,
    Heading(usize),
    Item,
    Cell,
    Preformatted,
    Link,
    Picture,
}

pub(super) fn layout(name: &str) -> Layout {
    match name {
        "script" | "style" | "template" | "svg" | "iframe" | "object" | "math" => Layout::Unseen,
        "br" | "div" | "tr" | "dt" | "dd" | "figcaption" | "option" | "form" => Layout::Block,
        "section" | "article" | "header" | "footer" | "nav" | "main" | "aside" => Layout::Block,
        "p" | "ul" | "ol" | "dl" | "table" | "blockquote" | "hr" | "title" => Layout::Paragraph,
        "h1" => Layout::Heading(1),
        "h2" => Layout::Heading(2),
        "h3" => Layout::Heading(3),
        "h4" => Layout::Heading(4),
        "h5" => Layout::Heading(5),
        "h6" => Layout::Heading(6),
        "li" => Layout::Item,
        "td" | "th" => Layout::Cell,
        "pre" => Layout::Preformatted,
        "a" => Layout::Link,
        "img" => Layout::Picture,
        _ => Layout::Inline,
    }
}

impl<'a> Tag<'a> {
    /// Parses a tag that starts with `<`, and returns the rest. An unclosed tag extends to the end,
    /// as in a browser. Returns `None` if this `<` does not start a tag.
    pub(super) fn read(text: &'a str) -> Option<(Self, &'a str)> {
        let inner = text.strip_prefix('<')?;
        if let Some(comment) = inner.strip_prefix("!--") {
            let rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            return Some((Self::default(), rest));
        }
        if inner.starts_with(['!', '?']) {
            return Some((Self::default(), inner.split_once('>').map_or("", |(_, rest)| rest)));
        }
        let (is_end, inner) = match inner.strip_prefix('/') {
            Some(inner) => (true, inner),
            None => (false, inner),
        };
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let (tag, rest) = split_at_end(inner);
        let ends = |c: char| c.is_ascii_whitespace() || c == '/';
        let (name, attributes) = tag.split_at(tag.find(ends).unwrap_or(tag.len()));
        let is_closed = attributes.ends_with('/');
        Some((Self { name: name.to_ascii_lowercase(), is_end, is_closed, attributes }, rest))
    }

    /// Returns the raw value of an attribute.
    pub(super) fn attribute(&self, wanted: &str) -> Option<&'a str> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if rest.is_empty() {
                return None;
            }
            let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/');
            // An unexpected character counts as part of the name.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let end = rest.get(first..)?.find(ends).map_or(rest.len(), |at| at + first);
            let (name, after) = rest.split_at(end);
            let after = after.trim_ascii_start();
            let (value, next) = match after.strip_prefix('=') {
                Some(value) => value_of(value.trim_ascii_start()),
                None => ("", after),
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
            rest = next;
        }
    }
}

fn value_of(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    text.split_at(text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len()))
}

/// Splits at the closing `>`, ignoring those in quotes.
fn split_at_end(text: &str) -> (&str, &str) {
    let mut quote = None;
    let mut after_equals = false;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => {
                return (
                    text.get(..at).unwrap_or_default(),
                    text.get(at + 1..).unwrap_or_default(),
                );
            }
            // A quote that does not start a value is an error in the page.
            (None, b'"' | b'\'') if after_equals => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        after_equals = byte == b'=' || (after_equals && byte.is_ascii_whitespace());
    }
    (text, "")
}
