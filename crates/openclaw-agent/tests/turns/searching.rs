//! More tools than a model should be offered (B12).

use openclaw_agent::{LoopEvent, SEARCH_TOOL};
use openclaw_models::scripted::ScriptedTurn as Says;
use openclaw_models::{ModelRequest, Part};

use crate::support::{Bench, TestTool, system};

fn offered(request: &ModelRequest) -> Vec<String> {
    request.tools.iter().map(|tool| tool.name.clone()).collect()
}

async fn bench(says: impl IntoIterator<Item = Says>) -> Bench {
    let mut bench = Bench::new(says).await;
    for nth in 0..30 {
        bench = bench.tool(TestTool::saying(&format!("mcp_x_tool{nth}"), "done"));
    }
    bench = bench.tool(TestTool::saying("mcp_sea_weather", "windy"));
    bench.agent.limits.search_threshold = 30;
    bench
}

#[tokio::test]
async fn a_model_with_too_many_tools_gets_an_index_finds_what_it_needs_and_keeps_it() {
    let bench = bench([
        Says::calls(&[(SEARCH_TOOL, r#"{"query":"weather"}"#)]),
        Says::calls(&[("mcp_sea_weather", "{}")]),
        Says::says("windy"),
        Says::says("again"),
    ])
    .await;
    assert_eq!(bench.say("how is the weather?").await.text, "windy");
    let requests = bench.model.requests();
    assert_eq!(offered(&requests[0]), [SEARCH_TOOL]);
    assert!(system(&requests[0]).contains("- mcp_sea_weather"), "{}", system(&requests[0]));
    assert!(!system(&requests[0]).contains("schema of"), "names only");
    assert_eq!(offered(&requests[1]), ["mcp_sea_weather", SEARCH_TOOL]);
    assert!(!system(&requests[1]).contains("- mcp_sea_weather"), "it is offered now");
    let found = match &*requests[1].messages[2] {
        openclaw_models::Message::Tool { results } => results[0].clone(),
        other => panic!("{other:?}"),
    };
    let Part::Text(text) = &found.parts[1] else { panic!("{found:?}") };
    assert!(text.is_outside());
    let inner = text.expose();
    assert!(inner.contains("schema of mcp_sea_weather") && !inner.contains("tool7"), "{inner}");
    // Users see the same without the boundary.
    let seen = bench.seen.lock().unwrap().iter().find_map(|event| match event {
        LoopEvent::CallEnded(call) if call.name == SEARCH_TOOL => Some(call.text.clone()),
        _ => None,
    });
    let seen = seen.unwrap();
    assert!(seen.ends_with(inner) && !seen.contains("EXTERNAL_UNTRUSTED"), "{seen}");
    // In the next turn it need not be searched for again.
    bench.say("and tomorrow?").await;
    assert_eq!(offered(&bench.model.requests()[3]), ["mcp_sea_weather", SEARCH_TOOL]);
}

#[tokio::test]
async fn a_search_without_results_or_with_invalid_arguments_says_so() {
    let calls = [(SEARCH_TOOL, r#"{"query":"submarine"}"#), (SEARCH_TOOL, "{}")];
    let bench = bench([Says::calls(&calls), Says::says("no")]).await;
    bench.say("is there a submarine?").await;
    let results = bench.results();
    assert!(!results[0].is_error && crate::support::text(&results[0]).contains("No tool matches"));
    assert!(results[1].is_error, "{results:?}");
    assert_eq!(offered(&bench.model.requests()[1]), [SEARCH_TOOL]);
}

#[tokio::test]
async fn up_to_the_threshold_and_with_none_a_model_sees_all_tools() {
    let mut bench = bench([Says::says("one"), Says::says("two")]).await;
    for threshold in [31, 0] {
        bench.agent.limits.search_threshold = threshold;
        bench.say("hello").await;
        let request = bench.model.requests().pop().unwrap();
        assert_eq!(request.tools.len(), 31);
        assert!(!system(&request).contains(SEARCH_TOOL));
    }
}
