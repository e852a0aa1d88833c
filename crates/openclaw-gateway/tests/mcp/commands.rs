//! The command `/mcp …` in a session, and the tool `mcp_manage`.

use openclaw_protocol::Received;
use openclaw_testkit::oauth::{Browser, OAuthScript, OAuthTestServer};
use openclaw_testkit::{Odd, Script, TestServer};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{LONG, ask, broken, caller_with, config, entry, refused, running, say, stop};

#[tokio::test]
async fn servers_stand_in_columns_and_hostile_names_command_nothing() {
    let script = Script::new().odd_tool(Odd::ControlName);
    let servers = json!({ "a": entry(&script), "broken": broken() });
    let (_place, gateway, me) = running(&config(&servers)).await;
    let text = say(&me, "/mcp servers").await;
    assert!(text.starts_with("MCP Servers (2 configured)\n──"), "{text}");
    assert!(text.contains("\n  a               stdio://"), "{text}");
    assert!(text.contains("\n                  Status: Running (PID "), "{text}");
    assert!(text.contains("Status: Failed | Auth: None | Tools: 0"), "{text}");
    let tools = say(&me, "/mcp tools a").await;
    assert!(tools.contains("\n  mcp_a_echo"), "{tools}");
    assert!(tools.contains("Answers with the text."), "{tools}");
    assert!(!tools.chars().any(|c| c.is_control() && c != '\n'), "{tools:?}");
    let told: Value = serde_json::from_str(&say(&me, "/mcp servers --json").await).unwrap();
    let asked = ask(&me, "mcp.servers", json!({})).await;
    assert_eq!(told["servers"][0]["name"], asked["servers"][0]["name"]);
    assert_eq!((&told["ready"], &told["missing"]), (&asked["ready"], &asked["missing"]));
    assert!(say(&me, "/mcp status broken").await.contains("Last error"));
    let unknown = say(&me, "/mcp status nobody").await;
    assert!(unknown.starts_with("error: "), "{unknown}");
    assert!(unknown.contains("\nhint: "), "{unknown}");
    assert!(unknown.contains("known servers: a, broken"), "{unknown}");
    assert!(say(&me, "/mcp serfers").await.contains("hint: did you mean `/mcp servers`?"));
    assert!(say(&me, "/mcp refresh a").await.contains("✓ a: "));
    stop(gateway).await;
}

#[tokio::test]
async fn a_service_comes_and_goes_by_command() {
    let http = TestServer::http(&Script::new());
    let (_place, gateway, me) = running(&config(&json!({}))).await;
    assert!(say(&me, "/mcp").await.contains("No MCP servers."));
    let text = say(&me, &format!("/mcp connect {} --name x", http.url())).await;
    assert!(text.starts_with("✓ x is connected: 15 tools."), "{text}");
    assert!(say(&me, "/mcp tools").await.contains("mcp_x_echo"));
    assert!(say(&me, "/mcp login x").await.contains("needs no login"));
    assert!(say(&me, "/mcp disconnect x").await.starts_with("x is disconnected."));
    assert!(say(&me, "/mcp servers").await.contains("No MCP servers."));
    stop(gateway).await;
}

#[tokio::test]
async fn where_the_tool_is_denied_the_command_is_too() {
    let mut config = config(&json!({ "a": entry(&Script::new()) }));
    config["tools"] = json!({ "deny": ["mcp_manage"] });
    let (_place, gateway, me) = running(&config).await;
    assert!(say(&me, "/mcp servers").await.contains("Not allowed: "));
    let commands = ask(&me, "commands.list", json!({})).await;
    let names = commands["commands"].as_array().unwrap().iter().map(|it| &it["name"]);
    assert!(!names.into_iter().any(|name| name == "mcp"));
    stop(gateway).await;
}

#[tokio::test]
async fn the_command_is_listed_with_its_verbs_and_the_servers() {
    let (_place, gateway, me) = running(&config(&json!({ "a": entry(&Script::new()) }))).await;
    let commands = ask(&me, "commands.list", json!({})).await;
    let mut all = commands["commands"].as_array().unwrap().iter();
    let mcp = all.find(|it| it["name"] == "mcp").unwrap();
    let values = |nth: usize| -> Vec<Value> {
        let choices = mcp["args"][nth]["choices"].as_array().unwrap();
        choices.iter().map(|choice| choice["value"].clone()).collect()
    };
    assert!(values(0).contains(&json!("disconnect")), "{mcp}");
    assert_eq!(values(1), ["a"]);
    assert_eq!(mcp["args"][1]["dynamic"], true);
    stop(gateway).await;
}

#[tokio::test]
async fn an_agent_may_list_freely_but_needs_approval_for_changes() {
    let (_place, gateway, me) = running(&config(&json!({ "a": entry(&Script::new()) }))).await;
    let invoke = async |args: Value, confirm: bool| {
        let params = json!({ "name": "mcp_manage", "args": args, "confirm": confirm });
        ask(&me, "tools.invoke", params).await
    };
    let told = invoke(json!({ "action": "servers" }), false).await;
    assert_eq!(told["ok"], true);
    assert_eq!(told["output"]["content"][0]["untrusted"], true, "{told}");
    let refresh = json!({ "action": "refresh", "server": "a" });
    let told = invoke(refresh.clone(), false).await;
    assert_eq!((&told["ok"], &told["requiresApproval"]), (&json!(false), &json!(true)));
    assert_eq!(invoke(refresh, true).await["ok"], true);
    for args in [
        json!({ "action": "connect", "url": "https://x.example/mcp" }),
        json!({ "action": "disconnect", "server": "a" }),
    ] {
        let told = invoke(args, false).await;
        assert_eq!((&told["ok"], &told["error"]["code"]), (&json!(false), &json!("denied")));
    }
    for args in [json!({ "action": "explode" }), json!({ "action": "status" }), json!({})] {
        let told = invoke(args, true).await;
        assert_eq!(told["error"]["code"], "invalid-arguments", "{told}");
    }
    assert_eq!(ask(&me, "mcp.status", json!({ "server": "a" })).await["state"], "ready");
    stop(gateway).await;
}

#[tokio::test]
async fn a_slow_command_can_be_aborted() {
    let (_place, gateway, me) = running(&config(&json!({}))).await;
    // A peer that accepts connections and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let command = format!("/mcp connect http://{}/mcp --name mute", silent.local_addr().unwrap());
    let (key, mut events) = ("agent:main:test", me.events());
    let params = json!({ "sessionKey": key, "message": command, "idempotencyKey": "r" });
    ask(&me, "chat.send", params).await;
    let (connected, _) =
        tokio::task::spawn_blocking(move || silent.accept()).await.unwrap().unwrap();
    ask(&me, "chat.abort", json!({ "sessionKey": key, "runId": "r" })).await;
    let end = timeout(LONG, async {
        loop {
            match events.next().await.unwrap() {
                Received::Event(event) if event.event == "chat" => return event,
                _ => {}
            }
        }
    });
    let end: Value = serde_json::from_str(end.await.unwrap().json().unwrap().get()).unwrap();
    assert_eq!((&end["runId"], &end["state"]), (&json!("r"), &json!("aborted")), "{end}");
    let gone = async {
        while ask(&me, "mcp.servers", json!({})).await["servers"] != json!([]) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, gone).await.unwrap();
    drop(connected);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_in_a_chat_shows_its_url_and_connects_the_server() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let servers = json!({ "box": { "url": server.url(), "timeout": 60_000 } });
    let (_place, gateway, me) = running(&config(&servers)).await;
    assert!(say(&me, "/mcp status box").await.contains("Login required"));
    let text = say(&me, "/mcp login box").await;
    let url = text.lines().find(|line| line.starts_with(&server.issuer())).unwrap().to_owned();
    let visit = move || Browser::new().approve_and_return(&url);
    let page = tokio::task::spawn_blocking(visit).await.unwrap();
    assert!(page.text().contains("You are logged in to box"), "{}", page.text());
    // The page is shown when the tokens are stored; the server is connected afterwards.
    let ready = async { while !say(&me, "/mcp status box").await.contains("Connected") {} };
    timeout(LONG, ready).await.unwrap();
    let writer = caller_with(&gateway, &["write"]);
    for command in ["/mcp logout box", "/mcp login box", "/mcp login box --code x"] {
        let key = "agent:main:other";
        let params = json!({ "sessionKey": key, "message": command, "idempotencyKey": command });
        let (words, code, _) = refused(&writer, "chat.send", params).await;
        assert!(words.contains("needs the scope `operator.admin`"), "{words}");
        assert_eq!(code, "MISSING_SCOPE");
    }
    assert!(say(&me, "/mcp status box").await.contains(&server.issuer()), "still logged in");
    let theirs = say(&writer, "/mcp status box").await;
    assert!(!theirs.contains(&server.issuer()), "{theirs}");
    assert!(say(&me, "/mcp logout box").await.contains("Logged out of box."));
    assert!(say(&me, "/mcp logout box").await.contains("not logged in to `box`"));
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_learns_that_a_login_is_required_but_not_its_url() {
    let server = OAuthTestServer::start(OAuthScript::new());
    let servers = json!({ "box": { "url": server.url(), "timeout": 60_000 } });
    let (_place, gateway, me) = running(&config(&servers)).await;
    let state = async || {
        let args = json!({ "action": "auth", "server": "box" });
        let writer = caller_with(&gateway, &["write"]);
        let told =
            ask(&writer, "tools.invoke", json!({ "name": "mcp_manage", "args": args })).await;
        told["output"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let before = state().await;
    assert!(before.contains("box requires a login.\nhint: use `/mcp login box`"), "{before}");
    let url = say(&me, "/mcp login box").await;
    assert!(url.contains(&server.issuer()), "{url}");
    let during = state().await;
    assert!(during.contains("A login to box is in progress."), "{during}");
    assert!(!during.contains("http"), "{during}");
    stop(gateway).await;
}
