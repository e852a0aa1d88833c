//! Approvals and argument checks of native tools.

use openclaw_tools::native::{Approvals, ExecSettings, Native, NativeSetup, NativeTools};
use openclaw_tools::{
    ApprovalContext, ApprovalExtent, ApprovalNeed, ApprovalReason, ApprovalRule, Arguments,
    Decision, GrantRule, Policy, RefusedBy, Rules, ToolFailure, ToolSource as _, pipeline,
};
use serde_json::json;
use serde_json::value::RawValue;

use crate::Bench;

fn standing(bench: &Bench, tool: &str) -> ApprovalNeed {
    let nothing = RawValue::from_string("{}".to_owned()).unwrap();
    pipeline::approval_need(&*bench.tools.find(tool).unwrap(), &Arguments::new(&nothing), None)
}

#[tokio::test]
async fn what_only_looks_is_free_and_the_rest_is_asked_about() {
    let bench = Bench::new();
    for tool in ["read", "list"] {
        assert_eq!(standing(&bench, tool), ApprovalNeed::Free, "{tool}");
    }
    for tool in ["write", "edit", "exec", "web_fetch"] {
        assert_eq!(standing(&bench, tool), ApprovalNeed::Ask(ApprovalReason::MayChange), "{tool}");
    }
    let asked = json!({"path": "a.txt", "content": "x"});
    let outcome = bench.call_as("write", asked, None).await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::Denied));
    assert_eq!(outcome.details.refused, Some(RefusedBy::NobodyToAsk));
    assert!(outcome.is_error && outcome.text().contains("needs the user's approval"));
    assert!(!bench.path("a.txt").exists());
    let outcome = bench.call_as("exec", json!({"command": "echo x > b.txt"}), None).await;
    assert_eq!(outcome.details.failure, Some(ToolFailure::Denied));
    assert!(!bench.path("b.txt").exists());
}

#[tokio::test]
async fn consent_to_one_call_does_not_last_and_consent_for_good_does() {
    let approvals = Approvals::default();
    let bench = Bench::with(|setup| NativeSetup { approvals: approvals.clone(), ..setup });
    let asked = || json!({"path": "a.txt", "content": "x"});
    assert!(!bench.call_as("write", asked(), Some(ApprovalExtent::Once)).await.is_error);
    assert_eq!(standing(&bench, "write"), ApprovalNeed::Ask(ApprovalReason::MayChange));
    assert!(
        !bench
            .call_as("write", asked(), Some(ApprovalExtent::Always(GrantRule::Tool)))
            .await
            .is_error
    );
    assert_eq!(standing(&bench, "write"), ApprovalNeed::Free);
    assert!(!bench.call_as("write", asked(), None).await.is_error);
    assert_eq!(standing(&bench, "exec"), ApprovalNeed::Ask(ApprovalReason::MayChange));
    let [given] = approvals.list().try_into().unwrap();
    assert_eq!((given.tool.as_str(), &given.grant), ("write", &GrantRule::Tool));
    assert!(approvals.forget(&given).unwrap());
    assert_eq!(standing(&bench, "write"), ApprovalNeed::Ask(ApprovalReason::MayChange));
}

/// Settings with a search path, without which no program is known to be harmless.
fn exec() -> ExecSettings {
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    ExecSettings { environment: vec![path], ..ExecSettings::default() }
}

/// Whether a command needs an approval.
async fn is_asked_about(bench: &Bench, command: &str) -> bool {
    let outcome = bench.call_as("exec", json!({ "command": command }), None).await;
    outcome.details.refused == Some(RefusedBy::NobodyToAsk)
}

#[cfg(unix)]
#[tokio::test]
async fn always_for_a_command_allows_that_command_for_that_agent_in_that_workspace() {
    let approvals = Approvals::default();
    let of = |agent: &str| {
        let (agent, approvals) = (agent.to_owned(), approvals.clone());
        Bench::with(|setup| NativeSetup { agent, approvals, exec: exec(), ..setup })
    };
    let (bench, other_workspace) = (of("main"), of("main"));
    let always = |grant| Some(ApprovalExtent::Always(grant));
    let echo = || GrantRule::Command("echo a".to_owned());
    let asked = || json!({"command": "echo a"});
    assert!(!bench.call_as("exec", asked(), always(echo())).await.is_error);
    assert!(!is_asked_about(&bench, "echo a").await);
    for other in ["echo b", "echo a; echo b", "echo a b", " echo a"] {
        assert!(is_asked_about(&bench, other).await, "{other}");
    }
    assert!(is_asked_about(&other_workspace, "echo a").await);
    let same_workspace = NativeSetup {
        agent: "night".to_owned(),
        approvals: approvals.clone(),
        exec: exec(),
        ..NativeSetup::new(bench.path("").join("."))
    };
    let night = Bench { tools: NativeTools::new(same_workspace).unwrap(), ..of("night") };
    assert!(is_asked_about(&night, "echo a").await);

    let prefix = GrantRule::CommandPrefix(vec!["echo".to_owned()]);
    assert!(!bench.call_as("exec", asked(), always(prefix)).await.is_error);
    assert!(is_asked_about(&bench, "printf b").await);
    let prefix = GrantRule::CommandPrefix(vec!["printf".to_owned()]);
    let printf = json!({"command": "printf b"});
    assert!(!bench.call_as("exec", printf, always(prefix)).await.is_error);
    assert!(!is_asked_about(&bench, "printf 'b; c'").await);
    for other in ["printf b; touch x", "printf b > x", "printfx b", "printf \"$(touch x)\""] {
        assert!(is_asked_about(&bench, other).await, "{other}");
    }
    assert!(!bench.path("x").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn only_an_offered_approval_can_be_given() {
    let approvals = Approvals::default();
    let bench = Bench::with(|setup| NativeSetup { approvals: approvals.clone(), ..setup });
    for broader in [
        GrantRule::Tool,
        GrantRule::Command("echo b".to_owned()),
        GrantRule::CommandPrefix(Vec::new()),
        GrantRule::CommandPrefix(vec!["printf".to_owned()]),
    ] {
        let asked = json!({"command": "echo a"});
        assert!(
            !bench.call_as("exec", asked, Some(ApprovalExtent::Always(broader))).await.is_error
        );
        assert_eq!(approvals.list(), []);
    }
}

#[cfg(unix)]
#[test]
fn what_always_allows_is_said_exactly() {
    let bench = Bench::with(|setup| NativeSetup { exec: exec(), ..setup });
    let folder = bench.path("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let offered = |tool: &str, arguments: serde_json::Value| {
        let arguments = RawValue::from_string(arguments.to_string()).unwrap();
        let arguments = &Arguments::new(&arguments);
        let now = tokio::time::Instant::now();
        let about = ApprovalContext { arguments, session: None, now };
        let offered = bench.tools.find(tool).unwrap().always(about);
        offered.into_iter().map(|option| option.words).collect::<Vec<_>>()
    };
    let words = |what: &str| {
        format!("always allow {what} in {folder} for agent main, until openclaw exits")
    };
    assert_eq!(
        offered("exec", json!({"command": "ls -l src"})),
        [
            words("the command `ls -l src`"),
            words("every harmless command that begins with `ls -l`"),
            words("every harmless `ls` command"),
        ]
    );
    let git = offered("exec", json!({"command": "git status"}));
    assert_eq!(git, [words("the command `git status`")]);
    let hidden = json!({"command": "ls\u{1b}[8m; rm -rf ~"});
    assert_eq!(offered("exec", hidden), [words("exactly this command")]);
    assert_eq!(offered("write", json!({})), [words("`write`")]);
    let page = json!({"url": "https://Docs.rs:8443/x?y"});
    assert_eq!(
        offered("web_fetch", page),
        ["allow `web_fetch` from docs.rs:8443 in this session for agent main"]
    );
}

#[tokio::test]
async fn the_rule_may_be_to_ask_each_time_or_never() {
    let bench = Bench::with(|setup| NativeSetup { approval: ApprovalRule::Always, ..setup });
    let asked = || json!({"path": "."});
    assert_eq!(standing(&bench, "list"), ApprovalNeed::Ask(ApprovalReason::EachTime));
    assert!(
        !bench
            .call_as("list", asked(), Some(ApprovalExtent::Always(GrantRule::Tool)))
            .await
            .is_error
    );
    assert_eq!(standing(&bench, "list"), ApprovalNeed::Ask(ApprovalReason::EachTime));
    assert!(bench.call_as("list", asked(), None).await.is_error);

    let bench = Bench::with(|setup| NativeSetup { approval: ApprovalRule::Never, ..setup });
    assert_eq!(standing(&bench, "exec"), ApprovalNeed::Free);
}

#[test]
fn a_tool_that_is_denied_is_not_offered_and_one_that_is_not_enabled_is_not_there() {
    let deny = ["e*".to_owned()];
    let policy = Policy::new([Rules { place: "tools", allow: None, deny: &deny }]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let enabled = Native::ALL.into_iter().filter(|it| *it != Native::Write).collect();
    let setup = NativeSetup { policy, enabled, ..NativeSetup::new(folder.path()) };
    let tools = NativeTools::new(setup).unwrap();
    let names: Vec<_> = tools.tools().iter().map(|it| it.spec().name.to_string()).collect();
    assert_eq!(names, ["list", "read", "update_plan", "web_fetch"]);
    assert!(tools.find("write").is_none());
    for name in ["edit", "exec"] {
        let denied = Decision::Denied { by: "tools.deny".to_owned() };
        assert_eq!(*tools.find(name).unwrap().decision(), denied);
    }
}

#[test]
fn without_a_workspace_there_are_no_tools() {
    let folder = tempfile::tempdir().unwrap();
    let error = NativeTools::new(NativeSetup::new(folder.path().join("gone"))).unwrap_err();
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
        ("read", json!({}), "missing argument `path`"),
        ("read", json!({"path": 5}), "/path must be a string"),
        ("read", json!({"path": ""}), "/path must have at least 1"),
        ("read", json!({"path": "x".repeat(1_000_000)}), "/path must have at most 4096"),
        ("read", json!({"path": "a", "offset": 0}), "/offset must be at least 1"),
        ("write", json!({"path": "a", "content": "x", "mode": 7}), "unknown argument `mode`"),
        ("list", json!([]), "must be an object"),
        ("exec", json!({"command": "true", "timeout_ms": -1}), "/timeout_ms must be at least 1"),
    ] {
        let outcome = bench.call(tool, arguments).await;
        assert_eq!(outcome.details.failure, Some(ToolFailure::InvalidArguments), "{tool}");
        assert!(outcome.rendered().contains(words), "{}", outcome.rendered());
    }
    let nulls = json!({"path": null, "depth": null});
    assert!(!bench.call("list", nulls).await.is_error);
}
