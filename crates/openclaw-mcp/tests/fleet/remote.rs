//! Remote servers that come and go (L4, T10).

use std::time::Duration;

use openclaw_testkit::{Script, TestServer, Tool};
use serde_json::json;

use crate::support::{servers, start, tools};

#[tokio::test]
async fn a_server_that_was_away_for_a_moment_is_asked_for_its_lists_again() {
    let server = TestServer::http(&Script::new().modern());
    let fleet = start(&servers(json!({ "x": { "url": server.url() } })));
    fleet.tried().await;
    let tools = tools(&fleet);
    assert!(tools.catalogue().get("mcp_x_echo").is_some());
    let port = server.port();
    server.kill();
    let changed = Script::new().modern().tools([Tool::new("brand_new")]);
    let _server = TestServer::http_on(port, &changed);
    let listed = async {
        while tools.catalogue().get("mcp_x_brand_new").is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), listed).await.unwrap();
    fleet.stop().await;
}

#[tokio::test]
async fn a_server_that_refuses_a_key_says_which_setting_it_came_from() {
    let server = TestServer::http(&Script::new().bearer("sesame", None));
    let (url, wrong) = (server.url(), "wr0ng-key-0123456789");
    let fleet = start(&servers(json!({
        "plain": { "url": url, "apiKey": wrong },
        "header": { "url": url, "headers": { "Authorization": format!("Bearer {wrong}") } },
        "none": { "url": url },
    })));
    fleet.tried().await;
    let said = |name: &str| {
        let trouble = tools(&fleet).server(name).unwrap().status().last_error.unwrap();
        format!("{} / {}", trouble.message, trouble.hint.unwrap())
    };
    let (plain, header, none) = (said("plain"), said("header"), said("none"));
    assert!(plain.contains("refuses the key") && plain.contains("`apiKey`"), "{plain}");
    assert!(header.contains("`headers.Authorization`"), "{header}");
    assert!(none.contains("wants authorization") && none.contains("set `apiKey`"), "{none}");
    assert!(!format!("{plain}{header}").contains(wrong));
    fleet.stop().await;
}
