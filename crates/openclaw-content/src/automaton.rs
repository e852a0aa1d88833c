//! The Aho-Corasick automaton that finds all patterns in one pass: one table lookup per significant
//! character, whatever the text.

use crate::fold::{self, CLASSES, Class, SKIP};
use crate::patterns::{Meaning, PATTERNS};

/// A state of the automaton: the offset of its row in the table.
pub(crate) type StateOffset = usize;

/// A state as stored in the table: the smaller the table, the more of it fits in the CPU cache.
type Packed = u16;

/// The number of entries that follow the start of any class's column: one per value of `Packed`.
const COLUMN: usize = 1 << Packed::BITS;
/// The size of the table. It is longer than its rows need, so that no class indexes past its end.
const TABLE: usize = COLUMN + (1 << Class::BITS);

/// The state in which nothing read so far can become part of a match.
pub(crate) const ROOT: StateOffset = 0;

/// A pattern as the automaton sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    /// The number of its significant characters.
    pub(crate) length: usize,
    /// Whether the match must end at a word boundary.
    pub(crate) ends_word: bool,
    pub(crate) meaning: Meaning,
}

/// The maximum number of nodes: one for each letter of each pattern, and the root.
const NODES: usize = {
    let (mut letters, mut nth) = (0, 0);
    while nth < PATTERNS.len() {
        letters += PATTERNS[nth].0.len();
        nth += 1;
    }
    1 + letters
};

/// The patterns as a trie. Every node has a successor for every class: that of the longest suffix that
/// is also a prefix of a pattern.
struct Trie {
    /// The successors; 0 (the root, never a child) where there is none yet.
    next: [[Packed; CLASSES]; NODES],
    fallback: [Packed; NODES],
    /// Whether a pattern ends here, or in the node that it falls back to.
    is_match: [bool; NODES],
    /// The nodes, breadth first.
    order: [Packed; NODES],
    used: usize,
    /// The node in which each pattern ends.
    ends: [Packed; PATTERNS.len()],
}

/// Built at compile time: building it at startup would delay short-lived processes.
const TRIE: Trie = Trie::new();

impl Trie {
    const fn new() -> Self {
        let mut trie = Self {
            next: [[0; CLASSES]; NODES],
            fallback: [0; NODES],
            is_match: [false; NODES],
            order: [0; NODES],
            used: 1,
            ends: [0; PATTERNS.len()],
        };
        let mut nth = 0;
        while nth < PATTERNS.len() {
            let (text, mut node, mut at) = (PATTERNS[nth].0.as_bytes(), 0, 0);
            while at < text.len() {
                if let Some(class) = class_that_counts(text[at]) {
                    if trie.next[node][class] == 0 {
                        trie.next[node][class] = packed(trie.used);
                        trie.used += 1;
                    }
                    node = trie.next[node][class] as usize;
                }
                at += 1;
            }
            trie.ends[nth] = packed(node);
            trie.is_match[node] = true;
            nth += 1;
        }
        trie.complete()
    }

    /// Gives every node a successor for every class.
    const fn complete(mut self) -> Self {
        let (mut done, mut known) = (0, 1);
        while done < known {
            let node = self.order[done] as usize;
            let beyond = match node {
                0 => [0; CLASSES],
                _ => self.next[self.fallback[node] as usize],
            };
            let mut class = 0;
            while class < CLASSES {
                match self.next[node][class] as usize {
                    0 => self.next[node][class] = beyond[class],
                    child => {
                        self.fallback[child] = beyond[class];
                        self.is_match[child] |= self.is_match[beyond[class] as usize];
                        self.order[known] = packed(child);
                        known += 1;
                    }
                }
                class += 1;
            }
            self.next[node][SKIP as usize] = packed(node);
            done += 1;
        }
        self
    }

    /// The number of matching nodes, and the number of patterns that end in them, summed over the
    /// nodes.
    const fn count_matches(&self) -> [usize; 2] {
        let (mut node, mut counts) = (0, [0, 0]);
        while node < self.used {
            if self.is_match[node] {
                counts[0] += 1;
                self.each_ending(node, &mut [NOTHING; 0], &mut counts[1]);
            }
            node += 1;
        }
        counts
    }

    /// Writes the patterns that end in a node, longest first, to `written` from index `count` on, as
    /// far as there is room.
    const fn each_ending(&self, mut node: usize, written: &mut [Pattern], count: &mut usize) {
        while node != 0 {
            let mut nth = 0;
            while nth < PATTERNS.len() {
                if self.ends[nth] as usize == node {
                    if *count < written.len() {
                        written[*count] = pattern(nth);
                    }
                    *count += 1;
                }
                nth += 1;
            }
            node = self.fallback[node] as usize;
        }
    }
}

/// A placeholder for a pattern that is not written yet.
const NOTHING: Pattern = Pattern { length: 0, ends_word: false, meaning: Meaning::OpeningBar };

const fn pattern(nth: usize) -> Pattern {
    let (text, meaning) = PATTERNS[nth];
    let text = text.as_bytes();
    let (mut length, mut at) = (0, 0);
    while at < text.len() {
        if class_that_counts(text[at]).is_some() {
            length += 1;
        }
        at += 1;
    }
    // A trailing `+` allows the last word to continue; it is not part of the pattern.
    Pattern { length, ends_word: text[text.len() - 1] != b'+', meaning }
}

/// The significant classes of a pattern, or of any other ASCII text.
pub(crate) fn classes_of(ascii: &str) -> impl Iterator<Item = Class> + '_ {
    ascii
        .bytes()
        .map(fold::class_of_byte)
        .filter(|class| *class != SKIP && usize::from(*class) < CLASSES)
}

/// The class of a character of a pattern, if it is significant.
const fn class_that_counts(ascii: u8) -> Option<usize> {
    match fold::class_of_ascii(ascii) {
        _ if ascii == b'+' => None,
        SKIP => None,
        class if (class as usize) < CLASSES => Some(class as usize),
        _ => None,
    }
}

/// There are far fewer nodes than `Packed` has values; with too many, this fails to compile.
const fn packed(number: usize) -> Packed {
    assert!(number <= Packed::MAX as usize);
    number as Packed
}

const MATCHES: [usize; 2] = TRIE.count_matches();

/// The table and the patterns that end in each state.
pub(crate) struct Automaton {
    next: [Packed; TABLE],
    first_match: StateOffset,
    /// The patterns that end in the states from `first_match` on, state by state.
    endings: [Pattern; MATCHES[1]],
    /// The index in `endings` where each of these states begins; the last entry is the end.
    begins: [usize; MATCHES[0] + 1],
}

pub(crate) static AUTOMATON: Automaton = Automaton::new(&TRIE);

impl Automaton {
    /// Lays the nodes out as one table, matching nodes last, so that one comparison identifies them.
    const fn new(trie: &Trie) -> Self {
        let mut place = [0; NODES];
        let (mut plain, mut matching, mut nth) = (0, trie.used - MATCHES[0], 0);
        let first_match = matching * CLASSES;
        let mut endings = [NOTHING; MATCHES[1]];
        let mut begins = [0; MATCHES[0] + 1];
        let mut written = 0;
        while nth < trie.used {
            let node = trie.order[nth] as usize;
            if trie.is_match[node] {
                place[node] = packed(matching * CLASSES);
                matching += 1;
                trie.each_ending(node, &mut endings, &mut written);
                begins[matching + MATCHES[0] - trie.used] = written;
            } else {
                place[node] = packed(plain * CLASSES);
                plain += 1;
            }
            nth += 1;
        }
        let mut next = [0; TABLE];
        let mut node = 0;
        while node < trie.used {
            let mut class = 0;
            while class < CLASSES {
                next[place[node] as usize + class] = place[trie.next[node][class] as usize];
                class += 1;
            }
            node += 1;
        }
        Self { next, first_match, endings, begins }
    }

    /// Returns the part of the automaton that the read loop needs.
    pub(crate) fn steps(&self) -> Steps<'_> {
        Steps { next: &self.next, first_match: self.first_match }
    }

    /// Returns the patterns that end in this state, longest first.
    pub(crate) fn matches(&self, state: StateOffset) -> &[Pattern] {
        let row = state.saturating_sub(self.first_match) / CLASSES;
        match self.begins.get(row..row + 2) {
            Some(&[begin, end]) => &self.endings[begin..end],
            _ => &[],
        }
    }
}

/// The table, and which of its states are matches.
#[derive(Clone, Copy)]
pub(crate) struct Steps<'a> {
    next: &'a [Packed; TABLE],
    first_match: StateOffset,
}

impl Steps<'_> {
    /// Returns the next state. [`SKIP`] leaves the state as it is.
    #[inline]
    pub(crate) fn step(self, state: StateOffset, class: Class) -> StateOffset {
        // The index is computed in this order because the class is known before the state is: the
        // next step waits for nothing but the lookup. The types guarantee that every class has a
        // column, so there is no bounds check.
        let column = self.next[usize::from(class)..].first_chunk::<COLUMN>();
        column.map_or(ROOT, |column| StateOffset::from(column[state]))
    }

    /// Whether a pattern ends in this state.
    #[inline]
    pub(crate) fn is_match(self, state: StateOffset) -> bool {
        state >= self.first_match
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_found_at_its_own_end() {
        let steps = AUTOMATON.steps();
        for (written, _) in PATTERNS {
            let text = written.trim_end_matches('+');
            let end = classes_of(text).fold(ROOT, |state, class| steps.step(state, class));
            assert!(steps.is_match(end), "{written}");
            let longest = AUTOMATON.matches(end)[0];
            assert_eq!(longest.length, classes_of(text).count(), "{written}");
        }
    }
}
