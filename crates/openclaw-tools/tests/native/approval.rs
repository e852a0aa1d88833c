//! Approvals and argument checks of native tools.

use openclaw_tools::native::{Approvals, Native, NativeTools, Setup};
use openclaw_tools::{
    Approval, ApprovalNeed, ApprovalReason, ApprovalRule, Arguments, Decision, Failure, Policy,
    RefusedBy, Rules, ToolSource as _, pipeline,
};
use serde_json::json;
use serde_json::value::RawValue;

use crate::Bench;

fn standing(bench: &Bench, tool: &str) -> ApprovalNeed {
    let nothing = RawValue::from_string("{}".to_owned()).unwrap();
    pipeline::standing(&*bench.tools.find(tool).unwrap(), &Arguments::new(&nothing))
}

#[tokio::test]
async fn what_only_looks_is_free_and_the_rest_is_asked_about() {
    let bench = Bench::new();
    for tool in ["read", "list", "web_fetch"] {
        assert_eq!(standing(&bench, tool), ApprovalNeed::Free, "{tool}");
    }
    for tool in ["write", "edit", "exec"] {
        assert_eq!(standing(&bench, tool), ApprovalNeed::Ask(ApprovalReason::MayChange), "{tool}");
    }
    let asked = json!({"path": "a.txt", "content": "x"});
    let outcome = bench.call_as("write", asked, None).await;
    assert_eq!(outcome.details.failure, Some(Failure::Denied));
    assert_eq!(outcome.details.refused, Some(RefusedBy::NobodyToAsk));
    assert!(outcome.is_error && outcome.text().contains("needs the user's approval"));
    assert!(!bench.path("a.txt").exists());
    let outcome = bench.call_as("exec", json!({"command": "echo x > b.txt"}), None).await;
    assert_eq!(outcome.details.failure, Some(Failure::Denied));
    assert!(!bench.path("b.txt").exists());
}

#[tokio::test]
async fn consent_to_one_call_does_not_last_and_consent_for_good_does() {
    let approvals = Approvals::default();
    let bench = Bench::with(|setup| Setup { approvals: approvals.clone(), ..setup });
    let asked = || json!({"path": "a.txt", "content": "x"});
    assert!(!bench.call_as("write", asked(), Some(Approval::Once)).await.is_error);
    assert_eq!(standing(&bench, "write"), ApprovalNeed::Ask(ApprovalReason::MayChange));
    assert!(!bench.call_as("write", asked(), Some(Approval::Always)).await.is_error);
    assert_eq!(standing(&bench, "write"), ApprovalNeed::Free);
    assert!(!bench.call_as("write", asked(), None).await.is_error);
    assert_eq!(standing(&bench, "exec"), ApprovalNeed::Ask(ApprovalReason::MayChange));
    approvals.forget("write");
    assert_eq!(standing(&bench, "write"), ApprovalNeed::Ask(ApprovalReason::MayChange));
}

#[tokio::test]
async fn the_rule_may_be_to_ask_each_time_or_never() {
    let bench = Bench::with(|setup| Setup { approval: ApprovalRule::Always, ..setup });
    let asked = || json!({"path": "."});
    assert_eq!(standing(&bench, "list"), ApprovalNeed::Ask(ApprovalReason::EachTime));
    assert!(!bench.call_as("list", asked(), Some(Approval::Always)).await.is_error);
    assert_eq!(standing(&bench, "list"), ApprovalNeed::Ask(ApprovalReason::EachTime));
    assert!(bench.call_as("list", asked(), None).await.is_error);

    let bench = Bench::with(|setup| Setup { approval: ApprovalRule::Never, ..setup });
    assert_eq!(standing(&bench, "exec"), ApprovalNeed::Free);
}

#[test]
fn a_tool_that_is_denied_is_not_offered_and_one_that_is_not_enabled_is_not_there() {
    let deny = ["e*".to_owned()];
    let policy = Policy::new([Rules { place: "tools", allow: None, deny: &deny }]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let enabled = Native::ALL.into_iter().filter(|it| *it != Native::Write).collect();
    let setup = Setup { policy, enabled, ..Setup::new(folder.path()) };
    let tools = NativeTools::new(setup).unwrap();
    let names: Vec<_> = tools.tools().iter().map(|it| it.spec().name.to_string()).collect();
    assert_eq!(names, ["list", "read", "web_fetch"]);
    assert!(tools.find("write").is_none());
    for name in ["edit", "exec"] {
        let denied = Decision::Denied { by: "tools.deny".to_owned() };
        assert_eq!(*tools.find(name).unwrap().decision(), denied);
    }
}

#[test]
fn without_a_workspace_there_are_no_tools() {
    let folder = tempfile::tempdir().unwrap();
    let error = NativeTools::new(Setup::new(folder.path().join("gone"))).unwrap_err();
    let words = error.to_string();
    assert!(
        words.starts_with("cannot open the workspace ") && words.contains("/gone: "),
        "{words}"
    );
}

#[tokio::test]
async fn invalid_arguments_are_reported_and_nothing_is_done() {
    let bench = Bench::new();
    for (tool, arguments, words) in [
        ("read", json!({}), "missing argument \"path\""),
        ("read", json!({"path": 5}), "/path must be a string"),
        ("read", json!({"path": ""}), "/path must have at least 1"),
        ("read", json!({"path": "x".repeat(1_000_000)}), "/path must have at most 4096"),
        ("read", json!({"path": "a", "offset": 0}), "/offset must be at least 1"),
        ("write", json!({"path": "a", "content": "x", "mode": 7}), "must not have"),
        ("list", json!([]), "must be an object"),
        ("exec", json!({"command": "true", "timeout_ms": -1}), "/timeout_ms must be at least 1"),
    ] {
        let outcome = bench.call(tool, arguments).await;
        assert_eq!(outcome.details.failure, Some(Failure::InvalidArguments), "{tool}");
        assert!(outcome.rendered().contains(words), "{}", outcome.rendered());
    }
    let nulls = json!({"path": null, "depth": null});
    assert!(!bench.call("list", nulls).await.is_error);
}
