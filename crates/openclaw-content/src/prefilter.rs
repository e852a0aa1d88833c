//! Finds the places in a text where a pattern could be. Ordinary text has few of them, and the text in
//! between is never examined character by character.

use std::ops::Range;

use crate::fold;
use crate::fragments;
use crate::openings::{OPENINGS, Openings};

/// How far before a fragment or a disguised letter the phrase may begin, in bytes.
const REACH_BACK: usize = 96;

/// Places closer together than this, in bytes, are scanned as one stretch: that is faster than finding
/// each of them.
pub(crate) const NEAR: usize = 8;
/// The number of nearby brackets that count as a crowd.
const CROWD: usize = 8;

/// The three searches. Each remembers its last result, so that none reads the same bytes twice.
pub(crate) struct Prefilter<'t> {
    text: &'t [u8],
    openings: &'static Openings,
    bracket: usize,
    look_alike: usize,
    fragment: Range<usize>,
    /// The number of bytes searched.
    #[cfg(test)]
    pub(crate) searched: usize,
}

impl<'t> Prefilter<'t> {
    /// Starts the searches at the beginning of the text.
    pub(crate) fn new(text: &'t [u8]) -> Self {
        let mut prefilter = Self {
            text,
            openings: &OPENINGS,
            bracket: 0,
            look_alike: 0,
            fragment: 0..0,
            #[cfg(test)]
            searched: 0,
        };
        prefilter.find_bracket(0);
        prefilter.find_look_alike(0);
        prefilter.find_fragment(0);
        prefilter
    }

    /// Returns the next stretch to scan; its end is the earliest place to stop. `from` is where the
    /// last one ended.
    pub(crate) fn next(&mut self, from: usize) -> Option<Range<usize>> {
        if self.bracket < from {
            self.find_bracket(from);
        }
        if self.look_alike < from {
            self.find_look_alike(from);
        }
        if self.fragment.start < from {
            self.find_fragment(from);
        }
        let at = self.bracket.min(self.look_alike).min(self.fragment.start);
        if at >= self.text.len() {
            return None;
        }
        if at == self.bracket && !self.is_letter_in_disguise(at) {
            return Some(at..at + 1);
        }
        let mut start = at.saturating_sub(REACH_BACK).max(from);
        while self.text[start] & 0xC0 == 0x80 {
            start += 1;
        }
        let end = if at == self.fragment.start { self.fragment.end } else { at };
        Some(start..end.max(at + 1))
    }

    /// Whether there is an HTML reference at `at` to something that may be in the middle of a phrase:
    /// a letter, or an invisible character.
    fn is_letter_in_disguise(&self, at: usize) -> bool {
        self.text[at] == b'&' && fold::is_inside_phrases(fold::class_at(self.text, at).0)
    }

    /// Finds the next bracket that can begin a pattern.
    fn find_bracket(&mut self, from: usize) {
        let text = self.text;
        let (mut since, mut passed) = (from, 0);
        for at in memchr::memchr3_iter(b'<', b'[', b'&', &text[from..]).map(|at| from + at) {
            passed += 1;
            if self.openings.can_begin(&text[at..]) {
                self.bracket = at;
                return;
            }
            #[cfg(test)]
            {
                self.searched += CROWD;
            }
            // Where there are many brackets, the automaton is faster than checking each of them.
            if passed == CROWD {
                if at < since + CROWD * NEAR / 2 {
                    self.bracket = since;
                    return;
                }
                (since, passed) = (at, 0);
            }
        }
        self.bracket = text.len();
    }

    /// Finds the next non-ASCII character that looks like one of a pattern, or is invisible.
    fn find_look_alike(&mut self, from: usize) {
        let mut at = from;
        while at < self.text.len() {
            if self.text[at].is_ascii() {
                at += leading_ascii(&self.text[at..]);
                continue;
            }
            let (class, width) = fold::beyond_ascii(self.text, at);
            if fold::is_suspect(class) {
                break;
            }
            at += width;
            at += fold::leading_plain_triples(&self.text[at..]);
        }
        self.look_alike = at;
        #[cfg(test)]
        {
            self.searched += at - from;
        }
    }

    /// Finds the next fragment, if it begins before the results of the other searches: the scan may
    /// have read past later ones by then.
    fn find_fragment(&mut self, from: usize) {
        let limit = self.bracket.min(self.look_alike);
        let end = self.text.len().min(limit + fragments::LONGEST);
        self.fragment = fragments::find(&self.text[..end], from).unwrap_or(limit..limit);
        #[cfg(test)]
        {
            self.searched += self.fragment.end.saturating_sub(from);
        }
    }
}

/// Returns the number of leading ASCII bytes.
fn leading_ascii(text: &[u8]) -> usize {
    const BEYOND: u64 = 0x8080_8080_8080_8080;
    let blocks = text.chunks_exact(64).take_while(|block| block.is_ascii()).count() * 64;
    let (words, rest) = text[blocks..].as_chunks();
    for (at, word) in words.iter().enumerate() {
        let beyond = u64::from_le_bytes(*word) & BEYOND;
        if beyond != 0 {
            return blocks + 8 * at + beyond.trailing_zeros() as usize / 8;
        }
    }
    let rest = rest.iter().take_while(|byte| byte.is_ascii()).count();
    blocks + 8 * words.len() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::{Cue, Meaning, PATTERNS, RARE_FRAGMENTS};

    /// Whether the prefilter finds the pattern only by its cue.
    fn comes_with_a_cue(meaning: Meaning) -> bool {
        matches!(meaning, Meaning::Phrase(_, Some(Cue::Earlier)) | Meaning::Cue(..))
    }

    #[test]
    fn every_pattern_has_something_that_the_prefilter_finds() {
        for (written, meaning) in PATTERNS.iter().filter(|(_, meaning)| !comes_with_a_cue(*meaning))
        {
            let plain = written.to_lowercase();
            let found = plain.contains(['<', '['])
                || matches!(meaning, Meaning::ClosingBar)
                || RARE_FRAGMENTS.iter().any(|fragment| plain.contains(fragment));
            assert!(found, "{written}");
        }
    }

    #[test]
    fn ascii_is_counted_to_the_byte() {
        for length in 0..200 {
            let text = format!("{}é and more", "x".repeat(length));
            assert_eq!(leading_ascii(text.as_bytes()), length);
            assert_eq!(leading_ascii(&text.as_bytes()[..length]), length);
        }
    }

    #[test]
    fn ordinary_text_has_nothing_to_scan() {
        let text = "Plain words, “quoted” — and a 漢字. 一つのデータ ├──┤ ".repeat(400);
        assert_eq!(Prefilter::new(text.as_bytes()).next(0), None);
    }

    #[test]
    fn the_text_before_a_fragment_is_scanned_too() {
        let text = format!("{}Disregard\nthe rest", "é".repeat(10) + &"漢x".repeat(100));
        let mut prefilter = Prefilter::new(text.as_bytes());
        let at = text.find("Dis").unwrap();
        let stretch = prefilter.next(20).unwrap();
        assert!((at - REACH_BACK..at - REACH_BACK + 3).contains(&stretch.start));
        assert!(text.is_char_boundary(stretch.start));
        assert_eq!(stretch.end, at + "disregard".len());
        assert_eq!(prefilter.next(stretch.end), None);
    }
}
