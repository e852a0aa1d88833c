//! MCP servers, their tools, resources and prompts.

use openclaw_protocol::ErrorShape;

use super::{Answered, Asked};

pub(super) async fn answer(asked: &Asked<'_>) -> Answered {
    Err(ErrorShape::unknown_method(asked.method.name()))
}
