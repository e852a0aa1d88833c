//! What the results of one round may take together. Each is bounded by whoever made it; all of them stand
//! in one entry of the session, which has a bound, too.

use openclaw_models::{Part, ToolResult};
use openclaw_sessions::MAX_BODY_BYTES;

/// Pictures and recordings, in base64: half of an entry.
const MEDIA: usize = MAX_BODY_BYTES / 2;
/// Words, as JSON: what is left, but for names and numbers.
const WORDS: usize = MAX_BODY_BYTES * 3 / 8;

/// What is left for the results of a round. The first ones win.
#[derive(Debug)]
pub(crate) struct Budget {
    media: usize,
    words: usize,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self { media: MEDIA, words: WORDS }
    }

    /// Lets words take the place of what there is no room for.
    pub(crate) fn fit(&mut self, result: &mut ToolResult) {
        for part in &mut result.parts {
            let (left, size, words) = match part {
                Part::Text(text) => (
                    &mut self.words,
                    json_len(text.expose()),
                    "(This result was left out: together with the others of this round it is too long. Ask \
                     for less at once.)",
                ),
                Part::Image { data, .. } => (
                    &mut self.media,
                    data.len(),
                    "(A picture was left out: together with the others of this round it is too large. Ask \
                     for it by itself.)",
                ),
                Part::Audio { data, .. } => (
                    &mut self.media,
                    data.len(),
                    "(A recording was left out: together with the others of this round it is too large. \
                     Ask for it by itself.)",
                ),
            };
            match left.checked_sub(size) {
                Some(rest) => *left = rest,
                None => *part = Part::ours(words),
            }
        }
    }
}

/// How long a text is in JSON.
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
    fn the_first_pictures_win_and_a_small_one_may_still_fit() {
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
    fn words_count_as_long_as_they_are_in_the_entry() {
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
