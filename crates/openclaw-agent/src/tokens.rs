//! How much of a model's context something takes. A guess, on the safe side: only the provider knows.

use openclaw_models::{Message, Part};

/// A picture costs about so many tokens.
const PICTURE: u64 = 1_600;
/// What every message costs beside its text.
const MESSAGE: u64 = 8;

/// What a text takes. Four bytes a token is usual for English, three are on the safe side for code; a
/// character of another script takes three bytes and about one token.
pub(crate) fn of_text(text: &str) -> u64 {
    of_bytes(text.len())
}

/// What so many bytes of text take.
pub(crate) fn of_bytes(bytes: usize) -> u64 {
    bytes as u64 / 3 + 1
}

/// What a message takes.
pub(crate) fn of_message(message: &Message) -> u64 {
    let parts = |parts: &[Part]| parts.iter().map(of_part).sum::<u64>();
    MESSAGE
        + match message {
            Message::User { parts: all } => parts(all),
            Message::Assistant { text, tool_uses, parts: all, .. } => {
                let uses = tool_uses.iter().map(|it| of_text(&it.arguments) + of_text(&it.name));
                of_text(text) + uses.sum::<u64>() + parts(all)
            }
            Message::Tool { results } => {
                results.iter().map(|result| MESSAGE + parts(&result.parts)).sum()
            }
        }
}

fn of_part(part: &Part) -> u64 {
    match part {
        Part::Text(text) => of_bytes(text.rendered_len()),
        Part::Image { .. } => PICTURE,
        // Seconds are what counts, and they cannot be seen: about 16 KB a second, 32 tokens a second.
        Part::Audio { data, .. } => data.len() as u64 / 500 + MESSAGE,
    }
}
