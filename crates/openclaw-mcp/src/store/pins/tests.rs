//! Tests of approvals and of the detection of changed tools.

use serde_json::{Value, json};

use super::seen::MAX_TOOLS;
use super::*;
use openclaw_mcp_client::listing::ListedTool;

fn key(server: &str) -> ServerKey {
    let identity = serde_json::from_value(json!("1f")).unwrap();
    ServerKey { agent: "main".to_owned(), server: server.to_owned(), identity }
}

fn tool(description: &str, schema: Value) -> ListedTool {
    let Value::Object(input_schema) = schema else { panic!("not an object") };
    ListedTool {
        name: "read".to_owned(),
        title: None,
        description: Some(description.to_owned()),
        input_schema: std::sync::Arc::new(input_schema),
        hints: openclaw_mcp_client::listing::Hints::default(),
        task_support: openclaw_mcp_client::listing::TaskSupport::default(),
        other: openclaw_mcp_client::listing::OtherMembers::default(),
    }
}

fn fingerprint(description: &str) -> ToolFingerprint {
    super::fingerprint(&tool(description, json!({"type": "object"})))
}

/// Approved or seen before, and unchanged.
const SEEN: Pin = Pin::Same { for_good: false };
/// Approved for good.
const ALLOWED: Pin = Pin::Same { for_good: true };

/// A folder, and the file in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pins.json");
    (folder, path)
}

fn start() -> (tempfile::TempDir, PathBuf, Arc<Pins>) {
    let (folder, path) = folder();
    let pins = Arc::new(Pins::load(&path).unwrap());
    (folder, path, pins)
}

/// Checks the tool `read` of the server `files`.
fn check(pins: &Pins, fingerprint: &ToolFingerprint) -> Pin {
    pins.check(&key("files"), "read", fingerprint, Instant::now(), None)
}

fn is_free(pins: &Pins, server: &str, tool: &str, fingerprint: &ToolFingerprint) -> bool {
    pins.check(&key(server), tool, fingerprint, Instant::now(), None) == ALLOWED
}

#[test]
fn the_order_of_keys_does_not_matter_and_all_else_does() {
    let of = |schema| super::fingerprint(&tool("Reads.", schema));
    let one = of(json!({"type": "object", "properties": {"a": {}, "b": {"enum": [1, 2]}}}));
    let other = of(json!({"properties": {"b": {"enum": [1, 2]}, "a": {}}, "type": "object"}));
    assert_eq!(one, other);
    for changed in [
        json!({"type": "object", "properties": {"a": {}, "b": {"enum": [2, 1]}}}),
        json!({"type": "object", "properties": {"a": {}, "b": {"enum": ["1", 2]}}}),
        json!({"type": "object", "properties": {"a": {}, "b": {"enum": [1, 2]}, "c": {}}}),
        json!({}),
    ] {
        assert_ne!(of(changed.clone()), one, "{changed}");
    }
    assert_ne!(fingerprint("Reads."), fingerprint("Reads. Also sends."));
}

#[test]
fn a_fingerprint_round_trips_as_text() {
    let fingerprint = fingerprint("Reads.");
    assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
    for bad in ["", "12", &"x".repeat(64), &"é".repeat(32)] {
        assert_eq!(bad.parse::<ToolFingerprint>(), Err(openclaw_tools::BadFingerprint), "{bad}");
    }
}

#[test]
fn an_approved_tool_stays_the_same_until_it_changes_also_after_a_restart() {
    let (_folder, path, pins) = start();
    let first = fingerprint("Reads.");
    assert_eq!(check(&pins, &first), Pin::New);
    pins.approve(&key("files"), "read", first, None).unwrap();
    for pins in [&*pins, &Pins::load(&path).unwrap()] {
        assert_eq!(check(pins, &first), SEEN);
        assert_eq!(pins.check(&key("other"), "read", &first, Instant::now(), None), Pin::New);
        let pin = check(pins, &fingerprint("Reads. Also sends."));
        assert!(matches!(pin, Pin::Changed), "{pin:?}");
    }
    assert!(pins.forget("files").unwrap() && !pins.forget("files").unwrap());
    assert_eq!(check(&Pins::load(&path).unwrap(), &first), Pin::New);
}

#[test]
fn only_a_permanently_approved_and_unchanged_tool_is_called_without_asking() {
    let (_folder, path, pins) = start();
    let first = fingerprint("Reads.");
    let other = fingerprint("Reads. Also sends.");
    pins.approve(&key("files"), "read", first, None).unwrap();
    assert!(!is_free(&pins, "files", "read", &first));
    pins.approve(&key("files"), "read", first, Some(GrantRule::Tool)).unwrap();
    pins.approve(&key("files"), "read", first, None).unwrap();
    assert!(is_free(&Pins::load(&path).unwrap(), "files", "read", &first));
    assert!(!is_free(&pins, "files", "read", &other));
    pins.approve(&key("files"), "read", other, None).unwrap();
    assert!(!is_free(&pins, "files", "read", &other), "the approval was for the old form");
}

#[test]
fn approvals_of_another_program_are_kept() {
    let (_folder, path, ours) = start();
    let theirs = Pins::load(&path).unwrap();
    theirs.approve(&key("a"), "x", fingerprint("A"), None).unwrap();
    ours.approve(&key("b"), "y", fingerprint("B"), None).unwrap();
    assert_eq!(
        Pins::load(&path).unwrap().check(&key("a"), "x", &fingerprint("A"), Instant::now(), None),
        SEEN
    );
}

#[test]
fn a_corrupt_file_is_set_aside() {
    let (_folder, path) = folder();
    std::fs::write(&path, "{\"version\":2,\"servers\":[{\"a\":").unwrap();
    let pins = Pins::load(&path).unwrap();
    let aside = pins.set_aside().unwrap();
    assert!(std::fs::read_to_string(aside).unwrap().contains("servers"));
    pins.approve(&key("a"), "x", fingerprint("A"), None).unwrap();
    assert_eq!(Pins::load(&path).unwrap().set_aside(), None);
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let (_folder, path) = folder();
    std::fs::write(&path, r#"{"version":3,"servers":[]}"#).unwrap();
    assert_eq!(Pins::load(&path).unwrap_err().kind(), io::ErrorKind::Unsupported);
    assert!(path.exists());
}

#[cfg(unix)]
#[test]
fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_folder, path) = folder();
    Pins::load(&path).unwrap().approve(&key("a"), "x", fingerprint("A"), None).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn approvals_of_another_program_are_seen_without_a_restart() {
    let (_folder, path, ours) = start();
    let theirs = Pins::load(&path).unwrap();
    theirs.approve(&key("files"), "read", fingerprint("Reads."), None).unwrap();
    assert_eq!(check(&ours, &fingerprint("Reads.")), SEEN);
    let changed = fingerprint("Reads. Also sends.");
    for _ in 0..2 {
        assert!(matches!(check(&ours, &changed), Pin::Changed));
    }
    theirs.approve(&key("files"), "read", changed, None).unwrap();
    assert_eq!(check(&ours, &changed), SEEN);
}

#[test]
fn a_file_that_becomes_invalid_changes_nothing() {
    let (_folder, path, pins) = start();
    pins.approve(&key("files"), "read", fingerprint("Reads."), None).unwrap();
    std::fs::write(&path, "nonsense").unwrap();
    let changed = check(&pins, &fingerprint("Reads. Also sends."));
    assert!(matches!(changed, Pin::Changed));
    assert_eq!(check(&pins, &fingerprint("Reads.")), SEEN);
}

#[test]
fn calls_need_not_wait_for_the_disk() {
    let (_folder, _, pins) = start();
    let mut is_locked = true;
    pins.change_if(|_| {
        is_locked = pins.known.try_lock().is_err();
        true
    })
    .unwrap();
    assert!(!is_locked);
}

#[test]
fn waiting_for_the_lock_times_out_with_an_error_that_names_it() {
    let (_folder, path) = folder();
    let mut pins = Pins::load(&path).unwrap();
    pins.patience = Duration::from_millis(20);
    pins.approve(&key("files"), "read", fingerprint("Reads."), None).unwrap();
    let holder = std::fs::File::open(path.with_extension("lock")).unwrap();
    holder.lock().unwrap();
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let approved = pins.approve(&key("files"), "read", fingerprint("Reads. Also sends."), None);
        done.send((pins, approved)).unwrap();
    });
    let (pins, approved) = is_done.recv_timeout(Duration::from_secs(60)).unwrap();
    let error = approved.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().ends_with("pins.lock"), "{error}");
    assert_eq!(check(&pins, &fingerprint("Reads.")), SEEN);
}

#[test]
fn concurrent_approvals_are_all_kept() {
    let (_folder, path, pins) = start();
    let tools: Vec<String> = (0..20).map(|number| format!("tool{number}")).collect();
    std::thread::scope(|scope| {
        for tool in &tools {
            scope.spawn(|| pins.approve(&key("files"), tool, fingerprint("Reads."), None).unwrap());
        }
    });
    for pins in [&*pins, &Pins::load(&path).unwrap()] {
        for tool in &tools {
            assert_eq!(
                pins.check(&key("files"), tool, &fingerprint("Reads."), Instant::now(), None),
                SEEN,
                "{tool}"
            );
        }
    }
}

#[test]
fn abandoned_temporary_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let leave = |name: &str, age: Duration| {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    };
    let hours = |hours: u64| Duration::from_secs(hours * 60 * 60);
    leave(".unfinished-old", hours(2));
    leave(".unfinished-new", hours(0));
    leave("pins-other", hours(2));
    let pins = Pins::load(folder.path().join("pins.json")).unwrap();
    pins.approve(&key("files"), "read", fingerprint("Reads."), None).unwrap();
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".unfinished-new", "pins-other", "pins.json", "pins.lock"]);
}

#[test]
fn a_file_that_another_program_has_repaired_is_not_set_aside() {
    let (_folder, path) = folder();
    let approved =
        Approved { fingerprint: fingerprint("A"), since: 1, always: BTreeSet::default() };
    let tools = BTreeMap::from([("x".to_owned(), approved)]);
    file::write(&path, &BTreeMap::from([(key("a"), tools)])).unwrap();
    let (approvals, aside) = file::set_aside(&path).unwrap();
    assert_eq!((approvals.len(), aside), (1, None));
    assert!(path.exists());
}

#[test]
fn an_empty_file_holds_no_approvals() {
    let (_folder, path) = folder();
    std::fs::write(&path, "").unwrap();
    let pins = Pins::load(&path).unwrap();
    assert_eq!(pins.set_aside(), None);
    assert_eq!(check(&pins, &fingerprint("Reads.")), Pin::New);
}

#[tokio::test]
async fn an_approval_is_valid_while_it_is_being_saved_and_afterwards_only_if_that_succeeded() {
    let (_folder, path, pins) = start();
    let now = fingerprint("Reads.");
    let later = fingerprint("Deletes.");
    let turn = file::take_turn(&path, PATIENCE).unwrap();
    pins.keep(&key("files"), "read", now, Some(GrantRule::Tool));
    assert!(!path.exists());
    assert_eq!(check(&pins, &now), ALLOWED);
    assert!(is_free(&pins, "files", "read", &now) && !is_free(&pins, "files", "read", &later));
    assert!(matches!(check(&pins, &later), Pin::Changed));
    drop(turn);
    pins.saved().await.unwrap();
    assert!(is_free(&pins, "files", "read", &now));
    assert!(is_free(&Pins::load(&path).unwrap(), "files", "read", &now));

    std::fs::remove_file(path.with_extension("lock")).unwrap();
    std::fs::create_dir(path.with_extension("lock")).unwrap();
    pins.keep(&key("files"), "write", now, None);
    pins.saved().await.unwrap_err();
    assert_eq!(pins.check(&key("files"), "write", &now, Instant::now(), None), Pin::New);
}

#[tokio::test]
async fn an_approval_that_cannot_be_saved_is_reported_once() {
    let (_folder, path, pins) = start();
    // A folder cannot be opened as a lock file.
    std::fs::create_dir(path.with_extension("lock")).unwrap();
    pins.keep(&key("files"), "read", fingerprint("Reads."), None);
    let unsaved = pins.saved().await.unwrap_err().to_string();
    let expected = format!("cannot write {}: ", path.display());
    assert!(unsaved.starts_with(&expected), "{unsaved}");
    assert!(pins.saved().await.is_ok(), "reported only once");
}

/// Written by the version before the pipeline.
const EARLIER: &str = r#"{
  "version": 1,
  "servers": {
    "demo": {
      "add": {
        "fingerprint": "f27ccd679d1c54024884d7ed6083d5e2ddebeb4f3657c4c471cdba2ade8694c7",
        "since": 1794866460,
        "for_good": false
      },
      "echo": {
        "fingerprint": "cf4b9a19d4206976eebe50295cae9132ebfebe4afb2a8f313b40bbadea988f29",
        "since": 1794866460,
        "for_good": true
      }
    }
  }
}"#;

#[test]
fn approvals_of_an_earlier_version_are_dropped() {
    let (_folder, path) = folder();
    std::fs::write(&path, EARLIER).unwrap();
    let pins = Pins::load(&path).unwrap();
    let echo = "cf4b9a19d4206976eebe50295cae9132ebfebe4afb2a8f313b40bbadea988f29".parse().unwrap();
    assert_eq!(pins.check(&key("demo"), "echo", &echo, Instant::now(), None), Pin::New);
    assert!(pins.set_aside().is_none());
    pins.approve(&key("demo"), "add", echo, None).unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.contains(r#""version": 2"#) && !written.contains("echo"), "{written}");
}

#[test]
fn a_later_approval_of_the_same_tool_is_valid_until_it_is_saved_itself() {
    let fingerprint = ToolFingerprint::new([7; 32]);
    let approved = |always: Option<GrantRule>| Approved {
        fingerprint,
        since: 1,
        always: always.into_iter().collect(),
    };
    let once = approved(None);
    let always = approved(Some(GrantRule::Tool));
    let mut known = KnownApprovals::default();
    let tools = known.being_saved.entry(key("git")).or_default();
    tools.insert("push".to_owned(), always.clone());
    known.is_done_with(&key("git"), "push", &once);
    let pin = |known: &KnownApprovals| {
        known.pin(&key("git"), "push", &fingerprint, |grant: &GrantRule| *grant == GrantRule::Tool)
    };
    assert_eq!(pin(&known), ALLOWED);
    known.is_done_with(&key("git"), "push", &always);
    assert_eq!(pin(&known), Pin::New);
}

#[test]
fn an_approval_is_for_one_agent_and_one_program() {
    let (_folder, path, pins) = start();
    let it = fingerprint("Reads.");
    pins.approve(&key("files"), "read", it, Some(GrantRule::Tool)).unwrap();
    let other_agent = ServerKey { agent: "night".to_owned(), ..key("files") };
    let identity = serde_json::from_value(json!("2e")).unwrap();
    let other_program = ServerKey { identity, ..key("files") };
    for pins in [&*pins, &Pins::load(&path).unwrap()] {
        assert!(is_free(pins, "files", "read", &it));
        for other in [&other_agent, &other_program, &key("renamed")] {
            assert_eq!(pins.check(other, "read", &it, Instant::now(), None), Pin::New, "{other:?}");
        }
    }
    // An approval of the other program is not one of this program, and the other way around.
    let changed = fingerprint("Reads. Also sends.");
    pins.approve(&other_program, "read", changed, None).unwrap();
    assert!(is_free(&pins, "files", "read", &it));
}

#[test]
fn an_approval_that_another_program_has_revoked_ends() {
    let (_folder, path, pins) = start();
    let it = fingerprint("Reads.");
    pins.approve(&key("files"), "read", it, Some(GrantRule::Tool)).unwrap();
    let now = Instant::now();
    let check = |now| pins.check(&key("files"), "read", &it, now, None);
    assert_eq!(check(now), ALLOWED);
    assert!(Pins::load(&path).unwrap().forget("files").unwrap());
    assert_eq!(check(now), ALLOWED, "the file is not read in every call");
    assert_eq!(check(now + LOOK_EVERY), Pin::New);
}

fn listed(names: impl IntoIterator<Item = String>, description: &str) -> Vec<Arc<ListedTool>> {
    let tool =
        |name| Arc::new(ListedTool { name, ..tool(description, json!({ "type": "object" })) });
    names.into_iter().map(tool).collect()
}

#[tokio::test]
async fn a_tool_is_known_from_its_first_listing_on() {
    let (_folder, path, pins) = start();
    let names = || ["read".to_owned(), "write".to_owned()];
    pins.see(&key("files"), &listed(names(), "Reads."));
    pins.saved().await.unwrap();
    let written = Stamp::of(&path).unwrap();
    // Neither the same tools nor changed ones are written again.
    for description in ["Reads.", "Reads. Also sends."] {
        for pins in [Arc::clone(&pins), Arc::new(Pins::load(&path).unwrap())] {
            pins.see(&key("files"), &listed(names(), description));
            pins.saved().await.unwrap();
            assert_eq!(Stamp::of(&path), Some(written));
            let check = |it: &str| {
                pins.check(&key("files"), "read", &fingerprint(it), Instant::now(), None)
            };
            assert_eq!(check("Reads."), SEEN);
            assert_eq!(check("Reads. Also sends."), Pin::Changed);
        }
    }
}

#[tokio::test]
async fn a_tool_that_changes_before_it_is_saved_is_noticed() {
    let (_folder, path, pins) = start();
    for description in ["Reads.", "Reads. Also sends."] {
        pins.see(&key("files"), &listed(["read".to_owned()], description));
    }
    let changed = fingerprint("Reads. Also sends.");
    assert_eq!(check(&pins, &changed), Pin::Changed);
    pins.saved().await.unwrap();
    assert_eq!(check(&Pins::load(&path).unwrap(), &changed), Pin::Changed);
}

#[tokio::test]
async fn seeing_a_tool_again_keeps_what_was_approved() {
    let (_folder, path, ours) = start();
    let theirs = Pins::load(&path).unwrap();
    let it = fingerprint("Reads.");
    theirs.approve(&key("files"), "read", it, Some(GrantRule::Tool)).unwrap();
    ours.see(&key("files"), &listed(["read".to_owned()], "Reads. Also sends."));
    ours.saved().await.unwrap();
    assert!(is_free(&Pins::load(&path).unwrap(), "files", "read", &it));
    assert!(is_free(&ours, "files", "read", &it));
}

#[tokio::test]
async fn a_server_that_lists_ever_new_tools_fills_a_bounded_space() {
    let (_folder, path, pins) = start();
    let it = fingerprint("Reads.");
    pins.approve(&key("files"), "free", it, Some(GrantRule::Tool)).unwrap();
    for round in 0..3 {
        let names = (0..MAX_TOOLS).map(|number| format!("tool-{round}-{number}"));
        pins.see(&key("files"), &listed(names, "Reads."));
        pins.saved().await.unwrap();
    }
    let now = Pins::load(&path).unwrap();
    assert_eq!(now.known().approvals[&key("files")].len(), MAX_TOOLS);
    assert!(is_free(&now, "files", "free", &it), "what was approved stays");
    let newest = now.check(&key("files"), "tool-2-7", &it, Instant::now(), None);
    assert_eq!(newest, SEEN);
}

#[tokio::test]
async fn tools_that_cannot_be_saved_are_known_until_the_process_exits() {
    let (_folder, path, pins) = start();
    // A folder cannot be opened as a lock file.
    std::fs::create_dir(path.with_extension("lock")).unwrap();
    pins.see(&key("files"), &listed(["read".to_owned()], "Reads."));
    pins.saved().await.unwrap_err();
    let changed = fingerprint("Reads. Also sends.");
    assert_eq!(check(&pins, &changed), Pin::Changed);
}

#[tokio::test]
async fn the_change_of_a_tool_is_shown_until_it_is_approved() {
    let (_folder, path, pins) = start();
    let list = |description: &str| listed(["read".to_owned(), "write".to_owned()], description);
    pins.see(&key("files"), &list("Reads."));
    pins.saved().await.unwrap();
    let changed = &list("Reads. Also sends.")[0];
    let of = |pins: &Pins, server: &str, tool| pins.changes(&key(server), tool).unwrap();
    assert_eq!(of(&pins, "files", changed), ["+ Also sends."]);
    let whole = of(&pins, "other", changed).join("\n");
    assert!(whole.contains("+ Reads.") && whole.contains("+ Also sends."), "{whole}");
    pins.keep(&key("files"), "read", super::fingerprint(changed), None);
    pins.keep_definition(&key("files"), changed);
    pins.saved().await.unwrap();
    let again = Arc::new(Pins::load(&path).unwrap());
    assert_eq!(of(&again, "files", changed), Vec::<String>::new());
    assert_eq!(of(&again, "files", &list("Reads.")[0]), ["- Also sends."]);
}

#[test]
fn approvals_for_later_calls_are_listed_and_revoked() {
    let (_folder, path, pins) = start();
    let by_argument = GrantRule::for_arguments(json!({"repo": "a"}).as_object().unwrap()).unwrap();
    let fingerprint = fingerprint("Pushes.");
    pins.approve(&key("git"), "push", fingerprint, Some(by_argument.clone())).unwrap();
    pins.approve(&key("git"), "pull", fingerprint, None).unwrap();
    let covers = |pins: &Pins, text: &str| {
        let arguments = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        let arguments = Arguments::new(&arguments);
        pins.check(&key("git"), "push", &fingerprint, Instant::now(), Some(&arguments))
    };
    assert_eq!(covers(&pins, r#"{"repo":"a","force":true}"#), ALLOWED);
    assert_eq!(covers(&pins, r#"{"repo":"b"}"#), SEEN);
    let other = Pins::load(&path).unwrap();
    let [rule] = other.rules().try_into().unwrap();
    assert_eq!((rule.tool.as_str(), &rule.grant), ("push", &by_argument));
    assert!(other.revoke(&rule).unwrap() && !other.revoke(&rule).unwrap());
    assert_eq!(pins.rules(), []);
    // It is still known: a change is noticed.
    assert_eq!(covers(&pins, r#"{"repo":"a"}"#), SEEN);
}
