//! Stopping a gateway (L5).

use std::time::Duration;

use openclaw_gateway::state;
use openclaw_testkit::Script;
use serde_json::json;
use tokio::time::timeout;

use crate::common::connect_to;
use crate::support::{
    KEY, LONG, Place, Someone, assert_nothing_left, config, entry, one_server, running, start,
    stop, text,
};

#[tokio::test]
async fn a_turn_under_way_gets_its_time_and_nothing_new_begins() {
    const TAG: &str = "stopped-in-time";
    let (_place, gateway, mut someone) =
        running(&config(&json!({ "x": entry(&Script::new().name(TAG)) }))).await;
    someone.send(KEY, "r", "/call mcp_x_sleep {\"ms\":500}").await;
    someone.until_called("r").await;
    let turned_away = async {
        tokio::task::yield_now().await;
        let params = json!({ "sessionKey": KEY, "message": "hi", "idempotencyKey": "late" });
        let error = someone.ask("chat.send", params).await.unwrap_err();
        assert!(error.message.contains("stopping"), "{error}");
    };
    timeout(LONG, async { tokio::join!(gateway.stop(LONG), turned_away) }).await.unwrap();
    let end = someone.end_of("r").await;
    assert!(end["state"] == "final" && text(&end).contains("slept 500 ms"), "{end}");
    assert_nothing_left(TAG).await;
}

#[tokio::test]
async fn a_turn_that_takes_too_long_is_ended_and_no_process_is_left() {
    const TAG: &str = "stopped-too-slow";
    let (place, gateway, mut someone) =
        running(&config(&json!({ "x": entry(&Script::new().name(TAG)) }))).await;
    someone.send(KEY, "r", "/call mcp_x_sleep {\"ms\":80000}").await;
    someone.send(KEY, "waits", "hello").await;
    someone.until_called("r").await;
    timeout(LONG, gateway.stop(Duration::from_millis(50))).await.unwrap();
    assert_eq!(someone.end_of("r").await["state"], "aborted");
    assert_nothing_left(TAG).await;
    // The next gateway finds the history, and a provider accepts it.
    drop((someone, gateway));
    let (gateway, mut someone) = start(&place).await;
    someone.send(KEY, "again", "/call mcp_x_echo {\"text\":\"here again\"}").await;
    let end = someone.end_of("again").await;
    assert!(text(&end).contains("here again"), "{end}");
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn callers_on_a_socket_receive_the_end_of_their_turn_before_the_gateway_stops() {
    let place = Place::new(&one_server());
    let served = place.serve(None).await;
    let mut someone = Someone::remote(connect_to(&served).await);
    someone.send(KEY, "r", "/call mcp_x_sleep {\"ms\":500}").await;
    someone.until_called("r").await;
    let heard = async {
        let end = someone.end_of("r").await;
        someone.hear_of("shutdown").await;
        end
    };
    let state = served.state().to_owned();
    let ((), end) = timeout(LONG, async { tokio::join!(served.stop(LONG), heard) }).await.unwrap();
    assert!(end["state"] == "final" && text(&end).contains("slept 500 ms"), "{end}");
    assert!(state::find(&state).is_none(), "it is no longer published");
}

#[tokio::test]
async fn a_gateway_that_listens_is_stopped_by_a_request_of_an_administrator() {
    let place = Place::new(&config(&json!({})));
    let served = place.serve(None).await;
    let stopped = async || timeout(Duration::ZERO, served.gateway.stop_requested()).await.is_ok();
    let writer = Someone::writer(&served.gateway);
    let error = writer.ask("gateway.stop", json!({})).await.unwrap_err();
    assert!(error.message.contains("needs the scope `operator.admin`"), "{error}");
    assert!(!stopped().await);
    let admin = Someone::remote(connect_to(&served).await);
    assert_eq!(admin.ask("gateway.stop", json!({})).await.unwrap(), json!({ "ok": true }));
    assert!(stopped().await);
    served.stop(Duration::ZERO).await;
    // One in the process of a command ends with that.
    let gateway = place.start().await;
    let error = Someone::new(&gateway).ask("gateway.stop", json!({})).await.unwrap_err();
    assert!(error.message.contains("stops with the command"), "{error}");
    stop(&gateway).await;
}
