//! The client side of a turn: sending a message, following the events, showing them.

mod answer;
pub(crate) mod approve;
mod call;
mod catch_up;
mod chat_agent;
mod denied;
mod lines;
mod parts;
mod sampling;
mod servers;
mod step;
mod turn;
mod view;

pub(crate) use answer::{TurnOutcome, TurnStatus};
pub(crate) use call::ShownCall;
pub(crate) use chat_agent::ChatAgent;
pub(crate) use denied::way_to_allow;
pub(crate) use lines::{InputLines, whole_stdin};
pub(crate) use parts::{ShownMessage, ShownPart};
pub(crate) use servers::{is_starting, servers};
pub(crate) use step::{EventFilter, TurnEvent};
pub(crate) use turn::{FollowedTurn, JoinedRun, OutgoingMessage};
pub(crate) use view::{CallFormatter, ShownResult, TurnOutput};

/// Returns a new unique key, for messages and sessions.
pub(crate) fn fresh_key() -> String {
    let mut bytes = [0; 16];
    // Without random numbers, the time is good enough: the key need not be secret.
    if getrandom::fill(&mut bytes).is_err() {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        bytes = since.unwrap_or_default().as_nanos().to_be_bytes();
    }
    let hex = |range: &[u8]| range.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parts = [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]];
    parts.map(hex).join("-")
}
