//! Sessions of an earlier version. `fixtures/sessions-0.1.db` was written by the version before
//! texts had origins: tool calls, a resource, a server's prompt, and two compactions.

use openclaw_agent::{Compacted, MessageRecord};
use openclaw_content::{Source, Text};
use openclaw_models::scripted::ScriptedTurn as Says;
use openclaw_models::{Message, Part};
use openclaw_sessions::{EntryKind, ReadFilter, SessionKey};

use crate::support::Bench;

const FIXTURE: &[u8] = include_bytes!("../fixtures/sessions-0.1.db");

fn texts(parts: &[Part]) -> Vec<&Text> {
    parts.iter().filter_map(Part::as_text).collect()
}

#[tokio::test]
async fn what_an_earlier_version_stored_is_read_with_its_origins() {
    let bench = Bench::of_database([Says::says("yes")], FIXTURE).await;
    let key = SessionKey::new("fixture").unwrap();
    let entries = bench.agent.store.read(&key, ReadFilter::all()).await.unwrap();
    assert_eq!(entries.len(), 22);
    let mut seen = Vec::new();
    for entry in &entries {
        let body = entry.body.clone();
        let parts: Vec<Part> = match entry.kind {
            EntryKind::Compaction => {
                let compacted: Compacted = serde_json::from_value(body).unwrap();
                compacted.summary.into_iter().map(Part::Text).collect()
            }
            _ => match serde_json::from_value::<MessageRecord>(body).unwrap().message {
                Message::User { parts } => parts,
                Message::Tool { mut results } => results.remove(0).parts,
                Message::Assistant { .. } => continue,
            },
        };
        for text in texts(&parts) {
            assert!(!text.expose().contains("EXTERNAL_UNTRUSTED_CONTENT"), "{}", text.expose());
            seen.push((entry.seq, text.source().cloned()));
        }
    }
    let outside: Vec<(u64, Source)> =
        seen.iter().filter_map(|(seq, source)| Some((*seq, source.clone()?))).collect();
    let summary = || Source::other("a_summary_of_the_conversation");
    let expected = [
        (3, Source::mcp_tool("demo", "add")),
        (11, Source::mcp_tool("demo", "echo")),
        (15, Source::other("MCP_resources")),
        (16, summary()),
        (18, Source::mcp_resource("demo", "demo://notes")),
        (20, Source::mcp_prompt("demo", "summarise-notes")),
        (21, summary()),
    ];
    assert_eq!(outside, expected);
}

#[tokio::test]
async fn a_conversation_of_an_earlier_version_goes_on() {
    let bench = Bench::of_database([Says::says("yes")], FIXTURE).await;
    let mut turn = bench.turn("do you remember?");
    turn.session = SessionKey::new("fixture").unwrap();
    assert_eq!(bench.agent.answer(&turn).await.unwrap().text, "yes");
    let asked = bench.asked_last();
    let Message::User { parts } = &asked[0] else { panic!("{asked:?}") };
    let [ours, summary] = texts(parts)[..] else { panic!("{parts:?}") };
    assert!(ours.expose().contains("- add 2 and 3") && !ours.is_outside());
    assert!(summary.is_outside());
    let rendered = crate::support::texts(parts);
    assert_eq!(rendered.matches("<<<EXTERNAL_UNTRUSTED_CONTENT").count(), 1, "{rendered}");
}
