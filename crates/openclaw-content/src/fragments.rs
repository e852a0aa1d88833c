//! Searches for the rare fragments that suspicious phrases contain.
//!
//! Only every fourth offset of the text is probed. A fragment has at least six letters, so one of its
//! first four groups of three starts at such an offset; a table maps the group to the candidate
//! fragments. The lookup is case-insensitive and uses no special CPU instructions.

use std::ops::Range;
use std::sync::LazyLock;

use crate::patterns::RARE_FRAGMENTS;

/// The distance between probed offsets, in bytes.
const STRIDE: usize = 4;
/// The number of bytes probed together.
const GROUP: usize = 3;

/// The length of the longest fragment.
pub(crate) const LONGEST: usize = {
    let (mut longest, mut at) = (0, 0);
    while at < RARE_FRAGMENTS.len() {
        if RARE_FRAGMENTS[at].len() > longest {
            longest = RARE_FRAGMENTS[at].len();
        }
        at += 1;
    }
    longest
};

const HASH_BITS: u32 = 13;

/// The fragments by the groups of bytes near their beginning.
struct Groups {
    /// By the hash of a group: 0, or its index in `candidates` plus one.
    by_hash: Box<[u8; 1 << HASH_BITS]>,
    /// The fragments, each with the offset of the group in it.
    candidates: Vec<Vec<(&'static str, usize)>>,
}

static GROUPS: LazyLock<Groups> = LazyLock::new(|| Groups::new(RARE_FRAGMENTS));

/// Returns the hash of a group of bytes. Only their low five bits count, which do not depend on case.
#[inline]
fn hash(group: [u8; GROUP]) -> usize {
    let [first, second, third] = group;
    hash_of_word([first, second, third, 0])
}

/// Like [`hash`], for the first three bytes of a word.
#[inline]
fn hash_of_word(word: [u8; STRIDE]) -> usize {
    let letters = u32::from_le_bytes(word) & 0x001F_1F1F;
    (letters.wrapping_mul(0x9E37_79B1) >> (u32::BITS - HASH_BITS)) as usize
}

impl Groups {
    fn new(fragments: &'static [&'static str]) -> Self {
        let mut groups = Self { by_hash: Box::new([0; 1 << HASH_BITS]), candidates: Vec::new() };
        for fragment in fragments {
            for (offset, group) in fragment.as_bytes().array_windows().take(STRIDE).enumerate() {
                // Words may be on different lines.
                for blank in b" \n\t" {
                    let group = group.map(|byte| if byte == b' ' { *blank } else { byte });
                    groups.add(hash(group), (fragment, offset));
                }
            }
        }
        groups
    }

    fn add(&mut self, hash: usize, candidate: (&'static str, usize)) {
        let known = usize::from(self.by_hash[hash]);
        if let Some(others) = known.checked_sub(1).and_then(|at| self.candidates.get_mut(at)) {
            if !others.contains(&candidate) {
                others.push(candidate);
            }
        } else if let Ok(place) = u8::try_from(self.candidates.len() + 1) {
            self.by_hash[hash] = place;
            self.candidates.push(vec![candidate]);
        }
    }

    /// Returns the first fragment that begins at or after `from`, probing the groups at these offsets.
    fn find_in(&self, text: &[u8], places: Range<usize>, from: usize) -> Option<Range<usize>> {
        places.step_by(STRIDE).find_map(|at| {
            let group = text.get(at..)?.first_chunk()?;
            let place = self.by_hash[hash(*group)];
            self.confirm(text, at, place).filter(|found| found.start >= from)
        })
    }

    /// Returns the candidate fragment that occurs around `at`, if one does.
    fn confirm(&self, text: &[u8], at: usize, place: u8) -> Option<Range<usize>> {
        self.candidates.get(usize::from(place).checked_sub(1)?)?.iter().find_map(
            |(fragment, offset)| {
                let start = at.checked_sub(*offset)?;
                let found = text.get(start..start + fragment.len())?;
                is_same(found, fragment.as_bytes()).then(|| start..start + fragment.len())
            },
        )
    }
}

/// Whether the text equals the fragment, ignoring case and the kind of white space.
fn is_same(text: &[u8], fragment: &[u8]) -> bool {
    text.iter().zip(fragment).all(|(a, b)| a.to_ascii_lowercase().max(b' ') == *b)
}

/// The number of probes that share one branch.
const PLACES: usize = 8;
const BLOCK: usize = PLACES * STRIDE;

/// Finds the first fragment that begins at or after `from`.
pub(crate) fn find(text: &[u8], from: usize) -> Option<Range<usize>> {
    let groups = &*GROUPS;
    let (words, _) = text.get(from..)?.as_chunks::<STRIDE>();
    let (blocks, _) = words.as_chunks::<PLACES>();
    let mut at = from;
    for block in blocks {
        let any = block.iter().fold(0, |any, word| any | groups.by_hash[hash_of_word(*word)]);
        if any != 0
            && let Some(found) = groups.find_in(text, at..at + BLOCK, from)
        {
            return Some(found);
        }
        at += BLOCK;
    }
    groups.find_in(text, at..text.len(), from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_long_enough_and_all_in_the_table() {
        assert!(RARE_FRAGMENTS.iter().all(|fragment| fragment.len() >= STRIDE + GROUP - 1));
        let in_table = GROUPS.candidates.iter().map(Vec::len).sum::<usize>();
        assert!(in_table >= RARE_FRAGMENTS.len() * STRIDE);
        assert!(GROUPS.candidates.len() < usize::from(u8::MAX));
    }

    #[test]
    fn every_fragment_is_found_at_any_offset() {
        for fragment in RARE_FRAGMENTS {
            for before in 0..9 {
                for after in 0..5 {
                    let shout = fragment.to_uppercase().replace(' ', "\n");
                    let text = format!("{}{shout}{}", "x".repeat(before), "y".repeat(after));
                    let expected = before..before + fragment.len();
                    assert_eq!(find(text.as_bytes(), before), Some(expected.clone()), "{text}");
                    assert_eq!(find(text.as_bytes(), 0), Some(expected), "{text}");
                    assert_eq!(find(text.as_bytes(), before + 1), None, "{text}");
                }
            }
        }
    }
}
