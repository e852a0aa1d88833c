//! A configuration that changes while the gateway runs (C9).

use std::time::Duration;

use openclaw_gateway::serve::serve;
use openclaw_testkit::Script;
use serde_json::json;
use tokio::time::timeout;

use crate::support::{
    KEY, LONG, Place, Someone, assert_nothing_left, config, entry, entry_with, text,
};

/// The process of a server.
async fn pid(someone: &Someone, server: &str) -> String {
    let params = json!({ "name": format!("mcp_{server}_pids"), "args": {}, "confirm": true });
    let made = someone.ask("tools.invoke", params).await.unwrap();
    assert_eq!(made["ok"], true, "{made}");
    let shown = text(&json!({ "message": made["output"] }));
    let begin = shown.find("\"server\":").unwrap() + "\"server\":".len();
    shown[begin..].chars().take_while(char::is_ascii_digit).collect()
}

#[tokio::test]
async fn a_changed_server_is_started_anew_and_an_unchanged_one_keeps_its_process() {
    let (stays, changes) = (entry(&Script::new()), entry(&Script::new().name("before")));
    let place = Place::new(&config(&json!({ "a": stays, "b": changes })));
    let gateway = place.start().await;
    let someone = Someone::new(&gateway);
    let before = (pid(&someone, "a").await, pid(&someone, "b").await);
    let same = someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(same, json!({ "ok": true, "changed": [], "issues": [] }));
    let changed = entry(&Script::new().name("after"));
    place.write(&config(&json!({ "a": stays, "b": changed })).to_string());
    let reloaded = someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(reloaded["ok"], true);
    assert!(reloaded["changed"].to_string().contains("servers.b"), "{reloaded}");
    timeout(LONG, gateway.fleet().tried()).await.unwrap();
    assert_eq!(pid(&someone, "a").await, before.0);
    assert_ne!(pid(&someone, "b").await, before.1);
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_bad_file_is_refused_with_the_reason_and_the_old_configuration_stays() {
    let place = Place::new(&config(&json!({ "a": entry(&Script::new()) })));
    let gateway = place.start().await;
    let someone = Someone::new(&gateway);
    let before = pid(&someone, "a").await;
    let bad = config(&json!({ "a": entry_with(&Script::new(), &json!({ "timeout": "soon" })) }));
    for text in ["{ nonsense", "[]", &bad.to_string()] {
        place.write(text);
        let refused = someone.ask("config.reload", json!({})).await.unwrap();
        assert_eq!((&refused["ok"], &refused["changed"]), (&json!(false), &json!([])), "{text}");
        assert!(!refused["issues"][0]["message"].as_str().unwrap().is_empty(), "{refused}");
        assert_eq!(pid(&someone, "a").await, before);
    }
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn removing_the_server_in_use_in_mid_call_gives_a_clear_error_and_the_turn_goes_on() {
    const TAG: &str = "removed-in-mid-call";
    let place = Place::new(&config(&json!({ "a": entry(&Script::new().name(TAG)) })));
    let gateway = place.start().await;
    let mut someone = Someone::new(&gateway);
    someone.send(KEY, "r1", "/call mcp_a_sleep {\"ms\":80000}").await;
    someone.until_called("r1").await;
    place.write(&config(&json!({})).to_string());
    let reloaded = someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(reloaded["ok"], true);
    let heard = someone.hear_run("r1").await;
    let result = heard.iter().find(|(_, payload)| payload["data"]["phase"] == "result").unwrap();
    let data = &result.1["data"];
    assert_eq!((&data["isError"], &data["failure"]), (&json!(true), &json!("unavailable")));
    assert!(data["text"].as_str().unwrap().contains('a'), "{data}");
    assert_eq!(heard.last().unwrap().1["state"], "final");
    assert_nothing_left(TAG).await;
    someone.send(KEY, "r2", "/call mcp_a_echo {\"text\":\"hi\"}").await;
    let end = someone.end_of("r2").await;
    assert!(text(&end).contains("There is no tool"), "{end}");
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_saved_file_is_put_in_force_by_itself_also_after_a_bad_one() {
    let place = Place::new(&config(&json!({})));
    let served = serve(place.setup(), None, Some(0)).await.unwrap();
    let mut someone = Someone::new(&served.gateway);
    for (broken, name) in [(false, "first"), (true, "second")] {
        if broken {
            place.write("{ nonsense");
        }
        place.write(&config(&json!({ name: entry(&Script::new()) })).to_string());
        loop {
            let event = someone.hear_of("mcp.server").await;
            if event["name"] == name && event["state"] == "ready" {
                break;
            }
        }
    }
    timeout(LONG, served.stop(Duration::ZERO)).await.unwrap();
}
