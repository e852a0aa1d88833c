//! Invalid input from callers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_protocol::ErrorCode;
use serde_json::json;

use crate::support::{KEY, Place, Someone, config, one_server, running, stop};

#[tokio::test]
async fn a_message_of_five_megabytes_is_rejected_with_a_hint_and_one_of_three_is_accepted() {
    let (_place, gateway, mut someone) = running(&config(&json!({}))).await;
    let send = |size: usize| json!({ "sessionKey": KEY, "message": "x".repeat(size), "idempotencyKey": size.to_string() });
    let error = someone.ask("chat.send", send(5 * 1024 * 1024)).await.unwrap_err();
    assert!(error.message.contains("4 MB") && error.message.contains("into a file"), "{error}");
    let size = 3 * 1024 * 1024;
    someone.ask("chat.send", send(size)).await.unwrap();
    assert_eq!(someone.end_of(&size.to_string()).await["state"], "final");
    // The session can still be used.
    someone.say("next", "hello").await;
    stop(&gateway).await;
}

#[tokio::test]
async fn a_session_key_is_a_name_and_nothing_else() {
    let (place, gateway, mut someone) = running(&config(&json!({}))).await;
    for key in ["", " ", "\u{3000} \u{a0}", "a\0b", "a\nb", &"x".repeat(1024 * 1024)] {
        let params = json!({ "sessionKey": key, "message": "hi", "idempotencyKey": "r" });
        let error = someone.ask("chat.send", params).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        assert!(error.message.len() < 300, "{error}");
        for method in ["chat.history", "sessions.describe", "sessions.delete"] {
            let params = match method {
                "chat.history" => json!({ "sessionKey": key }),
                _ => json!({ "key": key }),
            };
            someone.ask(method, params).await.unwrap_err();
        }
    }
    let key = "../../../etc/passwd";
    someone.send(key, "r", "hello").await;
    assert_eq!(someone.end_of("r").await["state"], "final");
    let inside = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(inside, 2, "the configuration and the state, nothing else");
    let deleted = someone.ask("sessions.delete", json!({ "key": key })).await.unwrap();
    assert_eq!(deleted["deleted"], true);
    stop(&gateway).await;
}

#[tokio::test]
async fn empty_messages_bad_keys_and_bad_attachments_are_refused() {
    let (_place, gateway, someone) = running(&config(&json!({}))).await;
    let file = |content: &str| json!([{ "mimeType": "image/png", "content": content }]);
    let bad = [
        json!({ "sessionKey": KEY, "message": " \n", "idempotencyKey": "r" }),
        json!({ "sessionKey": KEY, "message": "hi", "idempotencyKey": "" }),
        json!({ "sessionKey": KEY, "message": "hi", "idempotencyKey": "a\0" }),
        json!({ "sessionKey": KEY, "message": "hi", "idempotencyKey": "r".repeat(257) }),
        json!({ "sessionKey": KEY, "message": "hi", "idempotencyKey": "r", "attachments": file("!") }),
        json!({ "sessionKey": KEY, "message": "hi", "idempotencyKey": "r", "attachments": [{}] }),
        json!({ "sessionKey": KEY, "message": 7, "idempotencyKey": "r" }),
        json!("text"),
        json!(null),
    ];
    for params in bad {
        let error = someone.ask("chat.send", params.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest, "{params}: {error}");
    }
    let sessions = someone.ask("sessions.list", json!({})).await.unwrap();
    assert_eq!(sessions["count"], 0, "no session was created");
    stop(&gateway).await;
}

#[tokio::test]
async fn an_attachment_is_taken_for_what_its_bytes_are_and_refused_by_name_if_no_model_takes_it() {
    let (_place, gateway, mut someone) = running(&config(&json!({}))).await;
    let send = |run: &str, mime_type: &str, bytes: &[u8]| {
        let file = json!({ "mimeType": mime_type, "fileName": "a.png", "content": STANDARD.encode(bytes) });
        json!({ "sessionKey": KEY, "message": "look", "idempotencyKey": run, "attachments": [file] })
    };
    let large = [b"GIF89a".as_slice(), &[0; 6 * 1024 * 1024]].concat();
    for (mime_type, bytes, why) in [
        ("image/png", b"not a png".as_slice(), "not a PNG, JPEG, GIF or WebP"),
        ("image/gif", &large, "larger than 5 MB"),
        ("audio/midi", b"MThd", "models do not accept its type"),
        ("image/png", b"not a png", "attachment 1 (`a.png`) cannot be sent as "),
        ("application/zip", b"PK\xff", "attachment 1 (`a.png`) is not an image, audio"),
        ("text/plain", &[b'x'; 5 * 1024 * 1024], "are limited to 4 MB in total"),
    ] {
        let error = someone.ask("chat.send", send("r", mime_type, bytes)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        assert!(error.message.contains(why), "{error}");
    }
    someone.ask("chat.send", send("good", "image/png", b"GIF89a")).await.unwrap();
    assert_eq!(someone.end_of("good").await["state"], "final");
    let history = someone.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    assert_eq!(history["messages"][0]["content"][1]["mimeType"], "image/gif");
    stop(&gateway).await;
}

#[tokio::test]
async fn an_unknown_method_is_named_and_a_missing_scope_too() {
    let place = Place::new(&config(&json!({})));
    let gateway = place.start().await;
    let reader = Someone::with(&gateway, &["read"]);
    let error = reader.ask("chat.levitate", json!({})).await.unwrap_err();
    assert!(error.is_unknown_method() && error.message.contains("chat.levitate"), "{error}");
    for (method, scope) in [
        ("chat.send", "operator.write"),
        ("chat.abort", "operator.write"),
        ("approvals.list", "operator.approvals"),
        ("config.reload", "operator.admin"),
    ] {
        let error = reader.ask(method, json!({})).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Forbidden, "{error}");
        assert!(error.message.contains(scope) && error.message.contains(method), "{error}");
    }
    reader.ask("status", json!({})).await.unwrap();
    reader.ask("health", json!({})).await.unwrap();
    stop(&gateway).await;
}

#[tokio::test]
async fn queued_messages_are_limited_per_session() {
    let (_place, gateway, mut someone) = running(&one_server()).await;
    someone.send(KEY, "slow", "/call mcp_x_sleep {\"ms\":80000}").await;
    for nth in 1..32 {
        someone.send(KEY, &format!("r{nth}"), "hello").await;
    }
    let params = json!({ "sessionKey": KEY, "message": "hello", "idempotencyKey": "one more" });
    let error = someone.ask("chat.send", params.clone()).await.unwrap_err();
    assert!(error.message.contains("too many messages are queued"), "{error}");
    someone.send("agent:main:other", "other", "hello").await;
    assert_eq!(someone.end_of("other").await["state"], "final");
    let error = someone.ask("sessions.delete", json!({ "key": KEY })).await.unwrap_err();
    assert!(error.message.contains("chat.abort"), "{error}");
    let params_of_inject = json!({ "sessionKey": KEY, "message": "I was here" });
    someone.ask("chat.inject", params_of_inject.clone()).await.unwrap_err();
    someone.ask("chat.abort", json!({ "sessionKey": KEY })).await.unwrap();
    for _ in 0..32 {
        while !crate::support::is_end(&someone.hear_of("chat").await) {}
    }
    assert_eq!(someone.ask("chat.send", params).await.unwrap()["status"], "started");
    assert_eq!(someone.end_of("one more").await["state"], "final");
    someone.ask("chat.inject", params_of_inject).await.unwrap();
    stop(&gateway).await;
}
