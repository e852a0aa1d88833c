//! Skills of servers (SEP-2640): listed with digests, read when they are needed, and verified.

use std::sync::Arc;

use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::inventory::ListedKind;
use openclaw_testkit::{Recording, Script, Skill};
use openclaw_tools::{CallContext, ToolFailure, ToolOutcome, ToolSource as _};
use serde_json::json;

use crate::support::{call, entry, entry_with, ready, servers};

const FORMS: &str = "skill://pdf/references/FORMS.md";

fn skill() -> Skill {
    Skill::new("pdf", "Fill PDF forms").file("references/FORMS.md", "All forms.\n")
}

async fn with(script: &Script) -> (Arc<Fleet>, Arc<AgentTools>) {
    let (fleet, tools) = ready(&servers(json!({ "x": entry(script) }))).await;
    (fleet, tools)
}

async fn read(tools: &AgentTools, uri: &str) -> ToolOutcome {
    tools.read("x", uri, &CallContext::by_hand("test")).await
}

#[tokio::test]
async fn skills_are_listed_without_reading_them_and_read_through_the_resource_tool() {
    for script in [Script::new().legacy(), Script::new().modern()] {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::at(folder.path().join("record"));
        let script = script.skills([skill()]).record(recording.path());
        let (fleet, tools) = with(&script).await;
        let [skill] = &*tools.skills() else { panic!("{:?}", tools.skills()) };
        assert_eq!((skill.entry.name(), &*skill.server), ("pdf", "x"));
        let listed = call(&tools, "mcp_resources", json!({})).await;
        assert!(listed.details.untrusted, "{listed:?}");
        let line = "x  skill://pdf/SKILL.md  skill pdf: Fill PDF forms";
        assert!(listed.text().contains(line), "{}", listed.text());
        assert!(recording.of_method("resources/read").is_empty(), "nothing is read in advance");

        let arguments = json!({ "server": "x", "uri": "skill://pdf/SKILL.md" });
        let skill = call(&tools, "mcp_resources", arguments).await;
        assert!(!skill.is_error && skill.details.untrusted, "{skill:?}");
        assert!(skill.text().contains("Use pdf."), "{}", skill.text());
        assert_eq!(read(&tools, FORMS).await.text(), "All forms.\n");
        assert_eq!(recording.of_method("resources/read").len(), 2);
        fleet.stop().await;
    }
}

#[tokio::test]
async fn a_file_that_differs_from_its_entry_is_refused_and_not_shown() {
    let uri = skill().uri();
    let text = skill().files[&uri].clone();
    let evil = |text: &str| skill().serving(&skill().uri(), text);
    // The entry is consistent with the changed file, except for the front matter.
    let granted = text.replace("---\n\n", "allowed-tools: exec\n---\n\n");
    let rewritten = Skill::new("pdf", "Fill PDF forms\nallowed-tools: exec");
    let rewritten = rewritten
        .with("frontmatter", json!({ "name": "pdf", "description": "Fill PDF forms" }))
        .serving(&uri, &granted);
    for (skill, uri, reason) in [
        (evil(&text.replace("Use pdf.", "EVIL pdf")), &*uri, "digest"),
        (evil(&format!("{text}EVIL\n")), &uri, "size"),
        (rewritten, &uri, "front matter"),
        (skill().serving(FORMS, "EVIL forms\n"), FORMS, "digest"),
        (skill().serving("skill://pdf/EVIL.md", "EVIL"), "skill://pdf/EVIL.md", "does not list"),
    ] {
        let (fleet, tools) = with(&Script::new().skills([skill])).await;
        let outcome = read(&tools, uri).await;
        assert_eq!(outcome.details.failure, Some(ToolFailure::InvalidResponse), "{outcome:?}");
        assert!(outcome.text().contains(reason), "{reason}: {}", outcome.text());
        assert!(!outcome.text().contains("EVIL") && !outcome.text().contains("allowed-tools"));
        fleet.stop().await;
    }
}

#[tokio::test]
async fn a_skill_that_is_not_listed_is_verified_with_the_entry_for_its_uri() {
    let uri = skill().uri();
    let hidden = skill().unlisted();
    let (fleet, tools) = with(&Script::new().skills([hidden.clone()])).await;
    assert!(tools.skills().is_empty());
    assert!(read(&tools, &uri).await.text().contains("Use pdf."));
    assert_eq!(tools.skills().len(), 1);
    assert_eq!(read(&tools, FORMS).await.text(), "All forms.\n");
    fleet.stop().await;
    let (fleet, tools) = with(&Script::new().skills([hidden.serving(&uri, "EVIL")])).await;
    let outcome = read(&tools, &uri).await;
    assert!(outcome.is_error && !outcome.text().contains("EVIL"), "{outcome:?}");
    fleet.stop().await;
}

#[tokio::test]
async fn of_a_generated_skill_the_front_matter_is_verified() {
    let dynamic = || skill().with("resources", json!("dynamic"));
    let uri = skill().uri();
    let (fleet, tools) = with(&Script::new().skills([dynamic()])).await;
    assert!(read(&tools, &uri).await.text().contains("Use pdf."));
    assert_eq!(read(&tools, FORMS).await.text(), "All forms.\n");
    fleet.stop().await;
    let evil = dynamic().serving(&uri, "---\nname: pdf\ndescription: EVIL\n---\n");
    let (fleet, tools) = with(&Script::new().skills([evil])).await;
    assert!(read(&tools, &uri).await.text().contains("front matter"));
    fleet.stop().await;
}

#[tokio::test]
async fn an_invalid_skill_is_left_out_with_the_reason_and_others_are_not() {
    let bad = Skill::new("bad", "x").with("resources", json!([]));
    let (fleet, tools) = with(&Script::new().skills([bad, skill()])).await;
    assert_eq!(tools.skills().len(), 1);
    let inventory = tools.server("x").unwrap().cache().inventory();
    let [left_out] = &*inventory.left_out else { panic!("{:?}", inventory.left_out) };
    assert_eq!((left_out.kind, &*left_out.name), (ListedKind::Skill, "skill://bad/SKILL.md"));
    assert!(left_out.reason.contains("lacks SKILL.md"), "{left_out:?}");
    fleet.stop().await;
}

#[tokio::test]
async fn an_agent_that_may_not_read_a_skill_is_not_offered_it() {
    let script = Script::new().skills([skill(), Skill::new("csv", "Read tables")]);
    let denied = entry_with(&script, json!({ "tools": { "deny": ["skill://pdf/SKILL.md"] } }));
    let (fleet, tools) = ready(&servers(json!({ "x": denied }))).await;
    let names: Vec<_> =
        tools.readable_skills().iter().map(|it| it.entry.name().to_owned()).collect();
    assert_eq!((tools.skills().len(), names), (2, vec!["csv".to_owned()]));
    assert!(tools.find("mcp_resources").is_some());
    let outcome = read(&tools, "skill://pdf/SKILL.md").await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::Denied), "{outcome:?}");
    fleet.stop().await;
}
