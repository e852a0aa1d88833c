//! Code blocks, with a highlighter that knows comments, strings, numbers and keywords of families of
//! languages. It works line by line, without a grammar.

use anstyle::{AnsiColor, Style};

use super::{Canvas, styled};
use crate::style::FAINT;

const KEYWORD: Style = AnsiColor::Magenta.on_default();
const STRING: Style = AnsiColor::Green.on_default();
const NUMBER: Style = AnsiColor::Cyan.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// What languages have in common.
#[derive(Debug, Clone, Copy)]
struct Family {
    names: &'static str,
    line_comment: &'static str,
    has_block_comments: bool,
    keywords: &'static str,
}

const FAMILIES: [Family; 5] = [
    Family {
        names: "rust rs c h cpp c++ cc cs csharp java js javascript jsx ts typescript tsx go golang swift \
                kotlin kt scala dart php zig css scss",
        line_comment: "//",
        has_block_comments: true,
        keywords: "as async await break case catch class const continue default defer delete do else enum \
                   export extends extern false final finally fn for fun func function go if impl implements \
                   import in instanceof interface let loop match mod module mut namespace new nil none null \
                   override package private protected pub public ref return self static struct super switch \
                   this throw throws trait true try type typeof undefined union unsafe use using val var \
                   virtual void volatile when where while yield",
    },
    Family {
        names: "python py ruby rb elixir ex julia jl nim r perl pl",
        line_comment: "#",
        has_block_comments: false,
        keywords: "and as assert async await begin break case class continue def defmodule del do elif else \
                   elsif end ensure except false False finally for from fn function global if import in is \
                   lambda local match module my nil None nonlocal not or pass puts raise require rescue \
                   return self sub then true True try unless use when while with yield",
    },
    Family {
        names: "sh bash zsh fish shell console dockerfile docker make makefile",
        line_comment: "#",
        has_block_comments: false,
        keywords: "case do done elif else esac export fi for function if in local return set source sudo then \
                   unset until while FROM RUN COPY ADD CMD ENTRYPOINT ENV WORKDIR ARG EXPOSE USER",
    },
    Family {
        names: "sql lua haskell hs elm ada",
        line_comment: "--",
        has_block_comments: false,
        keywords: "add alter and as asc begin between by case create data delete deriving desc distinct do \
                   drop else elseif end false for from function group having if in index inner insert into \
                   is join left let like limit local module nil not null of on or order outer primary repeat \
                   return right select set table then true type union until update values where while",
    },
    Family {
        names: "json jsonc json5 yaml yml toml ini conf",
        line_comment: "#",
        has_block_comments: false,
        keywords: "true false null yes no on off",
    },
];

/// An open code block.
#[derive(Debug)]
pub(super) struct CodeBlock {
    mark: char,
    marks: usize,
    family: Option<Family>,
    is_diff: bool,
    /// Whether a comment of several lines is open.
    in_comment: bool,
}

impl CodeBlock {
    /// Returns the code block that a line opens.
    pub(super) fn opened_by(line: &str) -> Option<Self> {
        let line = line.trim();
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let label = line.trim_start_matches(mark);
        let marks = line.len() - label.len();
        if marks < 3 || label.contains('`') {
            return None;
        }
        let label = label.trim().split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
        let has = |family: &&Family| family.names.split(' ').any(|name| name == label);
        let family = FAMILIES.iter().find(has).copied();
        Some(Self { mark, marks, family, is_diff: label == "diff", in_comment: false })
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.marks && line.chars().all(|c| c == self.mark)
    }

    /// Renders a line of the block. It is not wrapped, so that it can be copied.
    pub(super) fn render(&mut self, line: &str, canvas: Canvas) -> String {
        if !canvas.colour {
            return line.to_owned();
        }
        if self.is_diff {
            let style = match line.bytes().next() {
                Some(b'+') => ADDED,
                Some(b'-') => REMOVED,
                Some(b'@') => FAINT,
                _ => return line.to_owned(),
            };
            return styled(line, style, canvas).into_owned();
        }
        let Some(family) = self.family else { return line.to_owned() };
        let mut out = String::with_capacity(line.len() * 2);
        let mut rest = line;
        while !rest.is_empty() {
            let (length, style) = self.token(rest, family, line.len() - rest.len(), line);
            let (token, after) = rest.split_at(length);
            match style {
                Some(style) => out.push_str(&styled(token, style, canvas)),
                None => out.push_str(token),
            }
            rest = after;
        }
        out
    }

    /// Returns the length of the first token of a text, and its style.
    fn token(
        &mut self,
        rest: &str,
        family: Family,
        at: usize,
        line: &str,
    ) -> (usize, Option<Style>) {
        if self.in_comment || family.has_block_comments && rest.starts_with("/*") {
            let end = rest.find("*/").map(|end| end + 2);
            self.in_comment = end.is_none();
            return (end.unwrap_or(rest.len()), Some(FAINT));
        }
        let before = line[..at].chars().next_back();
        let is_start = before.is_none_or(char::is_whitespace);
        if rest.starts_with(family.line_comment) && (is_start || family.line_comment != "#") {
            return (rest.len(), Some(FAINT));
        }
        let Some(first) = rest.chars().next() else { return (0, None) };
        if matches!(first, '"' | '\'' | '`') && !before.is_some_and(char::is_alphanumeric) {
            return match string_end(rest, first) {
                Some(end) => (end, Some(STRING)),
                None if first == '"' => (rest.len(), Some(STRING)),
                None => (first.len_utf8(), None),
            };
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if !is_word(first) {
            return (first.len_utf8(), None);
        }
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        let is_keyword = |word: &str| family.keywords.split_whitespace().any(|it| it == word);
        let style = match first.is_ascii_digit() {
            true => Some(NUMBER),
            // SQL is usually written in capitals.
            false if is_keyword(word) => Some(KEYWORD),
            false if family.line_comment == "--" && is_keyword(&word.to_lowercase()) => {
                Some(KEYWORD)
            }
            false => None,
        };
        (end, style)
    }
}

/// Returns the end of a string that ends on this line.
fn string_end(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().skip(1).find_map(|(at, c)| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end.then(|| at + c.len_utf8())
    })
}
