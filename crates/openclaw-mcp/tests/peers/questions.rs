//! Messages that servers initiate: elicitations, roots, changed lists, progress.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join};
use openclaw_mcp::call::completion::CompletionOf;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp_client::host::{
    ElicitationAnswer, ElicitationKind, ElicitationRequest, Elicitor, Host,
};
use openclaw_testkit::{FastMcp, Peers};
use openclaw_tools::{CallContext, CallOptions, Progress, ProgressWatcher};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::common::until;
use crate::support::{Yard, assert_result, by_hand, call, ready, servers, setup, within};

/// Timeout in milliseconds of a call without progress: enough for a busy machine, and less than the
/// long calls take.
const SHORT: u32 = 15_000;

/// A user who fills in every form alike, and records the questions.
#[derive(Default)]
struct Ada(Mutex<Vec<ElicitationRequest>>);

impl Elicitor for Ada {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        let ElicitationKind::Form(schema) = &question.wanted else { panic!("{question:?}") };
        let values = [("name", json!("Ada")), ("age", json!(36)), ("colour", json!("red"))];
        let wanted = |name: &str| schema["properties"].get(name).is_some();
        let values: Value = values
            .into_iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<serde_json::Map<_, _>>()
            .into();
        self.0.lock().unwrap().push(question);
        async { ElicitationAnswer::Accept(Some(values)) }.boxed()
    }
}

impl Ada {
    /// Returns the servers and messages of the questions.
    fn was_asked(&self) -> Vec<(String, String)> {
        let questions = self.0.lock().unwrap();
        questions.iter().map(|it| (it.server.clone(), it.message.clone())).collect()
    }
}

/// Returns the folders of the filesystem server, once it has requested the roots.
async fn until_given(tools: &AgentTools, given: &str) -> String {
    within(async {
        loop {
            let said =
                call(tools, "mcp_files_list_allowed_directories", json!({})).await.rendered();
            if said.contains(given) {
                return said;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

/// Makes a call that exceeds its timeout, but reports progress.
async fn assert_given_time(tools: &AgentTools, server: &str, tool: &str, long: Value) {
    let outcome = call(tools, &format!("mcp_{server}_{tool}"), long).await;
    assert_result(&outcome, server, "");
}

#[tokio::test]
async fn node_servers_elicit_request_roots_and_report_changes_and_progress() {
    let (peers, yard) = (Peers::find(), Yard::new());
    let remote = spawn_blocking(|| Peers::find().everything_http()).await.unwrap();
    let (named, given) = (yard.folder("named"), yard.folder("given"));
    let mut local = yard.entry("local", &peers.everything());
    local["toolTimeout"] = json!(SHORT);
    let mut files = yard.entry("files", &peers.filesystem(&named));
    local["roots"] = json!(true);
    files["roots"] = json!(true);
    let config = servers(&json!({
        "local": local,
        "remote": { "url": remote.url(), "timeout": 120_000, "toolTimeout": SHORT, "roots": true },
        "files": files,
    }));
    let elicitor = Arc::new(Ada::default());
    let workspace = Some(given.clone());
    let host = Host { elicitor: Some(elicitor.clone()), workspace, ..Host::default() };
    let (fleet, tools) = ready(&config, setup(host)).await;

    let given = given.to_str().unwrap();
    let folders = until_given(&tools, given).await;
    assert!(!folders.contains(named.to_str().unwrap()), "{folders}");

    for server in ["local", "remote"] {
        // It offers these only to clients with the capability, and announces them after the
        // handshake.
        let [roots, ask] = ["get-roots-list", "trigger-elicitation-request"]
            .map(|tool| format!("mcp_{server}_{tool}"));
        until(|| tools.catalogue().get(&ask).is_some()).await;
        assert_result(&call(&tools, &roots, json!({})).await, server, given);
        assert_result(&call(&tools, &ask, json!({})).await, server, "- Name: Ada");

        let new = "demo://resource/session/new.gz";
        let is_listed =
            || tools.resources().iter().any(|of| of.server == server && of.entry.uri == new);
        assert!(!is_listed());
        let content = json!({ "name": "new.gz", "data": "data:text/plain,hello" });
        let made = call(&tools, &format!("mcp_{server}_gzip-file-as-resource"), content).await;
        assert_result(&made, server, new);
        until(is_listed).await;
    }
    let message = "Please provide inputs for the following fields:".to_owned();
    let asked = ["local", "remote"].map(|server| (server.to_owned(), message.clone()));
    assert_eq!(elicitor.was_asked(), asked);

    let (tool, long) = ("trigger-long-running-operation", json!({ "duration": 18, "steps": 36 }));
    join(
        assert_given_time(&tools, "local", tool, long.clone()),
        assert_given_time(&tools, "remote", tool, long),
    )
    .await;
    within(fleet.stop()).await;
    yard.assert_nothing_left(&["local", "files"]);
}

/// A user who picks the first choice.
struct First;

impl Elicitor for First {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        let ElicitationKind::Form(schema) = &question.wanted else { panic!("{question:?}") };
        let choice = schema["properties"]["interpretation"]["oneOf"][0]["const"].clone();
        async move { ElicitationAnswer::Accept(Some(json!({ "interpretation": choice }))) }.boxed()
    }
}

#[tokio::test]
async fn node_servers_execute_tasks_with_progress_and_input_and_complete_arguments() {
    let (peers, yard) = (Peers::find(), Yard::new());
    let remote = spawn_blocking(|| Peers::find().everything_http()).await.unwrap();
    let config = servers(&json!({
        "local": yard.entry("local", &peers.everything()),
        "remote": { "url": remote.url(), "timeout": 120_000 },
    }));
    let host = Host { elicitor: Some(Arc::new(First)), ..Host::default() };
    let (fleet, tools) = ready(&config, setup(host)).await;
    for server in ["local", "remote"] {
        let name = format!("mcp_{server}_simulate-research-query");
        let (watcher, mut progress) = ProgressWatcher::channel();
        let options = CallOptions { watcher: Some(&watcher), ..CallOptions::default() };
        let context = CallContext { options, ..by_hand() };
        let arguments = RawValue::from_string(json!({ "topic": "otters" }).to_string()).unwrap();
        let watched = async {
            // Which of its stages a poll meets depends on the load of the machine.
            let is_told =
                |it: &Option<Progress>| it.as_ref().is_some_and(|it| it.message.is_some());
            within(progress.wait_for(is_told)).await.unwrap();
        };
        let (plain, ()) = join(within(tools.call(&name, &arguments, &context)), watched).await;
        assert_result(&plain, server, "# Research Report: otters\n");
        let ambiguous = json!({ "topic": "python", "ambiguous": true });
        let clarified = call(&tools, &name, ambiguous).await;
        assert_result(&clarified, server, "# Research Report: python (programming)");
    }
    let of = CompletionOf::Prompt("completable-prompt");
    let given = BTreeMap::from([("department".to_owned(), "Sales".to_owned())]);
    for server in ["local", "remote"] {
        let completed = tools.complete(server, of, ("name", "E"), &given, None).await.unwrap();
        assert_eq!(completed.values, ["Eve"]);
    }
    within(fleet.stop()).await;
    yard.assert_nothing_left(&["local"]);
}

#[tokio::test]
async fn python_servers_elicit_in_both_eras_and_report_progress() {
    let (peers, yard) = (Peers::find(), Yard::new());
    let remote =
        spawn_blocking(|| [FastMcp::Sse, FastMcp::Http].map(|it| Peers::find().fastmcp_http(it)));
    let [sse, http] = remote.await.unwrap();
    let mut local = yard.entry("local", &peers.fastmcp());
    local["toolTimeout"] = json!(SHORT);
    let config = servers(&json!({
        "local": local,
        "sse": { "url": sse.url(), "timeout": 120_000, "toolTimeout": SHORT },
        "http": { "url": http.url(), "timeout": 120_000, "toolTimeout": SHORT },
    }));
    let elicitor = Arc::new(Ada::default());
    let host = Host { elicitor: Some(elicitor.clone()), ..Host::default() };
    let (fleet, tools) = ready(&config, setup(host)).await;

    let by_request = call(&tools, "mcp_sse_ask", json!({})).await;
    assert_result(&by_request, "sse", "Ada is 36");
    for server in ["local", "http"] {
        let by_result = call(&tools, &format!("mcp_{server}_ask_by_result"), json!({})).await;
        assert_result(&by_result, server, "red after the first round");
    }
    let asked = [("sse", "Who are you?"), ("local", "Which colour?"), ("http", "Which colour?")];
    assert_eq!(elicitor.was_asked(), asked.map(|(who, what)| (who.to_owned(), what.to_owned())));

    let long = json!({ "steps": 36, "milliseconds": 500 });
    let patient = ["local", "sse", "http"]
        .map(|server| assert_given_time(&tools, server, "slow", long.clone()));
    futures_util::future::join_all(patient).await;
    within(fleet.stop()).await;
    yard.assert_nothing_left(&["local"]);
}
