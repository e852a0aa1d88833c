//! The automaton that finds all patterns at once (Aho and Corasick's): one table look-up for each
//! character that counts, whatever the text.

use std::collections::VecDeque;
use std::sync::LazyLock;

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

/// The table and the patterns that end in each state.
pub(crate) struct Automaton {
    next: Box<[Packed; TABLE]>,
    first_match: State,
    /// The patterns that end in the states from `first_match` on, longest first.
    matches: Vec<Vec<Pattern>>,
}

/// Built on first use, in a fraction of a millisecond.
pub(crate) static AUTOMATON: LazyLock<Automaton> = LazyLock::new(|| Automaton::new(PATTERNS));

/// The classes that count of a pattern, or of anything else that is written in ASCII.
pub(crate) fn classes_of(ascii: &str) -> impl Iterator<Item = Class> + '_ {
    ascii
        .bytes()
        .map(fold::class_of_byte)
        .filter(|class| *class != SKIP && usize::from(*class) < CLASSES)
}

/// A state while the automaton is being built. It is small, because there are hundreds, and short-lived
/// programs wait for them.
struct Node {
    /// The numbers of the nodes that follow; 0, which follows nothing, where there is none yet.
    next: [Packed; CLASSES],
    fallback: Packed,
    matches: Vec<Pattern>,
}

impl Node {
    const fn new() -> Self {
        Self { next: [0; CLASSES], fallback: 0, matches: Vec::new() }
    }
}

impl Automaton {
    fn new(patterns: &[(&str, Meaning)]) -> Self {
        let letters: usize = patterns.iter().map(|(written, _)| written.len()).sum();
        let mut nodes = Vec::with_capacity(1 + letters);
        nodes.push(Node::new());
        for (written, meaning) in patterns {
            let text = written.trim_end_matches('+');
            let (mut at, mut length) = (0, 0);
            for class in classes_of(text) {
                let fresh = nodes.len();
                let next = &mut nodes[at].next[usize::from(class)];
                let is_new = *next == 0;
                if is_new {
                    *next = packed(fresh);
                }
                (at, length) = (usize::from(*next), length + 1);
                if is_new {
                    nodes.push(Node::new());
                }
            }
            let ends_word = text.len() == written.len();
            nodes[at].matches.push(Pattern { length, ends_word, meaning: *meaning });
        }
        let order = complete(&mut nodes);
        lay_out(&nodes, &order)
    }

    /// What reading needs of the automaton, for a loop to keep at hand.
    pub(crate) fn steps(&self) -> Steps<'_> {
        Steps { next: &self.next, first_match: self.first_match }
    }

    /// The patterns that end in this state, longest first.
    pub(crate) fn matches(&self, state: State) -> &[Pattern] {
        let row = state.saturating_sub(self.first_match) / CLASSES;
        self.matches.get(row).map_or(&[], Vec::as_slice)
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

/// Gives every node a successor for every class, going by the longest suffix that is also a prefix;
/// returns the nodes in breadth-first order.
fn complete(nodes: &mut [Node]) -> Vec<usize> {
    let mut order = vec![0];
    let mut queue = VecDeque::from([0]);
    while let Some(at) = queue.pop_front() {
        let beyond = match at {
            0 => [0; CLASSES],
            _ => nodes[usize::from(nodes[at].fallback)].next,
        };
        for (class, beyond) in beyond.into_iter().enumerate() {
            match usize::from(nodes[at].next[class]) {
                0 => nodes[at].next[class] = beyond,
                child => {
                    nodes[child].fallback = beyond;
                    let inherited = nodes[usize::from(beyond)].matches.clone();
                    nodes[child].matches.extend(inherited);
                    order.push(child);
                    queue.push_back(child);
                }
            }
        }
        nodes[at].next[usize::from(SKIP)] = packed(at);
    }
    order
}

/// There are far fewer nodes than numbers, which a test checks.
fn packed(node: usize) -> Packed {
    Packed::try_from(node).unwrap_or(0)
}

/// Lays the nodes out as one table, those with a match last, so that one comparison tells them.
fn lay_out(nodes: &[Node], order: &[usize]) -> Automaton {
    let (with, without): (Vec<usize>, Vec<usize>) =
        order.iter().partition(|at| !nodes[**at].matches.is_empty());
    let mut place = vec![0; nodes.len()];
    for (row, at) in without.iter().chain(&with).enumerate() {
        place[*at] = packed(row * CLASSES);
    }
    let rows = without.iter().chain(&with).map(|at| nodes[*at].next);
    let mut next = Box::new([0; TABLE]);
    for (entry, node) in next.iter_mut().zip(rows.flatten()) {
        *entry = place[usize::from(node)];
    }
    Automaton {
        next,
        first_match: without.len() * CLASSES,
        matches: with.iter().map(|at| nodes[*at].matches.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_its_state_numbers() {
        let rows = AUTOMATON.first_match / CLASSES + AUTOMATON.matches.len();
        assert!(rows * CLASSES < usize::from(Packed::MAX), "{rows} states");
    }

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
