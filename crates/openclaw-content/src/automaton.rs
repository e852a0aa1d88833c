//! The automaton that finds all patterns at once (Aho and Corasick's): one table look-up for each
//! character that counts, whatever the text.

use crate::fold::{self, CLASSES, Class, SKIP};
use crate::patterns::{Meaning, PATTERNS};

/// Where the automaton stands: the place of a state's row in the table.
pub(crate) type State = usize;

/// A state as it is kept in the table: the smaller the table, the more of it is in the cache.
type Packed = u16;

/// How many entries there are from the column of any class on: one for whatever `Packed` can name.
const COLUMN: usize = 1 << Packed::BITS;
/// The whole table. It is longer than its rows need, so that no class leads out of it.
const TABLE: usize = COLUMN + (1 << Class::BITS);

/// The state in which nothing that was read can become part of a match.
pub(crate) const ROOT: State = 0;

/// A pattern as the automaton sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    /// How many characters that count it has.
    pub(crate) length: usize,
    /// Whether the match must not be followed by more of the same word.
    pub(crate) ends_word: bool,
    pub(crate) meaning: Meaning,
}

/// How many nodes there are at most: one for each letter of each pattern, and the root.
const NODES: usize = {
    let (mut letters, mut nth) = (0, 0);
    while nth < PATTERNS.len() {
        letters += PATTERNS[nth].0.len();
        nth += 1;
    }
    1 + letters
};

/// The patterns as a tree, letter by letter, with a way on from every node for every class: that of the
/// longest suffix that is also the beginning of a pattern.
struct Trie {
    /// The nodes that follow; 0, which follows nothing, where there is none yet.
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

/// Built by the compiler: programs that live for a moment would wait for it.
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

    /// How many nodes are matches, and how many patterns end in them, counted in each.
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

    /// Writes down the patterns that end in a node, longest first, from `count` on, where there is room.
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

/// Stands where no pattern was written yet.
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
    // A trailing `+` lets the last word go on; it is no letter.
    Pattern { length, ends_word: text[text.len() - 1] != b'+', meaning }
}

/// The classes that count of a pattern, or of anything else that is written in ASCII.
pub(crate) fn classes_of(ascii: &str) -> impl Iterator<Item = Class> + '_ {
    ascii
        .bytes()
        .map(fold::class_of_byte)
        .filter(|class| *class != SKIP && usize::from(*class) < CLASSES)
}

/// The class of a character of a pattern, if it counts.
const fn class_that_counts(ascii: u8) -> Option<usize> {
    match fold::class_of_ascii(ascii) {
        _ if ascii == b'+' => None,
        SKIP => None,
        class if (class as usize) < CLASSES => Some(class as usize),
        _ => None,
    }
}

/// There are far fewer nodes than numbers; were there more, this would not compile.
const fn packed(number: usize) -> Packed {
    assert!(number <= Packed::MAX as usize);
    number as Packed
}

const MATCHES: [usize; 2] = TRIE.count_matches();

/// The table and the patterns that end in each state.
pub(crate) struct Automaton {
    next: [Packed; TABLE],
    first_match: State,
    /// The patterns that end in the states from `first_match` on, state by state.
    endings: [Pattern; MATCHES[1]],
    /// Where those of each of these states begin, and at last, where they end.
    begins: [usize; MATCHES[0] + 1],
}

pub(crate) static AUTOMATON: Automaton = Automaton::new(&TRIE);

impl Automaton {
    /// Lays the nodes out as one table, those with a match last, so that one comparison tells them.
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

    /// What reading needs of the automaton, for a loop to keep at hand.
    pub(crate) fn steps(&self) -> Steps<'_> {
        Steps { next: &self.next, first_match: self.first_match }
    }

    /// The patterns that end in this state, longest first.
    pub(crate) fn matches(&self, state: State) -> &[Pattern] {
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
    first_match: State,
}

impl Steps<'_> {
    /// One step. A class that is skipped stays where it is.
    #[inline]
    pub(crate) fn step(self, state: State, class: Class) -> State {
        // The sum is formed this way round since the class is known before the state is: the next
        // step has to wait for nothing but the look-up. That every class has a column is known by
        // the types, and not checked at run time.
        let column = self.next[usize::from(class)..].first_chunk::<COLUMN>();
        column.map_or(ROOT, |column| State::from(column[state]))
    }

    /// Whether a pattern ends in this state.
    #[inline]
    pub(crate) fn is_match(self, state: State) -> bool {
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
