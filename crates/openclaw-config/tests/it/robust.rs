//! Loading any file, however damaged, ends with a configuration or a report.

use openclaw_config::{Document, Style};
use proptest::prelude::*;

use crate::support::*;

const ODD: &str = include_str!("../fixtures/node-openclaw.json");

/// A valid file with random replacements.
fn damaged() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("\""),
        Just("'"),
        Just("\\"),
        Just("//"),
        Just("/*"),
        Just("\n"),
        Just("é🦀"),
        Just("$include"),
        Just("${"),
        Just("secret://"),
        Just("null"),
        Just("-1e999"),
        Just("\u{feff}"),
        Just("\0"),
        Just(""),
    ];
    let place = (0..ODD.len(), 0..40usize, piece);
    prop::collection::vec(place, 1..6).prop_map(|places| {
        let mut text = ODD.to_owned();
        for (at, length, piece) in places {
            let (from, to) = (text.floor_char_boundary(at), text.floor_char_boundary(at + length));
            text.replace_range(from..to, piece);
        }
        text
    })
}

proptest! {
    #[test]
    fn a_damaged_file_is_read_and_reported_without_a_panic(text in damaged()) {
        let loaded = read(&text);
        prop_assert_eq!(loaded.config.is_none(), loaded.report.has_errors());
        let drawn = loaded.report.render(Style { colour: true, width: 80 });
        prop_assert_eq!(drawn.is_empty(), loaded.report.diagnostics().is_empty());
        let _ = loaded.report.to_json();
    }

    #[test]
    fn any_text_is_read_and_reported_without_a_panic(text in any::<String>()) {
        let loaded = read(&text);
        let _ = loaded.report.render(Style::default());
    }

    #[test]
    fn a_document_that_parses_is_written_as_it_was(text in damaged()) {
        if let Ok(document) = Document::parse(&text) {
            prop_assert_eq!(document.to_string(), text);
        }
    }
}
