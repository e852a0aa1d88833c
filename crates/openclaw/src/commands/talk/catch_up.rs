//! Reads the answer of a turn from the history if its end was lost.

use openclaw_protocol::chat::{HistoryParams, SendParams, SendStatus};
use openclaw_protocol::{Surface, rpc};
use serde_json::Value;

use super::answer::{TurnOutcome, TurnStatus};
use crate::commands::link::look;

/// The number of messages to search.
const LAST: u32 = 20;

/// Returns the answer of a finished turn from the history.
pub(super) async fn answer(
    surface: &dyn Surface,
    sent: &SendParams,
    status: SendStatus,
) -> TurnOutcome {
    match status {
        SendStatus::Error => {
            return TurnOutcome::failed(
                "the turn failed; the reason was lost with the connection".to_owned(),
            );
        }
        SendStatus::Timeout => return TurnOutcome::bare(TurnStatus::TimedOut),
        SendStatus::Started | SendStatus::InFlight | SendStatus::Ok => {}
    }
    let params = HistoryParams {
        session_key: sent.session_key.clone(),
        agent_id: sent.agent_id.clone(),
        limit: Some(LAST),
        ..HistoryParams::default()
    };
    let history = look::<rpc::ChatHistory>(surface, params).await;
    let messages = match history {
        Ok(history) => history.messages,
        Err(error) => return TurnOutcome::refused(&error),
    };
    let read = |raw: &str| serde_json::from_str::<Value>(raw).ok();
    let said = messages.iter().rev().filter_map(|raw| read(raw.get()));
    let last = said.into_iter().find(|message| message["role"] == "assistant");
    match last {
        Some(message) => TurnOutcome::new(TurnStatus::Done, Some(&message)),
        None => TurnOutcome::failed(
            "the answer was lost with the connection, and is not in the history".to_owned(),
        ),
    }
}
