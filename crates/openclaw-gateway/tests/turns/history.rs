//! Reading the history of a session, whatever its size.

use openclaw_agent::MessageRecord;
use openclaw_models::{Message, Part};
use openclaw_sessions::{EntryKind, NewEntry, SessionKey, SessionStore as _, SqliteStore};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

use crate::common::connect_to;
use crate::support::{KEY, LONG, Place, Someone, config, start};

/// A place with a session that contains these messages.
async fn place(messages: Vec<Message>) -> Place {
    let place = Place::new(&config(&json!({})));
    let state = place.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let store = SqliteStore::open(state.join("sessions.db")).await.unwrap().store;
    let key: SessionKey = KEY.parse().unwrap();
    store.open(&key, "main").await.unwrap();
    for message in messages {
        let record = MessageRecord { message, calls: Vec::new(), model: None, usage: None };
        let body = serde_json::to_value(record).unwrap();
        store.append(&key, vec![NewEntry::new(EntryKind::Message, body)]).await.unwrap();
    }
    place
}

fn said(text: String) -> Message {
    Message::User { parts: vec![Part::ours(text)] }
}

/// Every page, latest first.
async fn pages(someone: &Someone, more: &Value) -> Vec<Value> {
    let mut pages = Vec::new();
    let mut offset = json!(0);
    loop {
        let mut params = json!({ "sessionKey": KEY, "limit": 1_000, "offset": offset });
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        let page = someone.ask("chat.history", params).await.unwrap();
        offset = page["nextOffset"].clone();
        let is_last = page["hasMore"] != true;
        assert_eq!(offset.is_null(), is_last);
        pages.push(page);
        if is_last {
            return pages;
        }
    }
}

fn ids(pages: &[Value]) -> Vec<u64> {
    let pages = pages.iter().rev().flat_map(|page| page["messages"].as_array().unwrap());
    pages.map(|message| message["id"].as_str().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn a_long_conversation_comes_through_a_socket_in_pages_and_nothing_is_missing() {
    let large = (0..40).map(|number| said(format!("{number} {}", "ä\n".repeat(300_000))));
    let small = (0..60).map(|number| said(format!("small {number}")));
    let place = place(large.chain(small).collect()).await;
    let served = place.serve(None).await;
    let client = connect_to(&served).await;
    let most = client.hello().policy.max_payload;
    let someone = Someone::remote(client);
    let pages = pages(&someone, &json!({})).await;
    assert_eq!(ids(&pages), (1..=100).collect::<Vec<_>>());
    assert!(pages.len() > 1);
    assert!(pages.iter().all(|page| (page.to_string().len() as u64) < most));
    timeout(LONG, served.stop(Duration::ZERO)).await.unwrap();
}

#[tokio::test]
async fn limits_and_offsets_count_messages_from_the_end() {
    let place = place((0..50).map(|number| said(number.to_string())).collect()).await;
    let (gateway, someone) = start(&place).await;
    for (limit, offset, expected, next) in [
        (5, 0, 46..=50, json!(5)),
        (20, 5, 26..=45, json!(25)),
        (20, 40, 1..=10, json!(null)),
        (1_000, 0, 1..=50, json!(null)),
    ] {
        let params = json!({ "sessionKey": KEY, "limit": limit, "offset": offset });
        let page = someone.ask("chat.history", params).await.unwrap();
        assert_eq!(ids(std::slice::from_ref(&page)), expected.collect::<Vec<_>>());
        assert_eq!(page["nextOffset"], next, "{limit} {offset}");
    }
    let past = json!({ "sessionKey": KEY, "offset": 500 });
    let page = someone.ask("chat.history", past).await.unwrap();
    assert_eq!((&page["messages"], &page["nextOffset"]), (&json!([]), &json!(null)));
    gateway.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn images_are_described_and_returned_in_full_on_request() {
    let picture =
        |size: usize| Part::Image { mime_type: "image/png".to_owned(), data: "A".repeat(size) };
    let small = Message::User { parts: vec![Part::ours("look"), picture(4_000)] };
    let large = Message::User { parts: (0..6).map(|_| picture(4 * 1024 * 1024)).collect() };
    let long = said("\u{1}".repeat(4 * 1024 * 1024));
    let place = place(vec![small, large, long]).await;
    let (gateway, someone) = start(&place).await;
    let described = json!({ "type": "image", "mimeType": "image/png", "bytes": 3_000,
                            "omitted": true });
    let parts = |pages: &[Value], id: &str| {
        let mut messages = pages.iter().flat_map(|page| page["messages"].as_array().unwrap());
        messages.find(|message| message["id"] == id).unwrap()["content"].clone()
    };
    let told = pages(&someone, &json!({})).await;
    assert_eq!(ids(&told), [1, 2, 3]);
    assert_eq!(parts(&told, "1")[1], described);
    let told = pages(&someone, &json!({ "includeMedia": true })).await;
    assert_eq!(ids(&told), [1, 2, 3]);
    assert_eq!(parts(&told, "1")[1]["data"].as_str().unwrap().len(), 4_000);
    assert_eq!(parts(&told, "2")[5]["omitted"], true, "no message could hold all of them");
    let text = parts(&told, "3")[0]["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with('…'), "as JSON it has six times its size");
    gateway.stop(Duration::ZERO).await;
}
