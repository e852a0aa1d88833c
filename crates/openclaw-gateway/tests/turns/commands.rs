//! Commands in messages: each has the scope of the method that it stands for, at every door, and none of
//! them reaches the model.

use std::collections::BTreeSet;
use std::time::Duration;

use openclaw_gateway::tokens::TokenStore;
use openclaw_protocol::client::{Client, ConnectOptions};
use openclaw_protocol::{ErrorShape, Scope};
use openclaw_testkit::{ModelServer, Piece, Script};
use serde_json::{Value, json};

use crate::choosing::with_models;
use crate::common::connect_options;
use crate::support::{KEY, Place, Someone, config, entry, entry_with, running, stop, text};

/// Every command, and the scope of its method.
const COMMANDS: [(&str, Scope); 37] = [
    ("/help", Scope::Read),
    ("/commands", Scope::Read),
    ("/status", Scope::Read),
    ("/tools", Scope::Read),
    ("/usage", Scope::Read),
    ("/compact", Scope::Write),
    ("/stop", Scope::Write),
    ("/abort", Scope::Write),
    ("/reset", Scope::Admin),
    ("/new", Scope::Admin),
    ("/NEW again", Scope::Admin),
    ("  /reset:", Scope::Admin),
    ("/name", Scope::Read),
    ("/name Plans", Scope::Write),
    ("/model", Scope::Read),
    ("/model list", Scope::Read),
    ("/model default", Scope::Write),
    ("/model:offline", Scope::Write),
    ("/model offline -g", Scope::Read),
    ("/models", Scope::Read),
    ("/mcp", Scope::Read),
    ("/mcp help", Scope::Read),
    ("/mcp servers", Scope::Read),
    ("/mcp tools x", Scope::Read),
    ("/mcp status x", Scope::Read),
    ("/mcp refresh x", Scope::Write),
    ("/mcp connect http://127.0.0.1:9/mcp", Scope::Write),
    ("/mcp connect x", Scope::Write),
    ("/mcp disconnect x", Scope::Write),
    ("/mcp login x", Scope::Admin),
    ("/mcp auth x", Scope::Admin),
    ("/mcp login x --code=y", Scope::Admin),
    ("/MCP logout x", Scope::Admin),
    ("/mcp logout x --json", Scope::Admin),
    ("/mcp__x__greet name=Ada", Scope::Write),
    // What it needs besides is tested below.
    ("/mcp__y__greet name=Ada", Scope::Write),
    ("/think high", Scope::Read),
];

/// Where a message comes in.
#[derive(Debug, Clone, Copy)]
enum Door {
    Send,
    Agent,
    Create,
}

/// Sends a message. Returns the error if it was refused.
async fn say(
    someone: &mut Someone,
    door: Door,
    run: &str,
    message: &str,
) -> Result<(), ErrorShape> {
    let refused = match door {
        Door::Send => {
            let params = json!({ "sessionKey": KEY, "message": message, "idempotencyKey": run });
            someone.ask("chat.send", params).await.err()
        }
        Door::Agent => {
            let params = json!({ "message": message, "idempotencyKey": run });
            // A command that fails is not refused.
            let refused = someone.ask("agent", params).await.err();
            return refused.filter(|error| error.detail().is_some()).map_or(Ok(()), Err);
        }
        Door::Create => {
            let params = json!({ "key": KEY, "message": message, "idempotencyKey": run });
            let created = someone.ask("sessions.create", params).await?;
            let error = created.get("runError").filter(|error| !error.is_null()).cloned();
            error.map(|error| serde_json::from_value(error).unwrap())
        }
    };
    match refused {
        Some(error) => Err(error),
        None => {
            someone.end_of(run).await;
            Ok(())
        }
    }
}

#[tokio::test]
async fn a_command_has_the_scope_of_its_method_at_every_door() {
    let asks = entry_with(&Script::new(), &json!({ "approval": "always" }));
    let place = Place::new(&config(&json!({ "x": entry(&Script::new()), "y": asks })));
    let served = place.serve(None).await;
    let store = TokenStore::new(served.state());
    let gateway = &served.gateway;
    for scopes in [
        &[Scope::Read] as &[Scope],
        &[Scope::Write],
        &[Scope::Write, Scope::Approvals],
        &[Scope::Approvals, Scope::Questions],
        &[Scope::Admin],
    ] {
        let names: Vec<String> =
            scopes.iter().filter_map(|scope| Some(scope.name()?.to_owned())).collect();
        let short: Vec<&str> =
            names.iter().filter_map(|name| name.strip_prefix("operator.")).collect();
        let token = store.create(&short.join("-"), scopes).unwrap();
        let options = connect_options(&served);
        let options = ConnectOptions { token: Some(token), ..options };
        let remote = Someone::remote(Client::connect(&options).await.unwrap());
        for (place, mut someone) in [("here", Someone::with(gateway, &short)), ("socket", remote)] {
            for door in [Door::Send, Door::Agent, Door::Create] {
                for (nth, (message, scope)) in COMMANDS.into_iter().enumerate() {
                    let run = format!("{place}-{door:?}-{nth}-{}", short.join("-"));
                    let said = say(&mut someone, door, &run, message).await;
                    let missing = [Scope::Write, scope].into_iter().find(|it| !it.is_in(&names));
                    match (said, missing) {
                        (Ok(()), None) => {}
                        (Err(error), Some(missing)) => {
                            assert_eq!(error.detail().as_deref(), Some("MISSING_SCOPE"), "{run}");
                            let named = missing.name().unwrap();
                            assert!(error.message.contains(named), "{run}: {error}");
                        }
                        (said, missing) => panic!("{run} {message}: {said:?}, not {missing:?}"),
                    }
                }
            }
        }
    }
    let listed = Someone::new(gateway).ask("commands.list", json!({})).await.unwrap();
    let words = |nth: usize| -> BTreeSet<String> {
        let words = COMMANDS.iter().filter_map(|(text, _)| text.split_whitespace().nth(nth));
        words.map(|word| word.to_lowercase().trim_end_matches(':').to_owned()).collect()
    };
    for command in listed["commands"].as_array().unwrap() {
        for name in command["textAliases"].as_array().unwrap() {
            assert!(words(0).contains(name.as_str().unwrap()), "{name} is not in this test");
        }
        if command["name"] == "mcp" {
            for verb in command["args"][0]["choices"].as_array().unwrap() {
                let verb = verb["value"].as_str().unwrap();
                assert!(words(1).contains(verb), "/mcp {verb} is not in this test");
            }
        }
    }
    served.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn a_prompt_command_needs_the_approval_that_its_method_needs() {
    let server = ModelServer::start(|_| vec![Piece::text("I am the model.")]);
    let mut config = with_models(&server);
    config["mcp"]["servers"]["y"] = entry_with(&Script::new(), &json!({ "approval": "always" }));
    let place = Place::new(&config);
    let (gateway, audit, file) = place.start_audited().await;
    for (scopes, is_allowed) in [(&["write"] as &[&str], false), (&["write", "approvals"], true)] {
        let mut someone = Someone::with(&gateway, scopes);
        let prompt = json!({ "server": "y", "name": "greet", "args": { "name": "Ada" } });
        let by_method = someone.ask("mcp.prompt", prompt).await;
        assert_eq!(by_method.is_ok(), is_allowed, "{by_method:?}");
        for door in [Door::Send, Door::Agent, Door::Create] {
            let (run, before) = (format!("{door:?}-{is_allowed}"), server.requests().len());
            say(&mut someone, door, &run, "/mcp__y__greet name=Ada").await.unwrap();
            let asked = server.requests().len() - before;
            assert_eq!(asked, usize::from(is_allowed), "{run}");
        }
        let run = format!("said-{is_allowed}");
        let answer = someone.say(&run, "/mcp__y__greet name=Ada").await;
        match by_method {
            Ok(_) => assert_eq!(answer, "I am the model."),
            Err(error) => assert_eq!(answer, format!("error: {}", error.message)),
        }
    }
    // The log names the caller, whichever door was used.
    assert!(audit.flush().await);
    let log = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<&Value> = lines.iter().map(|line| &line["outcome"]).collect();
    assert_eq!(outcomes, [["denied"; 5], ["ok"; 5]].concat());
    assert!(lines.iter().all(|line| line["who"] == lines[0]["who"]), "{lines:?}");
    stop(&gateway).await;
}

#[tokio::test]
async fn commands_act_on_their_session() {
    let server = ModelServer::start(|asked| vec![Piece::text(asked["model"].as_str().unwrap())]);
    let (_place, gateway, mut someone) = running(&with_models(&server)).await;
    assert_eq!(someone.say("r0", "hello").await, "big");
    for (run, message, expected) in [
        ("r1", "/status", "\nSession: agent:main:main\nModel: local/big\nContext: "),
        ("r2", "/models", "local/big\nlocal/small"),
        ("r3", "/model local/small", "Model: local/small"),
        ("r4", "/model", "Model: local/small\n"),
        ("r5", "who are you?", "small"),
        ("r6", "/model nobody/x", "error: unknown model `nobody/x`; configured: local/big"),
        ("r7", "/model default", "Model: local/big"),
        ("r8", "/model local/small -g", "for this session only"),
        ("r9", "/name Plans", "Named `Plans`."),
        ("r10", "/name", "This session is named `Plans`."),
        ("r11", "/stop", "Nothing is running in this session."),
        ("r12", "/tools", "exec  "),
        ("r13", "/reset", "The session begins anew."),
    ] {
        let answer = someone.say(run, message).await;
        assert!(answer.contains(expected), "{message}: {answer}");
    }
    let read = someone.ask("sessions.get", json!({ "key": KEY })).await.unwrap();
    assert_eq!(read["messages"], json!([]));
    // Others see the command. Its sender may not know yet that the message was accepted.
    let mut other = Someone::new(&gateway);
    other.ask("sessions.messages.subscribe", json!({ "key": KEY })).await.unwrap();
    someone.send(KEY, "life", "/status").await;
    for (heard, expected) in [
        (someone.hear_run("life").await, vec![Value::Null]),
        (other.hear_run("life").await, vec![json!("start"), json!("end"), Value::Null]),
    ] {
        let phases: Vec<_> = heard.iter().map(|(_, it)| it["data"]["phase"].clone()).collect();
        assert_eq!(phases, expected, "{heard:?}");
    }
    let changed = someone.hear_of("sessions.changed").await;
    assert_eq!(
        (&changed["reason"], &changed["activeRunIds"]),
        (&json!("agent.run.ended"), &json!([]))
    );
    assert_eq!(someone.say("r14", "/new who are you?").await, "big");
    let read = someone.ask("sessions.get", json!({ "key": KEY })).await.unwrap();
    assert_eq!(text(&json!({ "message": read["messages"][0] })), "who are you?");
    assert_eq!(server.requests().len(), 3, "{:?}", server.requests());
    stop(&gateway).await;
}

#[tokio::test]
async fn a_running_turn_is_stopped_by_a_command_and_keeps_its_session() {
    let server = ModelServer::start(|_| vec![Piece::text("one "), Piece::Wait]);
    let (_place, gateway, mut someone) = running(&with_models(&server)).await;
    someone.send(KEY, "slow", "tell me everything").await;
    while someone.hear_of("chat").await["state"] != "delta" {}
    let refused = someone.say("r1", "/reset").await;
    assert!(refused.starts_with("error: a turn of this session is running"), "{refused}");
    someone.send(KEY, "r2", "/stop").await;
    let mut ends = BTreeSet::new();
    while ends.len() < 2 {
        let chat = someone.hear_of("chat").await;
        if matches!(chat["state"].as_str(), Some("final" | "aborted")) {
            ends.insert(format!("{} {}", chat["runId"], chat["state"]));
        }
    }
    let expected = ["\"r2\" \"final\"", "\"slow\" \"aborted\""];
    assert_eq!(ends, expected.map(ToOwned::to_owned).into());
    stop(&gateway).await;
}

/// The commands of the Node OpenClaw 2026.9.6 that its front ends send as text.
const OTHER_FRONT_ENDS: &str = "/acp /activation mention /agents /allowlist /approve 1 allow-once /bash ls /btw why \
    /card info /clear /codex status /dreaming on /export_session /export_trajectory /pair qr /prose run x \
    /redirect left /voice list /config show /context list /dashboard /debug show /diagnostics /elev on /elevated full /exec ask=off /export \
    /export-session /export-trajectory /fast on /goal win /id /learn /login /loop 5m hello /openclaw /plugin list \
    /plugins /queue steer /reason on /reasoning stream /restart /send on /session idle /side why /skill x \
    /steer left /subagents list /t high /tasks /tell left /think high /thinking: low /trace on /trajectory /tts on \
    /update /v on /verbose full /whoami";

#[tokio::test]
async fn commands_of_other_front_ends_are_answered_and_not_sent_to_the_model() {
    let server = ModelServer::start(|_| vec![Piece::text("I am the model.")]);
    let (_place, gateway, mut someone) = running(&with_models(&server)).await;
    let mut sent = 0;
    for command in OTHER_FRONT_ENDS.split(" /") {
        let command = format!("/{}", command.trim_start_matches('/'));
        let answer = someone.say(&command, &command).await;
        assert!(answer.contains("is not supported by this gateway: "), "{command}: {answer}");
        assert_eq!(answer.lines().count(), 1, "{answer}");
        sent += 1;
    }
    assert_eq!((sent, server.requests().len()), (59, 0));
    for message in ["/etc/hosts is wrong", "/unheard of", "/"] {
        assert_eq!(someone.say(message, message).await, "I am the model.");
    }
    let plain = json!({ "sessionKey": KEY, "message": "/reset", "idempotencyKey": "plain",
                        "suppressCommandInterpretation": true });
    someone.ask("chat.send", plain).await.unwrap();
    assert_eq!(someone.answer("plain").await, "I am the model.");
    stop(&gateway).await;
}

#[tokio::test]
async fn an_unknown_session_id_is_that_of_a_new_session() {
    let (_place, gateway, someone) = running(&config(&json!({}))).await;
    let order =
        |id: &str, run: &str| json!({ "message": "hello", "sessionId": id, "idempotencyKey": run });
    let first = someone.ask("agent", order("plans-1", "r1")).await.unwrap();
    assert_eq!(first["sessionKey"], "agent:main:explicit:plans-1", "{first}");
    let again = someone.ask("agent", order(" plans-1 ", "r2")).await.unwrap();
    assert_eq!(again["sessionKey"], first["sessionKey"]);
    let read = json!({ "key": first["sessionKey"] });
    let read = someone.ask("sessions.get", read).await.unwrap();
    assert_eq!(read["messages"].as_array().unwrap().len(), 4, "{read}");
    let found = someone.ask("sessions.resolve", json!({ "sessionId": "plans-1" })).await.unwrap();
    assert_eq!(found["key"], first["sessionKey"]);
    let rows = someone.ask("sessions.list", json!({})).await.unwrap();
    let by_id = order(rows["sessions"][0]["sessionId"].as_str().unwrap(), "r3");
    assert_eq!(someone.ask("agent", by_id).await.unwrap()["sessionKey"], first["sessionKey"]);
    for (id, expected) in [(" ", "blank session id"), ("a\nb", "invalid session key")] {
        let error = someone.ask("agent", order(id, "r4")).await.unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
    let mut elsewhere: Value = order("plans-1", "r5");
    elsewhere["agentId"] = json!("nobody");
    let error = someone.ask("agent", elsewhere).await.unwrap_err();
    assert!(error.message.contains("unknown agent `nobody`"), "{error}");
    stop(&gateway).await;
}
