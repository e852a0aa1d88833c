//! Sending messages, receiving events, aborting turns.

use serde_json::{Value, json};

use crate::support::{KEY, Place, Someone, config, one_server, running, stop, text};

#[tokio::test]
async fn a_message_becomes_events_in_order_an_answer_and_history() {
    let (_place, gateway, mut someone) = running(&one_server()).await;
    let sent = someone.send(KEY, "r1", "/call mcp_x_add {\"a\":2,\"b\":3}").await;
    assert_eq!(sent, json!({ "runId": "r1", "status": "started" }));
    let heard = someone.hear_run("r1").await;
    let told = |name: &str| -> Vec<&Value> {
        heard.iter().filter(|(event, _)| event == name).map(|(_, payload)| payload).collect()
    };
    for name in ["agent", "chat"] {
        let numbers: Vec<u64> = told(name).iter().map(|it| it["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{name}");
        assert!(told(name).iter().all(|it| it["runId"] == "r1"));
    }
    let phases: Vec<String> = told("agent")
        .iter()
        .filter(|it| it["stream"] == "lifecycle" || it["stream"] == "tool")
        .map(|it| it["data"]["phase"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(phases, ["start", "start", "result", "end"]);
    // For other clients of the session: they have not sent the message.
    let begun = &told("agent").into_iter().find(|it| it["stream"] == "lifecycle").unwrap()["data"];
    assert_eq!(begun["sessionKey"], KEY);
    assert_eq!(begun["message"], "/call mcp_x_add {\"a\":2,\"b\":3}");
    let result = told("agent").into_iter().find(|it| it["data"]["phase"] == "result").unwrap();
    let data = &result["data"];
    assert_eq!((&data["name"], &data["isError"]), (&json!("mcp_x_add"), &json!(false)));
    assert!(data["text"].as_str().unwrap().contains('5'), "{data}");
    assert!(!data["text"].as_str().unwrap().contains("EXTERNAL_UNTRUSTED"), "{data}");
    assert_eq!(data["untrusted"], true, "{data}");
    let streamed: String = told("chat")
        .iter()
        .filter(|it| it["state"] == "delta")
        .map(|it| it["deltaText"].as_str().unwrap())
        .collect();
    let end = &heard.last().unwrap().1;
    assert_eq!(end["state"], "final");
    assert_eq!(streamed, text(end), "the streamed text is the final text");
    let history = someone.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    let messages = history["messages"].as_array().unwrap().iter();
    let roles: Vec<&Value> = messages.map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
    let sessions = someone.ask("sessions.list", json!({})).await.unwrap();
    assert_eq!(sessions["sessions"][0]["status"], "done", "it is over once its end was reported");
    someone.ask("sessions.delete", json!({ "key": KEY })).await.unwrap();
    stop(&gateway).await;
}

#[tokio::test]
async fn the_progress_of_a_call_is_reported_while_it_runs_and_not_too_often() {
    let (_place, gateway, mut someone) = running(&one_server()).await;
    someone.send(KEY, "r1", "/call mcp_x_sleep {\"ms\":1000,\"every\":5}").await;
    let heard = someone.hear_run("r1").await;
    let tool = heard.iter().filter(|(_, payload)| payload["stream"] == "tool");
    let phases: Vec<&str> =
        tool.clone().filter_map(|(_, it)| it["data"]["phase"].as_str()).collect();
    assert_eq!((phases.first(), phases.last()), (Some(&"start"), Some(&"result")));
    let updates: Vec<&Value> =
        tool.map(|(_, it)| &it["data"]).filter(|data| data["phase"] == "update").collect();
    assert!((2..=15).contains(&updates.len()), "of two hundred: {}", updates.len());
    for data in updates {
        assert_eq!(data["name"], "mcp_x_sleep");
        assert!(data["progress"]["percent"].is_number(), "{data}");
    }
    stop(&gateway).await;
}

#[tokio::test]
async fn a_message_that_is_sent_twice_is_answered_once() {
    let (_place, gateway, mut someone) = running(&one_server()).await;
    let words = "/call mcp_x_sleep {\"ms\":60000}";
    someone.send(KEY, "slow", words).await;
    assert_eq!(someone.send(KEY, "slow", words).await["status"], "in_flight");
    someone.until_called("slow").await;
    someone.ask("chat.abort", json!({ "sessionKey": KEY, "runId": "slow" })).await.unwrap();
    assert_eq!(someone.end_of("slow").await["state"], "aborted");
    someone.say("quick", "hello").await;
    assert_eq!(someone.send(KEY, "quick", "hello").await["status"], "ok");
    let history = someone.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    let said = history["messages"].as_array().unwrap().iter();
    assert_eq!(said.filter(|it| it["role"] == "user").count(), 2);
    stop(&gateway).await;
}

#[tokio::test]
async fn the_same_key_in_another_session_is_another_message() {
    let (_place, gateway, mut someone) = running(&one_server()).await;
    let other = "agent:main:other";
    someone.send(KEY, "r", "/call mcp_x_sleep {\"ms\":60000}").await;
    someone.until_called("r").await;
    assert_eq!(someone.send(other, "r", "hello").await["status"], "started");
    let end = someone.end_of("r").await;
    assert_eq!((&end["state"], &end["sessionKey"]), (&json!("final"), &json!(other)));
    assert_eq!(someone.send(other, "r", "hello").await["status"], "ok");
    assert_eq!(someone.send(KEY, "r", "hello").await["status"], "in_flight");
    let aborted = json!({ "sessionKey": KEY, "runId": "r" });
    someone.ask("chat.abort", aborted).await.unwrap();
    let end = someone.end_of("r").await;
    assert_eq!((&end["state"], &end["sessionKey"]), (&json!("aborted"), &json!(KEY)));
    stop(&gateway).await;
}

#[tokio::test]
async fn a_session_of_one_agent_is_not_answered_by_another() {
    let mut two = config(&json!({}));
    two["agents"]["list"] = json!([{ "id": "main" }, { "id": "anth" }]);
    let (_place, gateway, mut someone) = running(&two).await;
    let params = |agent: &str| {
        json!({ "sessionKey": "agent:anth:zz", "message": "hello", "idempotencyKey": "r",
                "agentId": agent })
    };
    let error = someone.ask("chat.send", params("main")).await.unwrap_err();
    assert!(error.message.contains("belongs to agent `anth`"), "{error}");
    someone.ask("chat.send", params("anth")).await.unwrap();
    assert_eq!(someone.end_of("r").await["state"], "final");
    stop(&gateway).await;
}

#[tokio::test]
async fn a_message_that_was_refused_may_be_sent_again_with_the_same_key() {
    let (_place, gateway, mut someone) = running(&config(&json!({}))).await;
    let mut params = json!({
        "sessionKey": KEY, "message": "hello", "idempotencyKey": "r", "agentId": "nobody"
    });
    let error = someone.ask("chat.send", params.clone()).await.unwrap_err();
    assert!(error.message.contains("unknown agent `nobody`"), "{error}");
    params["agentId"] = json!("main");
    assert_eq!(someone.ask("chat.send", params).await.unwrap()["status"], "started");
    assert_eq!(someone.end_of("r").await["state"], "final");
    stop(&gateway).await;
}

#[tokio::test]
async fn an_abort_ends_the_call_and_those_that_wait_and_the_session_goes_on() {
    let (_place, gateway, mut someone) = running(&one_server()).await;
    someone.send(KEY, "one", "/call mcp_x_sleep {\"ms\":60000}").await;
    someone.send(KEY, "two", "hello").await;
    someone.until_called("one").await;
    let aborted = someone.ask("chat.abort", json!({ "sessionKey": KEY })).await.unwrap();
    let mut ids: Vec<&str> =
        aborted["runIds"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!((&aborted["aborted"], ids), (&json!(true), vec!["one", "two"]));
    let (mut ended, mut states) = (Vec::new(), Vec::new());
    while ended.len() < 2 {
        let chat = someone.hear_of("chat").await;
        if crate::support::is_end(&chat) {
            ended.push(chat["runId"].as_str().unwrap().to_owned());
            states.push(chat["state"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(states, ["aborted", "aborted"]);
    let nothing = someone.ask("chat.abort", json!({ "sessionKey": KEY })).await.unwrap();
    assert_eq!(nothing["aborted"], false);
    someone.send(KEY, "three", "/call mcp_x_echo {\"text\":\"here\"}").await;
    let end = someone.end_of("three").await;
    assert!(end["state"] == "final" && text(&end).contains("here"), "{end}");
    stop(&gateway).await;
}

#[tokio::test]
async fn a_turn_that_exceeds_its_timeout_is_aborted() {
    let (_place, gateway, mut someone) = running(&one_server()).await;
    let params = json!({ "sessionKey": KEY, "message": "/call mcp_x_sleep {\"ms\":60000}",
                         "idempotencyKey": "r", "timeoutMs": 50 });
    someone.ask("chat.send", params).await.unwrap();
    let end = someone.end_of("r").await;
    assert_eq!((&end["state"], &end["stopReason"]), (&json!("aborted"), &json!("timeout")));
    let again = someone.send(KEY, "r", "the same").await;
    assert_eq!(again["status"], "timeout");
    stop(&gateway).await;
}

#[tokio::test]
async fn main_is_short_for_the_main_conversation_wherever_a_key_is_taken() {
    let mut config = config(&json!({}));
    config["agents"]["list"] = json!([{ "id": "work" }, { "id": "home" }]);
    let (_place, gateway, mut someone) = running(&config).await;
    someone.send("main", "r1", "hello").await;
    assert_eq!(someone.end_of("r1").await["sessionKey"], "agent:work:main");
    let of_home = json!({ "sessionKey": "main", "agentId": "home", "message": "hello",
                          "idempotencyKey": "r2" });
    someone.ask("chat.send", of_home).await.unwrap();
    assert_eq!(someone.end_of("r2").await["sessionKey"], "agent:home:main");
    // Any other key is used as it is.
    someone.send("holidays", "r3", "hello").await;
    assert_eq!(someone.end_of("r3").await["sessionKey"], "holidays");
    for key in ["main", "agent:work:main"] {
        let history = someone.ask("chat.history", json!({ "sessionKey": key })).await.unwrap();
        assert_eq!(history["sessionKey"], "agent:work:main");
        assert_eq!(history["messages"].as_array().unwrap().len(), 2);
        let found = someone.ask("sessions.describe", json!({ "key": key })).await.unwrap();
        assert_eq!(found["session"]["key"], "agent:work:main");
    }
    let deleted = someone.ask("sessions.delete", json!({ "key": "main" })).await.unwrap();
    assert_eq!(deleted["key"], "agent:work:main");
    let listed = someone.ask("sessions.list", json!({})).await.unwrap();
    let sessions = listed["sessions"].as_array().unwrap().iter();
    let mut keys: Vec<&str> = sessions.map(|row| row["key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["agent:home:main", "holidays"]);
    stop(&gateway).await;
}

#[tokio::test]
async fn followers_of_a_session_receive_the_same_events_and_others_receive_none() {
    let place = Place::new(&config(&json!({})));
    let gateway = place.start().await;
    let [mut sender, mut follower, mut watcher, mut stranger] =
        std::array::from_fn(|_| Someone::new(&gateway));
    follower.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    watcher.ask("sessions.subscribe", json!({})).await.unwrap();
    stranger.ask("chat.history", json!({ "sessionKey": "agent:main:other" })).await.unwrap();
    sender.send(KEY, "r", "hello").await;
    let heard = sender.hear_run("r").await;
    assert_eq!(follower.hear_run("r").await, heard);
    assert_eq!(watcher.hear_run("r").await, heard);
    let strange = stranger.heard_so_far();
    assert!(!strange.iter().any(|(_, payload)| payload["runId"] == "r"), "{strange:?}");
    stop(&gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_session_are_answered_one_after_the_other_in_the_order_they_came() {
    let (_place, gateway, mut someone) = running(&config(&json!({}))).await;
    let runs: Vec<String> = (0..20).map(|nth| format!("r{nth}")).collect();
    let sent = runs.iter().map(|run| someone.send(KEY, run, run));
    futures_util::future::join_all(sent).await;
    let mut ended = Vec::new();
    let mut running: Option<String> = None;
    while ended.len() < runs.len() {
        let (name, payload) = someone.hear().await;
        let Some(run) = payload["runId"].as_str().map(ToOwned::to_owned) else { continue };
        assert_eq!(running.get_or_insert_with(|| run.clone()), &run, "turns overlap");
        if name == "chat" && crate::support::is_end(&payload) {
            ended.push(run);
            running = None;
        }
    }
    assert_eq!(ended, runs);
    stop(&gateway).await;
}
