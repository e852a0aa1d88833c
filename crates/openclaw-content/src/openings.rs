//! Which brackets can begin a pattern, by the two characters after them. Markup is full of brackets,
//! so this is precomputed.

use std::sync::LazyLock;

use crate::automaton::{AUTOMATON, ROOT, Steps};
use crate::fold::{self, CLASSES, Class, SKIP};

/// Classes that the automaton does not know may be anything: they share one column.
const COLUMNS: usize = 64;
const _: () = assert!(CLASSES < COLUMNS);

/// For `<` and for `[`: by the class of the second character, a bit for each class of the third.
pub(crate) struct Openings {
    angle: [u64; COLUMNS],
    square: [u64; COLUMNS],
}

/// Built on first use.
pub(crate) static OPENINGS: LazyLock<Openings> = LazyLock::new(|| Openings {
    angle: going_on_after(b'<', AUTOMATON.steps()),
    square: going_on_after(b'[', AUTOMATON.steps()),
});

impl Openings {
    /// Whether a pattern can begin with the bracket or ampersand at the start of the text.
    #[inline]
    pub(crate) fn can_begin(&self, text: &[u8]) -> bool {
        match *text {
            [b'&', next, ..] => b"lLgG#vVrR".contains(&next),
            // Common in JSON nested in JSON.
            [bracket, b'\\', second, third, ..] => {
                !second.is_ascii_alphanumeric() && self.can_go_on(bracket, second, third)
            }
            [bracket, second, third, ..] => self.can_go_on(bracket, second, third),
            _ => true,
        }
    }

    #[inline]
    fn can_go_on(&self, bracket: u8, second: u8, third: u8) -> bool {
        let after = if bracket == b'<' { &self.angle } else { &self.square };
        after[column(second)] >> column(third) & 1 != 0
    }
}

#[inline]
fn column(byte: u8) -> usize {
    usize::from(fold::class_of_byte(byte)).min(COLUMNS - 1)
}

fn going_on_after(bracket: u8, steps: Steps<'_>) -> [u64; COLUMNS] {
    let first = fold::class_of_byte(bracket);
    std::array::from_fn(|second| {
        (0..COLUMNS)
            .filter(|third| can_go_on(steps, first, [second, *third]))
            .fold(0, |bits, third| bits | 1 << third)
    })
}

/// Whether a pattern that begins with the first of these classes can continue with the others.
fn can_go_on(steps: Steps<'_>, first: Class, others: [usize; 2]) -> bool {
    let (mut with, mut without) = (steps.step(ROOT, first), ROOT);
    for column in others {
        // A class that is skipped or not resolved yet excludes nothing.
        let Some(class) = Class::try_from(column).ok().filter(|_| column < CLASSES) else {
            return true;
        };
        if class == SKIP {
            return true;
        }
        (with, without) = (steps.step(with, class), steps.step(without, class));
        if steps.is_match(with) {
            return true;
        }
    }
    with != without
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_is_an_opening_if_a_pattern_can_continue() {
        for opening in [
            "<|x", "<<S", "<EX", "< x", "<é", "<&l", "[IN", "[/I", "</s", "&lt", "<", "<a",
            "<\\|x", "[\\_", "<\\\\|",
        ] {
            assert!(OPENINGS.can_begin(opening.as_bytes()), "{opening}");
        }
        for other in ["<di", "<p>", "<5x", "[0]", "[\"a", "&am", "&&", "[\\\"a", "<\\/p>", "<\\bos"]
        {
            assert!(!OPENINGS.can_begin(other.as_bytes()), "{other}");
        }
    }
}
