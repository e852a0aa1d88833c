//! Lists of every shape that servers send.

use openclaw_mcp_client::listing::{ListedTool, Listing, tools};
use openclaw_testkit::{Cursor, Script, Tool};

use crate::support::{Connection, LIMITS};

async fn listed(script: &Script) -> Listing<ListedTool> {
    let connection = Connection::open(script).await;
    let listing = tools(&connection.fast, None, LIMITS).await.unwrap();
    connection.close().await;
    listing
}

#[tokio::test]
async fn all_pages_are_read_in_order() {
    let script =
        Script::new().tools((0..25).map(|number| Tool::new(format!("t{number}")))).page_size(10);
    let listing = listed(&script).await;
    let names: Vec<String> = listing.entries.into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, (0..25).map(|number| format!("t{number}")).collect::<Vec<_>>());
    assert_eq!(listing.cut, None);
}

#[tokio::test]
async fn ten_thousand_tools_are_accepted() {
    assert!(
        listed(&Script::new().extra_tools(10_000).page_size(1_000)).await.entries.len() >= 10_000
    );
}

#[tokio::test]
async fn an_endless_list_is_cut() {
    let repeating = listed(&Script::new().page_size(5).cursor(Cursor::Repeating)).await;
    assert_eq!(repeating.cut, Some("the server repeats a page"));
    assert!(!repeating.entries.is_empty());
    let endless = listed(&Script::new().page_size(5).cursor(Cursor::Endless)).await;
    assert!(endless.cut.is_some() && !endless.entries.is_empty(), "{:?}", endless.cut);
}

#[tokio::test]
async fn a_bad_tool_does_not_affect_others() {
    let listing = listed(&Script::new().odd_tools()).await;
    assert!(listing.entries.iter().any(|tool| tool.name == "echo"), "good tools are kept");
    assert!(!listing.dropped.is_empty());
    for dropped in &listing.dropped {
        assert!(dropped.name.chars().count() <= 64 && !dropped.reason.is_empty(), "{dropped:?}");
    }
    let reasons: String = listing.dropped.iter().map(|dropped| dropped.reason.as_str()).collect();
    for reason in
        ["the input schema is not an object", "no input schema", "the entry is not an object"]
    {
        assert!(reasons.contains(reason), "{reasons}");
    }
}
