//! Bounds on what is kept for clients, in total and for each principal.

use std::collections::HashMap;

use openclaw_protocol::Principal;
use tokio::time::Instant;

/// How many things of a kind are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeepLimits {
    pub(super) total: usize,
    pub(super) each: usize,
}

/// What is kept: its key, whose it is, and when it was last used.
pub(super) type KeptItem<'a, K> = (&'a K, &'a Principal, Instant);

impl KeepLimits {
    /// Returns what makes room for another item of this principal; `None` if there is room. It is the
    /// one that was unused for the longest time: of the principal's own, or else of those of the
    /// principal that has the most, so that none loses what it has to one that takes all it can.
    pub(super) fn displaced<'a, K>(
        self,
        newcomer: &Principal,
        kept: impl Iterator<Item = KeptItem<'a, K>>,
    ) -> Option<&'a K> {
        let kept: Vec<_> = kept.collect();
        let mut counts: HashMap<&Principal, usize> = HashMap::new();
        for (_, principal, _) in &kept {
            *counts.entry(principal).or_default() += 1;
        }
        let loser = if counts.get(newcomer).is_some_and(|own| *own >= self.each) {
            newcomer
        } else if kept.len() >= self.total {
            counts.into_iter().max_by_key(|(_, count)| *count)?.0
        } else {
            return None;
        };
        let of_loser = kept.iter().filter(|(_, principal, _)| *principal == loser);
        of_loser.min_by_key(|(_, _, used)| *used).map(|(key, ..)| *key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use openclaw_protocol::AccessToken;

    use super::*;

    fn token(name: &str) -> Principal {
        AccessToken::new(name, name, ["operator.write"]).into()
    }

    #[test]
    fn whoever_has_the_most_makes_room() {
        let limits = KeepLimits { total: 5, each: 4 };
        let (greedy, modest, new) = (token("greedy"), token("modest"), token("new"));
        let start = Instant::now();
        let at = |age: u64| start + Duration::from_secs(age);
        let mut kept = vec![(1, &modest, at(0)), (2, &greedy, at(2)), (3, &greedy, at(1))];
        let displaced = |kept: &[(u32, &Principal, Instant)], newcomer: &Principal| {
            let kept = kept.iter().map(|(key, principal, used)| (key, *principal, *used));
            limits.displaced(newcomer, kept).copied()
        };
        assert_eq!(displaced(&kept, &new), None, "there is room");
        kept.extend([(4, &greedy, at(3)), (5, &greedy, at(4))]);
        assert_eq!(displaced(&kept, &greedy), Some(3), "it has all that it may have");
        assert_eq!(displaced(&kept, &new), Some(3), "and it has the most");
        assert_eq!(displaced(&kept, &modest), Some(3));
    }
}
