//! A history that was read back is acceptable to a provider.

use std::time::SystemTime;

use openclaw_models::ToolUse;
use serde_json::json;

use super::*;

fn said(message: Message) -> HistoryMessage {
    HistoryMessage { seq: Some(1), message: Arc::new(message) }
}

fn calling(ids: &[&str]) -> Message {
    let tool_use = |id: &&str| ToolUse {
        id: (*id).to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    Message::Assistant {
        text: String::new(),
        reasoning: None,
        tool_uses: ids.iter().map(tool_use).collect(),
        parts: Vec::new(),
    }
}

fn results(ids: &[&str]) -> Message {
    let result = |id: &&str| ToolResult {
        id: (*id).to_owned(),
        name: "look".to_owned(),
        parts: vec![Part::ours("seen")],
        is_error: false,
    };
    Message::Tool { results: ids.iter().map(result).collect() }
}

/// The ids of the results of each message, and whether each is an error.
fn shape(said: &[HistoryMessage]) -> Vec<Vec<(String, bool)>> {
    let of = |message: &Message| match message {
        Message::Tool { results } => {
            results.iter().map(|it| (it.id.clone(), it.is_error)).collect()
        }
        _ => Vec::new(),
    };
    said.iter().map(|said| of(&said.message)).collect()
}

#[test]
fn a_call_whose_result_was_lost_gets_one_that_says_so() {
    let mended = mended(vec![
        said(Message::user("look")),
        said(calling(&["1", "2"])),
        said(results(&["2"])),
        said(calling(&["3"])),
        said(Message::user("and now?")),
        said(calling(&["4"])),
    ]);
    let id = |id: &str, is_error| (id.to_owned(), is_error);
    assert_eq!(
        shape(&mended),
        [
            vec![],
            vec![],
            vec![id("2", false), id("1", true)],
            vec![],
            vec![id("3", true)],
            vec![],
            vec![],
            vec![id("4", true)],
        ]
    );
}

#[test]
fn a_result_without_a_call_is_dropped() {
    let mended = mended(vec![said(Message::user("hi")), said(results(&["9"]))]);
    assert_eq!(mended.len(), 1);
}

fn entry(seq: u64, kind: EntryKind, body: serde_json::Value) -> Entry {
    Entry { seq, at: SystemTime::now(), run: None, kind, body }
}

#[test]
fn a_compaction_replaces_earlier_messages_with_its_summary() {
    let word =
        |seq, text: &str| entry(seq, EntryKind::Message, json!({ "message": Message::user(text) }));
    let entries = [
        word(1, "one"),
        word(2, "two"),
        word(3, "three"),
        entry(4, EntryKind::Compaction, json!({ "summary": "before", "keepFrom": 3 })),
        entry(5, EntryKind::Note, json!("nothing")),
        entry(6, EntryKind::Message, json!({ "nonsense": true })),
        word(7, "four"),
    ];
    let texts = |said: Vec<HistoryMessage>| -> Vec<Message> {
        said.into_iter().map(|said| (*said.message).clone()).collect()
    };
    let summary = Message::User { parts: vec![Part::ours("before")] };
    let expected = [summary, Message::user("three"), Message::user("four")];
    assert_eq!(texts(since_compaction(&entries)), expected);
    assert!(begins_within(&entries[2..]));
    assert!(!begins_within(&entries[3..]), "the tail begins earlier");
}

#[test]
fn a_summary_of_an_earlier_version_is_split_at_its_boundary() {
    let boundary = openclaw_content::Boundary::from_random_bytes([7; 8]);
    let source = openclaw_content::Source::other("a-summary");
    let (header, footer) = (boundary.header(&source), boundary.footer());
    let summary = format!("(Left out.)\n\nA summary of all of it:\n{header}ships{footer}");
    let stored = json!({ "summary": summary, "words": ["hi"], "keepFrom": 3 });
    let compacted: Compacted = serde_json::from_value(stored).unwrap();
    let [ours, theirs] = &compacted.summary[..] else { panic!("{compacted:?}") };
    assert_eq!(ours, &Text::ours("(Left out.)\n\nA summary of all of it:"));
    assert_eq!((theirs.expose(), theirs.source()), ("ships", Some(&source)));
    let again = serde_json::to_value(&compacted).unwrap();
    let again: Compacted = serde_json::from_value(again).unwrap();
    assert_eq!(again.summary, compacted.summary);
}
