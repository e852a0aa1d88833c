//! Finds all forms of many values in one pass over the text.

use std::{ops::Range, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::forms::EncodedForm;

/// An automaton over the heads of all forms.
pub(super) struct Filter {
    heads: AhoCorasick,
    /// Indexed by pattern number.
    forms: Vec<Arc<EncodedForm>>,
    /// The forms with several lines.
    multi_line: Vec<Arc<EncodedForm>>,
    longest: usize,
}

impl Filter {
    /// Builds a filter. `None` if there are no forms.
    pub(super) fn new<'a>(forms: impl Iterator<Item = &'a Arc<EncodedForm>>) -> Option<Self> {
        let forms: Vec<Arc<EncodedForm>> = forms.cloned().collect();
        let longest = forms.iter().map(|form| form.max_extent()).max()?;
        // Fast to build and small, unlike the DFA that would be chosen for few patterns. Building
        // fails only beyond 2^31 states, and heads are short.
        let heads = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(forms.iter().map(|form| form.head()))
            .ok()?;
        let multi_line = forms.iter().filter(|form| form.has_lines()).cloned().collect();
        Some(Self { heads, forms, multi_line, longest })
    }

    /// Returns the length of the longest form.
    pub(super) fn longest_form(&self) -> usize {
        self.longest
    }

    /// Returns how many bytes at the end of a text, which ends with a line, may begin a multi-line
    /// value.
    pub(super) fn begun_at_end(&self, text: &[u8]) -> usize {
        self.multi_line.iter().filter_map(|form| form.begun_at_end(text)).max().unwrap_or(0)
    }

    /// Returns the positions of forms in a text.
    fn matches(&self, text: &[u8]) -> impl Iterator<Item = Range<usize>> {
        self.heads.find_overlapping_iter(text).filter_map(|head| {
            let form = self.forms.get(head.pattern().as_usize())?;
            Some(form.extent(text, head.start()))
        })
    }
}

/// Returns the positions of forms of any filter: sorted, and joined where they overlap or touch.
///
/// Overlapping matches are needed: if two values share a part of the text, or one form is part of
/// another, nothing of either may remain.
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
