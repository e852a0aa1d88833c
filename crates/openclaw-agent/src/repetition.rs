//! A model that makes the same call forever is told so, and then stopped.

use std::collections::HashMap;

use openclaw_models::ToolUse;

/// From this time on, the same call is not carried out any more.
const ENOUGH: u32 = 4;
/// At this time, the turn ends.
const TOO_MUCH: u32 = 8;

/// How often each call was made in a row. Whoever does something else in between, such as changing a file
/// before running the tests again, has not made the same call forever; rounds have a limit of their own.
#[derive(Debug, Default)]
pub(crate) struct Repetition(HashMap<(String, String), u32>);

/// What to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// Carry it out.
    Go,
    /// Say that it was made so often already.
    Refuse(u32),
    /// End the turn.
    Stop,
    /// Make it in another round: there are too many in this one.
    TooMany,
}

impl Repetition {
    /// Counts the calls of a round.
    pub(crate) fn count_all(&mut self, calls: &[ToolUse]) -> Vec<Again> {
        self.0.retain(|(name, arguments), _| {
            calls.iter().any(|call| call.name == *name && call.arguments == *arguments)
        });
        calls.iter().map(|call| self.count(call)).collect()
    }

    fn count(&mut self, call: &ToolUse) -> Again {
        let times = self.0.entry((call.name.clone(), call.arguments.clone())).or_default();
        *times += 1;
        match *times {
            TOO_MUCH.. => Again::Stop,
            times @ ENOUGH.. => Again::Refuse(times - 1),
            _ => Again::Go,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_call_is_made_three_times_then_refused_then_ends_the_turn() {
        let call = ToolUse { id: "1".into(), name: "look".into(), arguments: "{}".into() };
        let mut repetition = Repetition::default();
        let mut round = |call: &ToolUse| repetition.count_all(std::slice::from_ref(call))[0];
        let seen: Vec<Again> = (0..8).map(|_| round(&call)).collect();
        assert_eq!(seen[..3], [Again::Go; 3]);
        assert_eq!(seen[3..7], [3, 4, 5, 6].map(Again::Refuse));
        assert_eq!(seen[7], Again::Stop);
        let other = ToolUse { arguments: "{\"a\":1}".into(), ..call.clone() };
        assert_eq!(round(&other), Again::Go);
        assert_eq!(round(&call), Again::Go, "something else was done in between");
    }
}
