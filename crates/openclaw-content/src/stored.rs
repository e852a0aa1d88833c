//! Stored texts, including those of earlier versions, which stored what the model was shown: with
//! boundaries, without origins.

use serde::Deserialize;

use crate::boundary::find_wrapped;
use crate::text::{Origin, Outside, Text};

/// A stored text. [`StoredText::settle`] is the only way to turn it into a [`Text`].
#[derive(Debug, Clone, Deserialize)]
pub struct StoredText {
    text: String,
    #[serde(default)]
    origin: Option<Origin>,
}

/// The origin of text that was stored without one and is not inside a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlabelled {
    /// This program: the text is in the result of a tool.
    Ours,
    /// The user: the text is in a user message.
    User,
}

impl StoredText {
    /// A text that an earlier version stored without an origin.
    pub fn unlabelled(text: impl Into<String>) -> Self {
        Self { text: text.into(), origin: None }
    }

    /// Returns the text with its origin. A text without a stored origin is split: what is inside a
    /// boundary is external, the rest has the given origin.
    #[must_use]
    pub fn settle(self, unlabelled: Unlabelled) -> Vec<Text> {
        let Self { text, origin } = self;
        if let Some(origin) = origin {
            return vec![Text::of(text, origin)];
        }
        let of_origin = |text: &str| match unlabelled {
            Unlabelled::Ours => Text::ours(text),
            Unlabelled::User => Text::user(text),
        };
        let mut texts = Vec::new();
        let mut rest = text.as_str();
        while let Some(found) = find_wrapped(rest) {
            if !found.before.trim().is_empty() {
                texts.push(of_origin(found.before));
            }
            let outside = Outside::new(found.source, found.boundary);
            texts.push(Text::of(found.text.to_owned(), Origin::Outside(outside)));
            rest = found.after.strip_prefix('\n').unwrap_or(found.after);
        }
        if !rest.trim().is_empty() || texts.is_empty() {
            texts.push(of_origin(rest));
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Boundary, Source, Untrusted, render, sanitize};

    fn settle(text: &str) -> Vec<Text> {
        StoredText::unlabelled(text).settle(Unlabelled::User)
    }

    fn wrapped(text: &str) -> String {
        let source = Source::mcp_tool("x", "y");
        let text = Text::outside(Untrusted::new(text.to_owned()), source).unwrap();
        render([&text]).remove(0)
    }

    #[test]
    fn what_was_stored_with_an_origin_comes_back_with_it() {
        let pasted = Text::user(wrapped("obey"));
        let text = Text::outside(Untrusted::new("x".to_owned()), Source::Command).unwrap();
        for text in [pasted, text, Text::ours("words")] {
            let stored = serde_json::to_string(&text).unwrap();
            let stored: StoredText = serde_json::from_str(&stored).unwrap();
            assert_eq!(stored.settle(Unlabelled::Ours), [text]);
        }
    }

    #[test]
    fn an_older_text_is_split_and_renders_as_before() {
        let (one, two) = (wrapped("one"), wrapped("two\nlines"));
        let texts = settle(&format!("Before:\n{one}\nbetween\n{two}\nafter"));
        let seen: Vec<_> = texts.iter().map(|it| (it.expose(), it.is_outside())).collect();
        let expected = [
            ("Before:", false),
            ("one", true),
            ("between", false),
            ("two\nlines", true),
            ("after", false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(render(&texts), ["Before:", &one, "between", &two, "after"]);
        assert_eq!(texts[1].source(), Some(&Source::mcp_tool("x", "y")));
    }

    #[test]
    fn an_incomplete_boundary_is_plain_text() {
        let source = Source::mcp_tool("x", "y");
        let boundary = |digit| Boundary::from_random_bytes([digit; 8]);
        let (header, footer) = (boundary(1).header(&source), boundary(1).footer());
        let other_end = boundary(2).footer();
        for text in [
            String::new(),
            header.clone(),
            footer.clone(),
            format!("{header}text"),
            format!("{header}text{other_end}"),
            format!("{header}text{footer}").replace("This is ", "That is "),
            format!("{header}text{footer}").replace("01010101", "0101010g"),
        ] {
            assert_eq!(settle(&text), [Text::user(text)]);
        }
        assert!(settle(&format!("{header}{footer}"))[0].is_outside());
    }

    proptest! {
        #[test]
        fn a_wrapped_text_settles_to_its_sanitized_form(text in "(.|\n|---|<<<|>>>){0,80}") {
            let expected = sanitize(Untrusted::new(&text)).into_text().into_owned();
            let texts = settle(&wrapped(&text));
            prop_assert_eq!(texts.len(), 1);
            prop_assert!(texts[0].is_outside());
            prop_assert_eq!(texts[0].expose(), expected.as_str());
        }
    }
}
