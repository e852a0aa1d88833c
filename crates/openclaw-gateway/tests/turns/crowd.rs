//! Many concurrent sessions.

use futures_util::future::join_all;
use openclaw_protocol::client::Client;
use tokio::time::timeout;

use crate::common::connect_options;
use crate::support::{LONG, Place, Someone, is_end, one_server, text};

/// Sessions per caller.
const EACH: usize = 20;

/// Sends a message with a call in many sessions at once. Returns how many got the right answer.
async fn talk(mut someone: Someone, nth: usize) -> usize {
    let key = |chat: usize| format!("agent:main:crowd-{nth}-{chat}");
    let number = |chat: usize| 10_000 + nth * 1_000 + chat;
    let sent = (0..EACH).map(|chat| {
        let words = format!("/call mcp_x_add {{\"a\":{},\"b\":1}}", number(chat));
        let (someone, key) = (&someone, key(chat));
        async move { someone.send(&key, &key, &words).await }
    });
    for sent in join_all(sent).await {
        assert_eq!(sent["status"], "started");
    }
    let mut right = 0;
    for _ in 0..EACH {
        let chat = loop {
            let chat = someone.hear_of("chat").await;
            if is_end(&chat) {
                break chat;
            }
        };
        let of = (0..EACH).find(|of| chat["sessionKey"] == key(*of)).unwrap();
        let wanted = (number(of) + 1).to_string();
        assert!(chat["state"] == "final" && text(&chat).contains(&wanted), "{chat}");
        right += 1;
    }
    right
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_hundred_conversations_at_once_none_is_lost() {
    let place = Place::new(&one_server());
    let gateway = place.start().await;
    let talks = (0..10).map(|nth| tokio::spawn(talk(Someone::new(&gateway), nth)));
    let right: usize = join_all(talks).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(right, 200);
    timeout(LONG, gateway.stop(LONG)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_hundred_conversations_over_sockets_none_is_lost() {
    let place = Place::new(&one_server());
    let served = place.serve(None).await;
    let options = connect_options(&served);
    let talks = (0..10).map(|nth| {
        let options = options.clone();
        tokio::spawn(async move {
            let client = Client::connect(&options).await.unwrap();
            talk(Someone::remote(client), nth).await
        })
    });
    let right: usize = join_all(talks).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(right, 200);
    timeout(LONG, served.stop(LONG)).await.unwrap();
}
