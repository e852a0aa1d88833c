//! A model that makes the same call forever is told so, and then stopped.

use std::collections::HashMap;

use openclaw_models::ToolUse;

/// From this time on, the same call is not carried out any more.
const ENOUGH: u32 = 4;
/// At this time, the turn ends.
const TOO_MUCH: u32 = 8;

/// How often each call was made in a turn.
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
}

impl Repetition {
    pub(crate) fn count(&mut self, call: &ToolUse) -> Again {
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
        let seen: Vec<Again> = (0..8).map(|_| repetition.count(&call)).collect();
        assert_eq!(seen[..3], [Again::Go; 3]);
        assert_eq!(seen[3..7], [3, 4, 5, 6].map(Again::Refuse));
        assert_eq!(seen[7], Again::Stop);
        let other = ToolUse { arguments: "{\"a\":1}".into(), ..call };
        assert_eq!(repetition.count(&other), Again::Go);
    }
}
