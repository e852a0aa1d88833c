//! What servers ask for during a call: elicitations, roots, sampling (T10, T11).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_mcp_client::host::{ElicitationAnswer, ElicitationKind, ElicitationRequest, Elicitor};
use openclaw_testkit::{Ask, Script, Tool};
use openclaw_tools::{CallContext, ToolFailure};
use serde_json::json;

use crate::support::{
    assert_nothing_left, call, call_in, config, entry, entry_with, ready, ready_with, servers,
    setup, start, tools,
};

/// Accepts every question.
struct Agreeable;

impl Elicitor for Agreeable {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        assert_eq!(question.server, "x");
        async { ElicitationAnswer::Accept(Some(json!({ "answer": "yes" }))) }.boxed()
    }
}

#[tokio::test]
async fn an_elicitation_reaches_a_user_or_is_declined_without_one() {
    for script in [Script::new().legacy(), Script::new().modern()] {
        let script = script.ask(Ask::Elicitation);
        let config = servers(json!({ "x": entry(&script) }));
        let alone = start(&config);
        alone.tried().await;
        let outcome = call(&tools(&alone), "mcp_x_echo", json!({ "text": "a" })).await;
        assert!(!outcome.rendered().is_empty(), "{outcome:?}");
        alone.stop().await;
        let mut setup = setup();
        setup.context.host.elicitor = Some(Arc::new(Agreeable));
        let (fleet, tools) = ready_with(&config, setup).await;
        let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
        assert!(!outcome.is_error, "{outcome:?}");
        fleet.stop().await;
    }
}

/// Accepts visits to URLs, and records them.
#[derive(Default)]
struct Visitor(Mutex<Vec<ElicitationKind>>);

impl Elicitor for Visitor {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        self.0.lock().unwrap().push(question.wanted);
        async { ElicitationAnswer::Accept(None) }.boxed()
    }
}

#[tokio::test]
async fn a_url_elicitation_reaches_the_user_in_every_version_also_without_an_id() {
    let url = "https://example.com/login?state=1";
    let without_id = json!({ "mode": "url", "message": "Please log in", "url": url });
    for script in [Script::new().legacy(), Script::new().modern()] {
        let script = script.tools([Tool::new("ask"), Tool::new("echo")]);
        let fixed = script.clone().ask(Ask::ElicitationUrl);
        let config = servers(json!({ "x": entry(&script), "y": entry(&fixed) }));
        let elicitor = Arc::new(Visitor::default());
        let mut setup = setup();
        setup.context.host.elicitor = Some(elicitor.clone());
        let (fleet, tools) = ready_with(&config, setup).await;
        let ask = json!({ "method": "elicitation/create", "params": without_id });
        for (tool, arguments) in [("mcp_x_ask", ask), ("mcp_y_echo", json!({ "text": "a" }))] {
            let outcome = call(&tools, tool, arguments).await;
            assert!(outcome.rendered().contains(r#""action":"accept""#), "{outcome:?}");
        }
        let visit = ElicitationKind::Visit(url.to_owned());
        assert_eq!(*elicitor.0.lock().unwrap(), [visit.clone(), visit]);
        fleet.stop().await;
    }
}

/// Takes longer to answer than the timeout of a call.
struct Thoughtful;

impl Elicitor for Thoughtful {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        assert_eq!(question.sessions(), ["here"]);
        async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            ElicitationAnswer::Accept(Some(json!({ "name": "Ada" })))
        }
        .boxed()
    }
}

#[tokio::test]
async fn waiting_for_the_user_extends_the_timeout_up_to_the_cap() {
    for (cap, expected) in [(60_000, None), (3_000, Some(ToolFailure::TimedOut))] {
        let script = Script::new().legacy().ask(Ask::Elicitation);
        let entry = entry_with(&script, json!({ "toolTimeout": 2_000 }));
        let config =
            config(&json!({ "mcp": { "servers": { "x": entry }, "callTimeoutCapMs": cap } }));
        let mut setup = setup();
        setup.context.host.elicitor = Some(Arc::new(Thoughtful));
        let (fleet, tools) = ready_with(&config, setup).await;
        let context = CallContext { session: Some("here"), ..CallContext::by_hand("test") };
        let outcome = call_in(&tools, "mcp_x_echo", json!({ "text": "a" }), &context).await;
        assert_eq!(outcome.details.failure, expected, "{outcome:?}");
        assert_eq!(outcome.rendered().contains("Ada"), expected.is_none(), "{outcome:?}");
        fleet.stop().await;
    }
}

#[tokio::test]
async fn roots_name_the_workspace_of_the_agent_that_calls_and_are_an_error_where_it_has_none() {
    for script in [Script::new().legacy(), Script::new().modern()] {
        let server = entry(&script.ask(Ask::Roots));
        let fleet = start(&config(&json!({
            "mcp": { "servers": { "x": server } },
            "agents": { "list": [
                { "id": "one", "workspace": "/made up/one" },
                { "id": "two", "workspace": "/two" },
                { "id": "none" },
            ] },
        })));
        fleet.tried().await;
        for (agent, named) in [("one", "file:///made%20up/one/"), ("two", "file:///two/")] {
            let tools = fleet.agent(agent).unwrap();
            let said = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await.rendered();
            assert!(said.contains(&format!(r#""uri":"{named}""#)), "{said}");
            assert_eq!(said.matches(r#""uri""#).count(), 1, "{said}");
        }
        let tools = fleet.agent("none").unwrap();
        let said = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await.rendered();
        assert!(!said.contains("uri") && !said.contains("[]"), "{said}");
        fleet.stop().await;
    }
}

#[tokio::test]
async fn sampling_is_declined_and_roots_are_answered() {
    for ask in [Ask::Sampling, Ask::Roots] {
        let script = Script::new().legacy().ask(ask).name("openclaw-tag-fleet-asks");
        let (fleet, tools) = ready(&servers(json!({ "x": entry(&script) }))).await;
        let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
        assert!(!outcome.rendered().is_empty(), "{outcome:?}");
        fleet.stop().await;
    }
    assert_nothing_left("openclaw-tag-fleet-asks").await;
}
