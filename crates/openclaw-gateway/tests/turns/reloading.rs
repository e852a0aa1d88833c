//! Reloading the configuration while the gateway runs (C9).

use std::time::Duration;

use openclaw_gateway::serve::Served;
use openclaw_testkit::Script;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{
    KEY, LONG, Place, Someone, assert_nothing_left, config, entry, entry_with, running, start, text,
};

/// The process id of a server.
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
    let (place, gateway, someone) = running(&config(&json!({ "a": stays, "b": changes }))).await;
    let before = (pid(&someone, "a").await, pid(&someone, "b").await);
    let same = someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(same, json!({ "ok": true, "changed": [], "issues": [] }));
    let changed = entry(&Script::new().name("after"));
    place.write(&config(&json!({ "a": stays, "b": changed })));
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
    let (place, gateway, someone) = running(&config(&json!({ "a": entry(&Script::new()) }))).await;
    let before = pid(&someone, "a").await;
    let bad = config(&json!({ "a": entry_with(&Script::new(), &json!({ "timeout": "soon" })) }));
    for text in ["{ nonsense", "[]", &bad.to_string()] {
        place.write(text);
        let refused = someone.ask("config.reload", json!({})).await.unwrap();
        assert_eq!((&refused["ok"], &refused["changed"]), (&json!(false), &json!([])), "{text}");
        assert!(!refused["issues"][0]["message"].as_str().unwrap().is_empty(), "{refused}");
        assert_eq!(pid(&someone, "a").await, before);
        let known = someone.ask("config.get", json!({})).await.unwrap();
        assert_eq!((&known["valid"], &known["issues"]), (&json!(false), &refused["issues"]));
    }
    place.write(&config(&json!({ "a": entry(&Script::new()) })));
    assert_eq!(someone.ask("config.reload", json!({})).await.unwrap()["ok"], true);
    let known = someone.ask("config.get", json!({})).await.unwrap();
    assert_eq!((&known["valid"], &known["issues"]), (&json!(true), &json!([])), "it is repaired");
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_deleted_or_emptied_file_is_rejected_and_its_rules_stay() {
    let mut rules = config(&json!({ "a": entry(&Script::new()) }));
    rules["tools"] = json!({ "deny": ["mcp_a_echo"] });
    rules["$include"] = json!("more.json");
    let place = Place::new(&json!({}));
    let more = place.path().join("more.json");
    std::fs::write(&more, r#"{ acp: { maxServers: 3 } }"#).unwrap();
    place.write(&rules);
    let (gateway, someone) = start(&place).await;
    let refused = async |why: &str| {
        let refused = someone.ask("config.reload", json!({})).await.unwrap();
        assert_eq!(refused["ok"], false, "{why}: {refused}");
        let said = refused["issues"][0]["message"].as_str().unwrap();
        assert!(said.contains(why) && said.contains("`{}`"), "{said}");
        assert!(gateway.config().config.tools.deny.contains(&"mcp_a_echo".to_owned()));
        let servers = someone.ask("mcp.reload", json!({})).await.unwrap();
        assert_eq!((&servers["ok"], &servers["removed"]), (&json!(false), &json!([])));
    };
    for nothing in ["", " \n\t", "// { tools: … }\n/* later */"] {
        place.write(nothing);
        refused("openclaw.json is now empty").await;
    }
    std::fs::remove_file(place.config_file()).unwrap();
    refused("openclaw.json was deleted").await;
    place.write(&rules);
    std::fs::write(&more, "").unwrap();
    refused("more.json is now empty").await;
    // A file that was always empty is accepted.
    std::fs::write(&more, r#"{ acp: { maxServers: 3 }, $include: "later.json" }"#).unwrap();
    std::fs::write(place.path().join("later.json"), "// later").unwrap();
    rules["acp"] = json!({ "maxTools": 7 });
    place.write(&rules);
    let taken = someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(taken["ok"], true, "{taken}");
    // An explicit reset is accepted.
    place.write("{}");
    let taken = someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(taken["ok"], true, "{taken}");
    assert!(gateway.config().config.tools.deny.is_empty());
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_newly_created_file_is_applied() {
    let place = Place::new(&json!({}));
    std::fs::remove_file(place.config_file()).unwrap();
    let (gateway, someone) = start(&place).await;
    place.write(&config(&json!({ "a": entry(&Script::new()) })));
    let taken = someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(taken["ok"], true, "{taken}");
    assert!(taken["changed"].to_string().contains("servers.a"), "{taken}");
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn removing_the_server_in_use_in_mid_call_gives_a_clear_error_and_the_turn_goes_on() {
    const TAG: &str = "removed-in-mid-call";
    let (place, gateway, mut someone) =
        running(&config(&json!({ "a": entry(&Script::new().name(TAG)) }))).await;
    someone.send(KEY, "r1", "/call mcp_a_sleep {\"ms\":80000}").await;
    someone.until_called("r1").await;
    place.write(&config(&json!({})));
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
    assert!(text(&end).contains("Unknown tool '"), "{end}");
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_saved_file_is_put_in_force_by_itself_also_after_a_bad_one() {
    let place = Place::new(&config(&json!({})));
    let served = place.serve(None).await;
    let mut someone = Someone::new(&served.gateway);
    for (broken, name) in [(false, "first"), (true, "second")] {
        if broken {
            place.write("{ nonsense");
        }
        place.write(&config(&json!({ name: entry(&Script::new()) })));
        loop {
            let event = someone.hear_of("mcp.server").await;
            if event["name"] == name && event["state"] == "ready" {
                break;
            }
        }
    }
    timeout(LONG, served.stop(Duration::ZERO)).await.unwrap();
}

/// The HTTP status of a request with this host and origin.
async fn status(served: &Served, host: &str, origin: &str) -> String {
    let mut stream = TcpStream::connect(served.address()).await.unwrap();
    let request = format!(
        "GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\nOrigin: {origin}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn origins_and_hosts_allowed_later_are_accepted_from_then_on() {
    let place = Place::new(&config(&json!({})));
    let served = place.serve(None).await;
    let someone = Someone::new(&served.gateway);
    let (page, public) = ("https://page.example", "https://claw.example:8443");
    assert_eq!(status(&served, "localhost", page).await, "403");
    assert_eq!(status(&served, "claw.example:8443", public).await, "403");
    let mut open = config(&json!({}));
    open["gateway"] = json!({ "allowedOrigins": [page], "publicUrl": format!("{public}/claw") });
    place.write(&open);
    let taken = someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(taken["ok"], true, "{taken}");
    for (host, origin) in
        [("localhost", page), ("claw.example:8443", public), ("claw.example:8443", page)]
    {
        assert_eq!(status(&served, host, origin).await, "200", "{host} {origin}");
    }
    assert_eq!(status(&served, "claw.example", public).await, "403");
    assert_eq!(status(&served, "localhost", "https://claw.example").await, "403");
    place.write(&config(&json!({})));
    someone.ask("config.reload", json!({})).await.unwrap();
    assert_eq!(status(&served, "localhost", page).await, "403");
    timeout(LONG, served.stop(Duration::ZERO)).await.unwrap();
}
