//! Finding all forms of many values in one pass over the text.

use std::{ops::Range, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::forms::Form;

/// An automaton over the heads of all forms.
pub(super) struct Filter {
    heads: AhoCorasick,
    /// By pattern number.
    forms: Vec<Arc<Form>>,
    /// Those that have several lines.
    multi_line: Vec<Arc<Form>>,
    longest: usize,
}

impl Filter {
    /// `None` if there is nothing to look for.
    pub(super) fn new<'a>(forms: impl Iterator<Item = &'a Arc<Form>>) -> Option<Self> {
        let forms: Vec<Arc<Form>> = forms.cloned().collect();
        let longest = forms.iter().map(|form| form.max_extent()).max()?;
        // Quick to build and small, unlike the DFA that would be chosen for few patterns. Building
        // fails only beyond two thousand million states, and a head has few.
        let heads = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(forms.iter().map(|form| form.head()))
            .ok()?;
        let multi_line = forms.iter().filter(|form| form.has_lines()).cloned().collect();
        Some(Self { heads, forms, multi_line, longest })
    }

    /// The length of the longest text that can be a value.
    pub(super) fn longest_form(&self) -> usize {
        self.longest
    }

    /// How much of the end of a text, which is that of a line, may be the beginning of a value that
    /// has several lines.
    pub(super) fn begun_at_end(&self, text: &[u8]) -> usize {
        self.multi_line.iter().filter_map(|form| form.begun_at_end(text)).max().unwrap_or(0)
    }

    /// Where forms stand.
    fn matches(&self, text: &[u8]) -> impl Iterator<Item = Range<usize>> {
        self.heads.find_overlapping_iter(text).filter_map(|head| {
            let form = self.forms.get(head.pattern().as_usize())?;
            Some(form.extent(text, head.start()))
        })
    }
}

/// Where forms of any filter stand: sorted, joined where they overlap or touch.
///
/// Overlapping finds are wanted: if two values share a piece of the text, or one form is part of
/// another, then nothing of either may remain.
pub(super) fn hits(filters: &[Arc<Filter>], text: &[u8]) -> Vec<Range<usize>> {
    let mut hits: Vec<Range<usize>> =
        filters.iter().flat_map(|filter| filter.matches(text)).collect();
    hits.sort_unstable_by_key(|hit| (hit.start, hit.end));
    hits.dedup_by(|later, earlier| {
        let joins = later.start <= earlier.end;
        if joins {
            earlier.end = earlier.end.max(later.end);
        }
        joins
    });
    hits
}
