//! Connecting and disconnecting at run time.

use openclaw_testkit::{Script, TestServer};
use serde_json::json;

use crate::support::{ask, config, entry, refused, running, stop};

#[tokio::test]
async fn a_service_is_used_until_it_is_disconnected_and_a_reload_keeps_it() {
    let http = TestServer::http(&Script::new());
    let a = entry(&Script::new());
    let (place, gateway, me) = running(&config(&json!({ "a": a }))).await;
    let params = json!({ "url": http.url(), "server": "extra" });
    let told = ask(&me, "mcp.connect", params.clone()).await;
    assert_eq!((&told["ok"], &told["server"]["name"]), (&json!(true), &json!("extra")));
    let (message, ..) = refused(&me, "mcp.connect", params).await;
    assert_eq!(message, "this URL is already configured, as `extra`");
    let call = json!({ "tool": "mcp_extra_echo", "args": { "text": "hi" } });
    assert_eq!(ask(&me, "mcp.call", call.clone()).await["content"][0]["text"], "hi");
    // The file does not contain it, and another change of the file does not disconnect it.
    place.write(&config(&json!({ "a": a, "b": entry(&Script::new()) })));
    assert_eq!(ask(&me, "mcp.reload", json!({})).await["added"], json!(["b"]));
    assert_eq!(ask(&me, "mcp.call", call.clone()).await["isError"], false);
    let file = std::fs::read_to_string(place.path().join("openclaw.json")).unwrap();
    assert!(!file.contains("extra"), "{file}");
    let told = ask(&me, "mcp.disconnect", json!({ "server": "extra" })).await;
    assert_eq!((&told["ok"], &told["server"]["state"]), (&json!(true), &json!("closed")));
    assert_eq!(refused(&me, "mcp.call", call).await.1, "UNKNOWN_TOOL");
    stop(gateway).await;
}

#[tokio::test]
async fn an_invalid_or_unreachable_server_is_rejected_and_not_kept() {
    let (_place, gateway, me) = running(&config(&json!({ "a": entry(&Script::new()) }))).await;
    for url in [
        "npx some-server",
        "stdio://npx",
        "file:///etc/passwd",
        "http://192.0.2.1/mcp",
        "https://",
        "https://example.com/${HOME}\n",
        "",
    ] {
        let (message, ..) = refused(&me, "mcp.connect", json!({ "url": url, "server": "x" })).await;
        assert!(!message.is_empty(), "{url}");
    }
    let long = format!("https://x.example/{}", "a".repeat(100_000));
    refused(&me, "mcp.connect", json!({ "url": long })).await;
    let nobody = json!({ "url": "http://127.0.0.1:9/mcp", "server": "x" });
    let (message, code, _) = refused(&me, "mcp.connect", nobody).await;
    assert_eq!(code, "SERVER_UNAVAILABLE", "{message}");
    let taken = json!({ "url": "https://x.example/mcp", "server": "a" });
    assert!(refused(&me, "mcp.connect", taken).await.0.contains("already"));
    let told = ask(&me, "mcp.servers", json!({})).await;
    assert_eq!(told["servers"].as_array().unwrap().len(), 1, "{told}");
    stop(gateway).await;
}

#[tokio::test]
async fn a_disconnected_server_stays_off_until_it_is_reconnected_or_its_entry_changes() {
    let (a, b) = (entry(&Script::new()), entry(&Script::new().name("b")));
    let (place, gateway, me) = running(&config(&json!({ "a": a, "b": b }))).await;
    let call = json!({ "server": "a", "tool": "count" });
    ask(&me, "mcp.disconnect", json!({ "server": "a" })).await;
    assert_eq!(ask(&me, "mcp.status", json!({ "server": "a" })).await["state"], "closed");
    let (message, code, hint) = refused(&me, "mcp.call", call.clone()).await;
    assert_eq!((message.as_str(), code.as_str()), ("`a` was disconnected", "SERVER_UNAVAILABLE"));
    assert!(hint.contains("/mcp refresh a"), "{hint}");
    let (message, ..) = refused(&me, "mcp.call", json!({ "tool": "a.count" })).await;
    assert_eq!(message, "`a` was disconnected");
    let told = ask(&me, "status", json!({})).await;
    let servers = told["mcp"]["servers"].as_array().unwrap();
    let off = servers.iter().find(|server| server["name"] == "a").unwrap();
    assert_eq!(off["state"], "closed", "{told}");
    // An unrelated change leaves it off.
    place.write(&config(&json!({ "a": a, "b": entry(&Script::new().name("another")) })));
    assert_eq!(ask(&me, "mcp.reload", json!({})).await["restarted"], json!(["b"]));
    assert_eq!(ask(&me, "mcp.status", json!({ "server": "a" })).await["state"], "closed");
    let told = ask(&me, "mcp.refresh", json!({ "server": "a" })).await;
    assert_eq!((&told["ok"], &told["servers"][0]["tools"]), (&json!(true), &json!(15)));
    assert_eq!(ask(&me, "mcp.call", call.clone()).await["isError"], false);
    ask(&me, "mcp.disconnect", json!({ "server": "a" })).await;
    assert_eq!(ask(&me, "mcp.connect", json!({ "server": "a" })).await["ok"], true);
    ask(&me, "mcp.disconnect", json!({ "server": "a" })).await;
    place.write(&config(&json!({ "a": entry(&Script::new().name("other")), "b": b })));
    ask(&me, "mcp.reload", json!({})).await;
    assert_eq!(ask(&me, "mcp.call", call).await["isError"], false, "its entry has changed");
    stop(gateway).await;
}

#[tokio::test]
async fn the_state_of_logins_is_reported() {
    let http = TestServer::http(&Script::new());
    let servers = json!({
        "a": entry(&Script::new()),
        "remote": { "url": http.url() },
        "broken": { "url": "http://127.0.0.1:9/mcp" },
    });
    let (_place, gateway, me) = running(&config(&servers)).await;
    let login = json!({ "server": "remote" });
    let told = ask(&me, "mcp.auth", login).await;
    assert_eq!(told, json!({ "ok": true, "state": "none" }), "it needs no login");
    let (message, ..) = refused(&me, "mcp.auth", json!({ "server": "a" })).await;
    assert_eq!(message, "`a` is a local server, which needs no login");
    let status = json!({ "server": "broken", "action": "status" });
    assert_eq!(ask(&me, "mcp.auth", status).await["ok"], false);
    // Where no authorization server can be found, no login begins.
    let (message, code, _) = refused(&me, "mcp.auth", json!({ "server": "broken" })).await;
    assert_eq!(code, "SERVER_UNAVAILABLE", "{message}");
    assert!(message.starts_with("cannot log in to `broken`: cannot reach"), "{message}");
    let code = json!({ "server": "remote", "code": "x" });
    let (message, code, hint) = refused(&me, "mcp.auth", code).await;
    assert_eq!(code, "NEEDS_LOGIN", "{message}");
    assert!(hint.contains("openclaw mcp login remote"), "{hint}");
    let (message, ..) =
        refused(&me, "mcp.auth", json!({ "server": "a", "action": "logout" })).await;
    assert_eq!(message, "`a` is a local server, which needs no login");
    stop(gateway).await;
}
