//! Contents of the audit log.

use std::time::Instant;

use openclaw_secrets::SecretString;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::outcome::{RefusedBy, ToolFailure};

fn call(arguments: &RawValue) -> CallRecord<'_> {
    CallRecord {
        ended: Instant::now(),
        who: "cli",
        agent: Some("main"),
        session: None,
        source: "mcp",
        server: "files",
        tool: "mcp_files_read",
        raw_tool: "read",
        arguments: arguments.get(),
        outcome: AuditOutcome::Ok,
        refused: None,
        duration: Duration::from_micros(1_500),
        result_chars: 12,
        trace: None,
    }
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_call_is_a_line_with_its_arguments_as_a_hash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let audit = Audit::to_file(&path, AuditOptions::default()).unwrap();
    let arguments = raw(r#"{"path": "secret plans"}"#);
    audit.record(&call(&arguments));
    let denied = AuditOutcome::Failed(ToolFailure::Denied);
    let refused = Some(RefusedBy::Policy);
    audit.record(&CallRecord { outcome: denied, refused, session: Some("s1"), ..call(&arguments) });
    assert!(audit.flush().await);
    let mut lines = lines(&path);
    let time = lines[0].as_object_mut().unwrap().remove("time").unwrap();
    let now = crate::clock::Rfc3339(std::time::SystemTime::now()).to_string();
    assert!(*time.as_str().unwrap() <= *now && time.as_str().unwrap()[..4] == now[..4], "{time}");
    assert_eq!(
        lines[0],
        json!({
            "who": "cli", "agent": "main",
            "source": "mcp", "server": "files", "tool": "mcp_files_read", "rawTool": "read", "outcome": "ok",
            "durationMs": 1.5, "resultChars": 12,
            "argumentsSha256": "459daad3abec4eb96a326885ae36638b68251a0e086568138b14a3f261387d02",
        }),
    );
    assert_eq!((&lines[1]["outcome"], &lines[1]["session"]), (&json!("denied"), &json!("s1")));
    assert_eq!(lines[1]["refusedBy"], "policy");
    assert_eq!(lines.len(), 2);
}

#[tokio::test]
async fn arguments_that_are_wanted_are_without_secrets_and_on_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let redactor = Redactor::new();
    redactor.add(&SecretString::from("hunter22"));
    redactor.add(&SecretString::from("12345678"));
    let options = AuditOptions { with_arguments: true, redactor, ..AuditOptions::default() };
    let audit = Audit::to_file(&path, options).unwrap();
    let long = format!(r#"["{}"]"#, "é".repeat(100_000));
    for arguments in ["{\n\"a\": \"hunter22\"}", r#"{"pin": 12345678}"#, &long] {
        audit.record(&call(&raw(arguments)));
    }
    assert!(audit.flush().await);
    let lines = lines(&path);
    assert_eq!(lines[0]["arguments"], json!({"a": "[REDACTED]"}));
    assert_eq!(lines[1]["arguments"], json!(r#"{"pin": [REDACTED]}"#));
    assert!(lines[2]["arguments"].as_str().unwrap().ends_with("é…"));
}

#[tokio::test]
async fn a_full_file_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let options = AuditOptions { max_bytes: 1_000, ..AuditOptions::default() };
    let audit = Audit::to_file(&path, options).unwrap();
    let arguments = raw("{}");
    for _ in 0..20 {
        audit.record(&call(&arguments));
    }
    assert!(audit.flush().await);
    let old = folder.path().join("audit.jsonl.1");
    assert!(lines(&path).len() < 5 && !lines(&old).is_empty());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn programs_that_meet_at_a_full_file_lose_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let before: String = (0..300).map(|number| format!("{{\"before\":{number}}}\n")).collect();
    std::fs::write(&path, &before).unwrap();
    let max_bytes = before.len() as u64 + 100;
    let options = || AuditOptions { max_bytes, ..AuditOptions::default() };
    // All of them open the file before the first one writes.
    let programs: Vec<Audit> = (0..10).map(|_| Audit::to_file(&path, options()).unwrap()).collect();
    let arguments = raw("{}");
    for audit in &programs {
        audit.record(&call(&arguments));
        assert!(audit.flush().await);
    }
    let (older, newer) = (lines(&folder.path().join("audit.jsonl.1")), lines(&path));
    assert_eq!((older.len(), newer.len()), (300, 10));
}

#[tokio::test]
async fn lines_that_come_too_fast_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let audit = Audit::to_file(&path, AuditOptions::default()).unwrap();
    let arguments = raw("{}");
    let count = 50_000;
    for _ in 0..count {
        audit.record(&call(&arguments));
    }
    assert!(audit.flush().await);
    let lines = lines(&path);
    let lost: u64 = lines.iter().filter_map(|line| line["lost"].as_u64()).sum();
    let written = lines.iter().filter(|line| line.get("who").is_some()).count() as u64;
    assert_eq!(lost + written, count);
}

#[tokio::test]
async fn without_a_file_nothing_happens() {
    let audit = Audit::none();
    audit.record(&call(&raw("{}")));
    assert!(audit.flush().await);
    assert!(!audit.is_on());
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_private_and_appended_to() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    for _ in 0..2 {
        let audit = Audit::to_file(&path, AuditOptions::default()).unwrap();
        audit.record(&call(&raw("{}")));
        assert!(audit.flush().await);
    }
    assert_eq!(lines(&path).len(), 2);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
