//! A model that streams slowly, stalls, or breaks off.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::{KEY, config, running, stop, text};

/// A provider that sends these pieces of every answer immediately and then stalls, or closes the
/// connection.
pub(crate) async fn provider(
    pieces: &'static [&'static str],
    hangs_up: bool,
) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 1024 * 1024];
            let _ = stream.read(&mut request).await;
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            for piece in pieces {
                let chunk = json!({ "choices": [{ "delta": { "content": piece } }] });
                stream.write_all(format!("data: {chunk}\n\n").as_bytes()).await.unwrap();
            }
            if !hangs_up {
                open.push(stream);
            }
        }
    });
    (url, serving)
}

pub(crate) fn talking_to(url: &str) -> Value {
    let mut config: Value = config(&json!({}));
    config["agents"]["defaults"]["model"] = json!("local/slow");
    config["models"]["providers"]["local"] =
        json!({ "baseUrl": url, "api": "openai", "apiKey": "k" });
    config
}

#[tokio::test]
async fn text_before_a_stall_is_streamed_and_stored_when_the_turn_is_aborted() {
    let (url, serving) = provider(&["The ", "sea ", "is "], false).await;
    let (_place, gateway, mut someone) = running(&talking_to(&url)).await;
    someone.send(KEY, "r", "what is the sea like?").await;
    let mut heard = String::new();
    while heard != "The sea is " {
        let chat = someone.hear_of("chat").await;
        assert_eq!(chat["state"], "delta", "{chat}");
        heard.push_str(chat["deltaText"].as_str().unwrap());
    }
    someone.ask("chat.abort", json!({ "sessionKey": KEY })).await.unwrap();
    let end = someone.end_of("r").await;
    assert_eq!((&end["state"], text(&end).as_str()), (&json!("aborted"), "The sea is "));
    let history = someone.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    assert_eq!(history["messages"][1]["content"][0]["text"], "The sea is ");
    stop(&gateway).await;
    serving.abort();
}

#[tokio::test]
async fn a_stream_that_breaks_off_fails_the_turn_and_its_text_is_stored() {
    let (url, serving) = provider(&["The ", "sea "], true).await;
    let (_place, gateway, mut someone) = running(&talking_to(&url)).await;
    someone.send(KEY, "r", "what is the sea like?").await;
    let end = someone.end_of("r").await;
    assert_eq!(end["state"], "error", "{end}");
    assert!(!end["errorMessage"].as_str().unwrap().is_empty(), "{end}");
    let history = someone.ask("chat.history", json!({ "sessionKey": KEY })).await.unwrap();
    assert_eq!(history["messages"][1]["content"][0]["text"], "The sea ");
    stop(&gateway).await;
    serving.abort();
}
