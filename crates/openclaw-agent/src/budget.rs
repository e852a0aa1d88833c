//! Size limit for the results of one round. Each result is limited by its tool, but all of them are
//! stored in one session entry, which has a limit too.

use openclaw_models::{Part, ToolResult};
use openclaw_sessions::MAX_BODY_BYTES;

/// Bytes of base64 media per round: half of an entry.
const MEDIA: usize = MAX_BODY_BYTES / 2;
/// Bytes of text per round, as JSON. The rest of the entry is left for names and ids.
const WORDS: usize = MAX_BODY_BYTES * 3 / 8;

/// What is left for the results of a round. Earlier results take precedence.
#[derive(Debug)]
pub(crate) struct Budget {
    media: usize,
    words: usize,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self { media: MEDIA, words: WORDS }
    }

    /// Replaces parts that do not fit with a placeholder.
    pub(crate) fn fit(&mut self, result: &mut ToolResult) {
        for part in &mut result.parts {
            let (left, size, words) = match part {
                Part::Text(text) => (
                    &mut self.words,
                    json_len(text.expose()),
                    "(This result was omitted: the results of this round are too long together. Request \
                     less at once.)",
                ),
                Part::Image { data, .. } => (
                    &mut self.media,
                    data.len(),
                    "(An image was omitted: the media of this round are too large together. Request \
                     it by itself.)",
                ),
                Part::File { data, .. } => (
                    &mut self.media,
                    data.len(),
                    "(A file was omitted: the media of this round are too large together. Request it \
                     by itself.)",
                ),
                Part::Audio { data, .. } => (
                    &mut self.media,
                    data.len(),
                    "(An audio clip was omitted: the media of this round are too large together. \
                     Request it by itself.)",
                ),
            };
            match left.checked_sub(size) {
                Some(rest) => *left = rest,
                None => *part = Part::ours(words),
            }
        }
    }
}

/// Upper bound for the length of `text` as a JSON string, without quotes.
fn json_len(text: &str) -> usize {
    let of_byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(of_byte).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(budget: &mut Budget, part: Part) -> Part {
        let (id, name) = ("1".to_owned(), "look".to_owned());
        let mut result = ToolResult { id, name, parts: vec![part], is_error: false };
        budget.fit(&mut result);
        result.parts.remove(0)
    }

    #[test]
    fn earlier_images_take_precedence_and_a_small_one_may_still_fit() {
        let picture = |bytes: usize| Part::Image {
            mime_type: "image/png".to_owned(),
            data: "A".repeat(bytes),
        };
        let mut budget = Budget::new();
        let large = MEDIA / 2 + 1;
        assert_eq!(fitted(&mut budget, picture(large)), picture(large));
        let left_out = fitted(&mut budget, picture(large));
        assert!(matches!(&left_out, Part::Text(text) if text.expose().contains("by itself")));
        assert_eq!(fitted(&mut budget, picture(100)), picture(100));
    }

    #[test]
    fn text_counts_with_its_json_length() {
        for text in ["plain", "\"\\\n\r\t", "\u{1}\u{1f}\u{8}\u{c}", "Grüße 🦀"] {
            let written = serde_json::to_string(text).unwrap().len() - 2;
            assert!(json_len(text) >= written, "{text:?}");
        }
        let mut budget = Budget::new();
        let long = "\u{1}".repeat(WORDS / 6 + 1);
        assert!(fitted(&mut budget, Part::ours(&long)) != Part::ours(long));
        assert_eq!(fitted(&mut budget, Part::ours("short")), Part::ours("short"));
    }
}
