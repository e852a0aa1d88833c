//! Detects a model that repeats the same call: rejects the call, then ends the turn.

use std::collections::HashMap;

use openclaw_models::ToolUse;

/// From this repetition on, the call is rejected.
const ENOUGH: u32 = 4;
/// At this repetition, the turn ends.
const TOO_MUCH: u32 = 8;

/// Counts how often each call was made in consecutive rounds. A different call in between, such as
/// changing a file before running the tests again, resets the count; rounds have a limit of their
/// own.
#[derive(Debug, Default)]
pub(crate) struct Repetition(HashMap<(String, String), u32>);

/// What to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Execute it.
    Go,
    /// Reject it: it was already made this many times.
    Refuse(u32),
    /// End the turn.
    Stop,
    /// Reject it: there are too many calls in this round.
    TooMany,
}

impl Repetition {
    /// Counts the calls of a round.
    pub(crate) fn count_all(&mut self, calls: &[ToolUse]) -> Vec<Repeat> {
        self.0.retain(|(name, arguments), _| {
            calls.iter().any(|call| call.name == *name && call.arguments == *arguments)
        });
        calls.iter().map(|call| self.count(call)).collect()
    }

    fn count(&mut self, call: &ToolUse) -> Repeat {
        let times = self.0.entry((call.name.clone(), call.arguments.clone())).or_default();
        *times += 1;
        match *times {
            TOO_MUCH.. => Repeat::Stop,
            times @ ENOUGH.. => Repeat::Refuse(times - 1),
            _ => Repeat::Go,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_call_is_made_three_times_then_rejected_then_ends_the_turn() {
        let call = ToolUse { id: "1".into(), name: "look".into(), arguments: "{}".into() };
        let mut repetition = Repetition::default();
        let mut round = |call: &ToolUse| repetition.count_all(std::slice::from_ref(call))[0];
        let seen: Vec<Repeat> = (0..8).map(|_| round(&call)).collect();
        assert_eq!(seen[..3], [Repeat::Go; 3]);
        assert_eq!(seen[3..7], [3, 4, 5, 6].map(Repeat::Refuse));
        assert_eq!(seen[7], Repeat::Stop);
        let other = ToolUse { arguments: "{\"a\":1}".into(), ..call.clone() };
        assert_eq!(round(&other), Repeat::Go);
        assert_eq!(round(&call), Repeat::Go, "another call was made in between");
    }
}
