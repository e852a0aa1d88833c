//! Renders findings for the terminal, in the style of compiler diagnostics.

use annotate_snippets::renderer::{DEFAULT_TERM_WIDTH, DecorStyle};
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Report, Severity};
use crate::mask::{Masked, mask};
use crate::source::{SourceId, SourceSpan};

/// Findings beyond this limit are counted, not shown.
const MAX_SHOWN: usize = 50;

/// How to render findings.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Whether to use colours.
    pub colour: bool,
    /// The width of the terminal, in columns.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: DEFAULT_TERM_WIDTH }
    }
}

impl Report {
    /// Renders every finding: message, source line with a marker, key path, advice. Credentials in
    /// source lines are masked.
    pub fn render(&self, style: Style) -> String {
        let renderer = if style.colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(style.width);
        let mut masks = Masks { report: self, done: Vec::new() };
        let mut out = String::new();
        let skipped = self.diagnostics.len().saturating_sub(MAX_SHOWN);
        for found in &self.diagnostics[skipped..] {
            out.push_str(&renderer.render(&[masks.group(found)]));
            out.push_str("\n\n");
        }
        if skipped > 0 {
            out.push_str(&format!("(and {skipped} more; `--json` lists all)\n\n"));
        }
        out
    }
}

/// The masked texts of the sources, computed on first use.
struct Masks<'a> {
    report: &'a Report,
    done: Vec<(SourceId, Masked)>,
}

impl Masks<'_> {
    fn group<'a>(&mut self, found: &'a Diagnostic) -> Group<'a> {
        let level = match found.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let mut group = Group::with_title(level.primary_title(found.message.as_str()));
        let primary = found.primary.iter().map(|mark| (mark, AnnotationKind::Primary));
        let secondary = found.secondary.iter().map(|mark| (mark, AnnotationKind::Context));
        let mut marks: Vec<_> = primary.chain(secondary).collect();
        // Marks on the same lines share a snippet.
        while let Some(((first, _), _)) = marks.first() {
            let lines = self.lines(*first);
            let (here, elsewhere) =
                marks.into_iter().partition(|((span, _), _)| self.lines(*span) == lines);
            group = group.element(self.snippet(*first, here));
            marks = elsewhere;
        }
        if let Some(path) = &found.path {
            group = group.element(Level::NOTE.with_name("at").message(path.as_str()));
        }
        if let Some(help) = &found.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        group
    }

    /// Returns the source and the lines that a mark touches.
    fn lines(&self, span: SourceSpan) -> (SourceId, std::ops::Range<usize>) {
        (span.source, self.report.sources.get(span.source).lines_around(span.range()).1)
    }

    /// Returns the lines of `span` from the masked source: passing a whole large file for each
    /// finding would be slow.
    fn snippet<'a>(
        &mut self,
        span: SourceSpan,
        marks: Vec<(&'a (SourceSpan, String), AnnotationKind)>,
    ) -> Snippet<'a, Annotation<'a>> {
        let source = self.report.sources.get(span.source);
        let (first, lines) = source.lines_around(span.range());
        let name = source.name.clone();
        let masked = self.masked(span.source);
        let (from, to) = (masked.offset(lines.start), masked.offset(lines.end));
        let text = masked.text[from..to].to_owned();
        let annotations = marks.into_iter().map(|((span, label), kind)| {
            let marked = span.range();
            let marked = masked.offset(marked.start) - from..masked.offset(marked.end) - from;
            kind.span(marked).label(label.as_str())
        });
        Snippet::source(text).line_start(first + 1).path(name).annotations(annotations)
    }

    fn masked(&mut self, id: SourceId) -> &Masked {
        let index = self.done.iter().position(|(done, _)| *done == id).unwrap_or_else(|| {
            self.done.push((id, mask(&self.report.sources.get(id).text)));
            self.done.len() - 1
        });
        &self.done[index].1
    }
}
