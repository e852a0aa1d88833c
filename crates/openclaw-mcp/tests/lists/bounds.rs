//! Lists that are endless in one way or another.

use std::time::Duration;

use openclaw_mcp::inventory::Inventory;
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp_client::process::ShutdownTimeouts;
use openclaw_mcp_client::wire::{CallError, TimeLimits};
use openclaw_testkit::{Cursor, Script};
use serde_json::json;

use crate::common::until;
use crate::support::{LIMITS, answering, connect, fleet, scripted, server};

#[tokio::test]
async fn bad_entries_are_bounded_like_good_ones() {
    let connection = connect(answering(json!({ "tools/list": [{ "many": 1_000_000 }] }))).await;
    let listing = connection.list_tools(LIMITS).await.unwrap();
    assert_eq!((listing.entries.len(), listing.dropped.len()), (0, 100));
    assert_eq!(listing.more_dropped, 19_900);
    assert_eq!(listing.cut, Some("the list has too many entries"));
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn bad_entries_of_all_pages_count_together() {
    let page = |cursor: &str| json!({ "result": { "tools": [1, 2], "nextCursor": cursor } });
    let pages = json!([{ "many": 19_999 }, page("b"), page("c")]);
    let connection = connect(answering(json!({ "tools/list": pages }))).await;
    let inventory = Inventory::list("test", &connection, LIMITS).await.unwrap();
    // A hundred by name, then the count of the rest, and the truncation.
    let [.., rest, cut] = inventory.left_out.as_slice() else { panic!("no entry was left out") };
    assert_eq!(inventory.left_out.len(), 102);
    assert_eq!(rest.reason, "19900 more are unusable");
    assert_eq!(cut.reason, "the list has too many entries");
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn all_lists_together_have_a_timeout() {
    let endless = Script::new().page_size(1).cursor(Cursor::Endless).list_delay_ms(500);
    let connection = connect(scripted(&endless)).await;
    let limits = TimeLimits { cap: Duration::from_secs(2), ..LIMITS };
    let listed = Inventory::list("test", &connection, limits).await;
    assert!(matches!(listed, Err(CallError::TimedOut(after)) if after == limits.cap), "{listed:?}");
    connection.close(ShutdownTimeouts::default()).await;
}

#[tokio::test]
async fn servers_that_list_forever_do_not_block_others() {
    let slow = Script::new().list_delay_ms(100_000);
    let good = scripted(&Script::new());
    let fleet = fleet(&[("a", scripted(&slow)), ("b", scripted(&slow)), ("z", good)]);
    let good = server(&fleet, "z");
    until(|| good.status().state == ServerState::Ready).await;
    fleet.stop().await;
}
