//! Estimates how many tokens something takes. Deliberately high: only the provider knows.

use openclaw_models::{Message, Part};

/// Approximate tokens per image.
const PICTURE: u64 = 1_600;
/// Tokens per message in addition to its text.
const MESSAGE: u64 = 8;

/// Estimates the tokens of a text. Four bytes per token is usual for English, three is safe for
/// code; a character of another script takes three bytes and about one token.
pub(crate) fn of_text(text: &str) -> u64 {
    of_bytes(text.len())
}

/// Estimates the tokens of that many bytes of text.
pub(crate) fn of_bytes(bytes: usize) -> u64 {
    bytes as u64 / 3 + 1
}

/// Estimates the tokens of a message.
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
        // The duration counts but is unknown: assume 16 KB and 32 tokens per second.
        Part::Audio { data, .. } => data.len() as u64 / 500 + MESSAGE,
        // A page costs some 2,000 tokens as text and image; assume 50 KB per page.
        Part::File { data, text, .. } => {
            let text = text.as_ref().map_or(0, |text| of_bytes(text.rendered_len()));
            text.max(data.len() as u64 / 25) + MESSAGE
        }
    }
}
