//! Converts HTML to readable text in one pass, without a tree or recursion, for arbitrary input.

mod entities;
mod tags;

use entities::push_decoded;
use tags::{Layout, Tag, layout};

/// Maximum length of a link URL that is shown.
const MAX_LINK: usize = 300;

/// Returns the text of a page: headings, lists, links and preformatted text marked as in Markdown.
pub(super) fn readable(html: &str) -> String {
    let mut page = Page { text: String::with_capacity(html.len() / 2), ..Page::default() };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, after) = rest.split_at(at);
        page.words(before);
        rest = match Tag::read(after) {
            Some((tag, rest)) => page.tag(&tag, rest),
            None => {
                page.words("<");
                after.get(1..).unwrap_or_default()
            }
        };
    }
    page.words(rest);
    page.text.truncate(page.text.trim_end().len());
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
    /// URL of the link whose text is being read.
    link: Option<String>,
    preformatted: usize,
    /// Whether a space is due before the next word.
    gap: bool,
}

impl Page {
    /// Adds words, with white space collapsed.
    fn words(&mut self, words: &str) {
        if self.preformatted > 0 {
            push_decoded(&mut self.text, words);
            return;
        }
        let mut words_in = words.split_ascii_whitespace().peekable();
        if words_in.peek().is_none() {
            self.gap |= !words.is_empty();
            return;
        }
        self.gap |= words.starts_with(|c: char| c.is_ascii_whitespace());
        for word in words_in {
            if self.gap && !self.text.ends_with(['\n', ' ']) && !self.text.is_empty() {
                self.text.push(' ');
            }
            push_decoded(&mut self.text, word);
            self.gap = true;
        }
        self.gap = words.ends_with(|c: char| c.is_ascii_whitespace());
    }

    /// Processes a tag; returns the remaining text.
    fn tag<'a>(&mut self, tag: &Tag<'_>, rest: &'a str) -> &'a str {
        match (layout(&tag.name), tag.is_end) {
            (Layout::Unseen, false) if !tag.is_closed => return after_end(rest, &tag.name),
            (Layout::Unseen | Layout::Inline, _) => {}
            (Layout::Block, _) => self.lines(1),
            (Layout::Paragraph, _) => self.lines(2),
            (Layout::Heading(level), false) => {
                self.lines(2);
                self.text.extend(std::iter::repeat_n('#', level));
                self.gap = true;
            }
            (Layout::Heading(_), true) => self.lines(2),
            (Layout::Item, false) => {
                self.lines(1);
                self.text.push_str("- ");
            }
            (Layout::Cell, true) => {
                self.text.push_str(" |");
                self.gap = true;
            }
            (Layout::Item | Layout::Cell, _) => {}
            (Layout::Preformatted, is_end) => self.fence(is_end),
            (Layout::Link, is_end) => self.anchor(tag, is_end),
            (Layout::Picture, _) => {
                if let Some(words) = tag.attribute("alt") {
                    self.words(words);
                }
            }
        }
        rest
    }

    fn fence(&mut self, is_end: bool) {
        if !is_end {
            self.lines(1);
            self.text.push_str("```\n");
            self.preformatted += 1;
        } else if self.preformatted > 0 {
            self.preformatted -= 1;
            self.lines(1);
            self.text.push_str("```");
            self.lines(1);
        }
    }

    fn anchor(&mut self, tag: &Tag<'_>, is_end: bool) {
        // An open link ends here: links cannot be nested.
        if let Some(link) = self.link.take() {
            self.text.push_str(" (");
            push_decoded(&mut self.text, &link);
            self.text.push(')');
        }
        if is_end {
            return;
        }
        let leads_on = |link: &&str| {
            let is_script = link.get(..11).is_some_and(|it| it.eq_ignore_ascii_case("javascript:"));
            !link.is_empty() && !link.starts_with('#') && link.len() <= MAX_LINK && !is_script
        };
        self.link = tag.attribute("href").map(str::trim).filter(leads_on).map(str::to_owned);
    }

    /// Ends the line, and adds line breaks up to this number.
    fn lines(&mut self, breaks: usize) {
        self.gap = false;
        if self.preformatted == 0 {
            self.text.truncate(self.text.trim_end_matches(' ').len());
        }
        if self.text.is_empty() {
            return;
        }
        let there = self.text.bytes().rev().take(breaks).take_while(|byte| *byte == b'\n').count();
        self.text.extend(std::iter::repeat_n('\n', breaks - there));
    }
}

/// Returns the text after the end tag of an element whose content is not text; nothing if the end
/// tag is missing.
fn after_end<'a>(mut rest: &'a str, name: &str) -> &'a str {
    while let Some(at) = rest.find("</") {
        rest = rest.get(at + 2..).unwrap_or_default();
        let is_it = rest.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name));
        if is_it {
            return rest.find('>').and_then(|end| rest.get(end + 1..)).unwrap_or_default();
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_reads_as_text() {
        let page = "<!doctype html><html><head><title>A &amp; B</title><style>p{}</style>\
            <script>if (a</b) '</p>'</script></head><body><!-- <p>no</p> --><h2>Head\nline</h2>\
            <p>One <b>two</b>,\n three&nbsp;&#x34;.<br>Next <a href=\"/x?a=1&amp;b=2\">link</a>!</p>\
            <ul><li>first<li>second</ul><pre>a\n  b</pre><table><tr><td>1</td><td>2</td></tr></table>\
            <img alt=\"a cat\">1 < 2 <a href='javascript:x()'>no</a><svg><title>t</title></svg>";
        let expected = "A & B\n\n## Head line\n\nOne two, three\u{a0}4.\nNext link (/x?a=1&b=2)!\n\n\
            - first\n- second\n\n```\na\n  b\n```\n\n1 | 2 |\n\na cat1 < 2 no";
        assert_eq!(readable(page), expected);
    }

    #[test]
    fn what_never_ends_is_read_to_the_end() {
        for page in ["a<script>b", "a<!-- b", "a<p title='b", "a</", "a<", "a<svg", "a<a href"] {
            assert!(readable(page).starts_with('a'), "{page}");
            assert!(!readable(page).contains('b'), "{page}");
        }
    }

    #[test]
    fn a_hostile_page_is_read_in_one_pass_too() {
        for piece in
            ["<div>", "<", "</", "<!--", "<script", "<a href='", "&", "&#", "<pre>", "<svg></"]
        {
            let page = piece.repeat(100_000);
            assert!(readable(&page).len() <= page.len() * 4, "{piece}");
        }
    }

    proptest! {
        #[test]
        fn no_page_breaks_it(page in "([<>/!&;'\" =-]|p|a|script|é|pre|li|#x41|\n){0,60}") {
            readable(&page);
        }
    }
}
