//! Sessions and entries.

use std::task::Poll;
use std::time::SystemTime;

use openclaw_sessions::{
    EntryKind, ListFilter, MAX_BODY_BYTES, MAX_BODY_DEPTH, MAX_ENTRIES_AT_ONCE, NewEntry,
    ReadFilter, SessionField, SessionStore, StoreError,
};
use serde_json::{Value, json};

use crate::support::{folder, key, message, note, opened, store};

#[tokio::test]
async fn a_key_continues_a_conversation_in_the_next_run() {
    let (_folder, path) = folder();
    let main = key("agent:main:main");
    let before = SystemTime::now() - std::time::Duration::from_secs(1);
    {
        let store = store(&path).await;
        let session = store.open(&main, "main").await.unwrap();
        assert_eq!((session.agent.as_str(), session.entries), ("main", 0));
        assert!(session.created_at > before);
        let entries = vec![message("Hello").of_run("r1"), note(json!({"cost": 0.1}))];
        assert_eq!(store.append(&main, entries).await.unwrap(), [1, 2]);
    }
    let store = store(&path).await;
    let session = store.open(&main, "main").await.unwrap();
    assert_eq!(session.entries, 2);
    let entries = store.read(&main, ReadFilter::all()).await.unwrap();
    assert_eq!(entries[0].body, json!({"role": "user", "text": "Hello"}));
    assert_eq!((entries[0].seq, entries[0].kind), (1, EntryKind::Message));
    assert_eq!(entries[0].run.as_deref(), Some("r1"));
    assert_eq!((entries[1].seq, entries[1].kind), (2, EntryKind::Note));
    assert!(entries[0].at > before);
    assert_eq!(store.append(&main, vec![message("again")]).await.unwrap(), [3]);
}

#[tokio::test]
async fn a_store_can_be_used_without_knowing_which_it_is() {
    let (_folder, path) = folder();
    let store: std::sync::Arc<dyn SessionStore> = std::sync::Arc::new(store(&path).await);
    let task = tokio::spawn(async move { store.open(&key("k"), "main").await.unwrap().entries });
    assert_eq!(task.await.unwrap(), 0);
}

#[tokio::test]
async fn missing_sessions_are_none_empty_or_an_error() {
    let (_folder, path) = folder();
    let store = store(&path).await;
    let nothing = key("nothing");
    for made in [false, true] {
        if made {
            store.open(&key("something"), "main").await.unwrap();
        }
        assert_eq!(store.get(&nothing).await.unwrap(), None);
        assert_eq!(store.read(&nothing, ReadFilter::all()).await.unwrap(), []);
        assert!(!store.delete(&nothing).await.unwrap());
    }
    let appended = store.append(&nothing, vec![message("x")]).await;
    assert!(matches!(appended, Err(StoreError::NoSession { .. })));
    assert!(matches!(
        store.set(&nothing, SessionField::Title, None).await,
        Err(StoreError::NoSession { .. })
    ));
    // The store stays usable afterwards.
    assert_eq!(store.append(&key("something"), vec![message("x")]).await.unwrap(), [1]);
}

#[tokio::test]
async fn a_session_of_another_agent_is_not_opened() {
    let (_folder, path) = folder();
    let store = store(&path).await;
    store.open(&key("k"), "main").await.unwrap();
    let error = store.open(&key("k"), "other").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "session `k` belongs to agent `main`; use that agent or another session"
    );
}

#[tokio::test]
async fn a_part_of_a_session_can_be_read() {
    let (_folder, _path, store, k) = opened().await;
    store.append(&k, (1..=10).map(|n| note(json!(n))).collect()).await.unwrap();
    let numbers = async |filter| {
        let entries = store.read(&k, filter).await.unwrap();
        entries.iter().map(|entry| entry.seq).collect::<Vec<_>>()
    };
    assert_eq!(numbers(ReadFilter::from(8)).await, [8, 9, 10]);
    assert_eq!(numbers(ReadFilter::last(2)).await, [9, 10]);
    assert_eq!(numbers(ReadFilter { limit: 3, ..ReadFilter::from(4) }).await, [4, 5, 6]);
    assert_eq!(numbers(ReadFilter { from_seq: 9, ..ReadFilter::last(5) }).await, [9, 10]);
    assert_eq!(numbers(ReadFilter::from(11)).await, [0; 0]);
    assert_eq!(numbers(ReadFilter::from(u64::MAX)).await, [0; 0]);
    assert_eq!(numbers(ReadFilter::last(0)).await, [0; 0]);
}

#[tokio::test]
async fn sessions_are_listed_newest_first_page_by_page() {
    let (_folder, path) = folder();
    let store = store(&path).await;
    for name in ["a", "b", "c", "d", "e"] {
        let agent = if name == "c" { "other" } else { "main" };
        store.open(&key(name), agent).await.unwrap();
    }
    store.append(&key("b"), vec![message("x")]).await.unwrap();
    let list = async |filter: ListFilter| store.list(filter).await.unwrap();
    let keys = |sessions: &[openclaw_sessions::Session]| {
        sessions.iter().map(|session| session.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&list(ListFilter::default()).await), ["b", "e", "d", "c", "a"]);
    let of_main = ListFilter { agent: Some("main".into()), limit: 2, before: None };
    let first = list(of_main.clone()).await;
    assert_eq!(keys(&first), ["b", "e"]);
    // A session that moves to the front in the meantime is not listed twice, and a removed one
    // leaves no gap.
    store.append(&key("e"), vec![message("x")]).await.unwrap();
    store.delete(&key("b")).await.unwrap();
    let second = list(ListFilter { before: Some(first[1].position()), ..of_main }).await;
    assert_eq!(keys(&second), ["d", "a"]);
}

#[tokio::test]
async fn a_title_a_model_a_mode_and_a_folder_can_be_given_and_taken_without_moving_the_session() {
    let (_folder, path) = folder();
    let (store, k) = (store(&path).await, key("k"));
    let made = store.open(&k, "main").await.unwrap();
    store.set(&k, SessionField::Title, Some("Plans")).await.unwrap();
    store.set(&k, SessionField::Model, Some("m1")).await.unwrap();
    store.set(&k, SessionField::Permission, Some("read-only")).await.unwrap();
    store.set(&k, SessionField::Folder, Some("/project")).await.unwrap();
    let session = store.get(&k).await.unwrap().unwrap();
    assert_eq!((session.title.as_deref(), session.model.as_deref()), (Some("Plans"), Some("m1")));
    assert_eq!(session.permission.as_deref(), Some("read-only"));
    assert_eq!(session.folder.as_deref(), Some("/project"));
    assert_eq!(session.updated_at, made.updated_at);
    store.set(&k, SessionField::Title, None).await.unwrap();
    store.set(&k, SessionField::Permission, None).await.unwrap();
    let session = store.get(&k).await.unwrap().unwrap();
    assert_eq!((session.title, session.permission), (None, None));
}

#[tokio::test]
async fn a_deleted_session_is_gone_with_its_entries_and_its_key_starts_empty() {
    let (_folder, path, store, k) = opened().await;
    store.append(&k, vec![message("unforgettable")]).await.unwrap();
    assert!(store.delete(&k).await.unwrap());
    assert!(!store.delete(&k).await.unwrap());
    assert_eq!(store.open(&k, "main").await.unwrap().entries, 0);
    assert_eq!(store.read(&k, ReadFilter::all()).await.unwrap(), []);
    store.close().await;
    // Not even in the file.
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(13).any(|window| window == b"unforgettable"));
}

#[tokio::test]
async fn a_body_comes_back_as_it_was() {
    let (_folder, _path, store, k) = opened().await;
    let deep = (1..MAX_BODY_DEPTH).fold(json!([]), |inside, _| json!([inside]));
    let bodies = [
        json!(null),
        json!({"z": 1, "a": 2, "ключ": "\u{0}\u{feff}\n'\""}),
        json!([0.1, 1e-7, 123_456_789.123_456_79, 5e-324, f64::MAX, u64::MAX, i64::MIN]),
        deep,
    ];
    let entries = bodies.iter().cloned().map(note).collect();
    store.append(&k, entries).await.unwrap();
    let read = store.read(&k, ReadFilter::all()).await.unwrap();
    assert_eq!(read.iter().map(|entry| &entry.body).collect::<Vec<_>>(), bodies.each_ref());
    // Keys keep their order.
    assert!(read[1].body.to_string().starts_with(r#"{"z":1,"a":2"#));
}

#[tokio::test]
async fn of_entries_that_are_too_large_none_is_appended() {
    let (_folder, _path, store, k) = opened().await;
    let large = Value::String("x".repeat(MAX_BODY_BYTES - 2));
    assert_eq!(store.append(&k, vec![note(large)]).await.unwrap(), [1]);

    let too_large = note(Value::String("x".repeat(MAX_BODY_BYTES - 1)));
    let error = store.append(&k, vec![message("fine"), too_large]).await.unwrap_err();
    assert_eq!(error.to_string(), "the body of an entry has 33554433 bytes; the limit is 33554432");
    let too_deep = (0..MAX_BODY_DEPTH).fold(json!([]), |inside, _| json!([inside]));
    let error = store.append(&k, vec![message("fine"), note(too_deep)]).await.unwrap_err();
    assert!(matches!(error, StoreError::TooDeep { .. }));
    let too_many = vec![message("fine"); MAX_ENTRIES_AT_ONCE + 1];
    assert!(matches!(store.append(&k, too_many).await, Err(StoreError::TooMany { .. })));
    let long_run = message("fine").of_run("r".repeat(1_000));
    assert!(matches!(store.append(&k, vec![long_run]).await, Err(StoreError::TooLong { .. })));
    assert_eq!(store.get(&k).await.unwrap().unwrap().entries, 1);
}

#[tokio::test]
async fn large_entries_are_read_in_several_pages() {
    let (_folder, _path, store, k) = opened().await;
    for _ in 0..4 {
        let large = NewEntry::new(EntryKind::Message, Value::String("x".repeat(25 << 20)));
        store.append(&k, vec![large]).await.unwrap();
    }
    let mut numbers = Vec::new();
    let mut goes = 0;
    loop {
        let next = numbers.last().map_or(1, |last| last + 1);
        let entries = store.read(&k, ReadFilter::from(next)).await.unwrap();
        if entries.is_empty() {
            break;
        }
        goes += 1;
        numbers.extend(entries.iter().map(|entry| entry.seq));
    }
    assert_eq!((numbers, goes), (vec![1, 2, 3, 4], 2));
}

#[tokio::test]
async fn tasks_of_one_process_append_at_once_without_gaps() {
    let (_folder, _path, store, k) = opened().await;
    let appends = (0..50).map(|_| store.append(&k, vec![message("x"), message("y")]));
    let mut numbers: Vec<u64> =
        futures_util::future::try_join_all(appends).await.unwrap().into_iter().flatten().collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_dropped_append_is_made_as_a_whole_or_not_at_all() {
    let (_folder, _path, store, k) = opened().await;
    for polls in 0..40 {
        let mut append = store.append(&k, vec![message("x"); 10]);
        let mut polled = 0;
        let some_of_it = std::future::poll_fn(|context| {
            polled += 1;
            if polled > polls { Poll::Ready(()) } else { append.as_mut().poll(context).map(drop) }
        });
        some_of_it.await;
        drop(append);
        let entries = store.read(&k, ReadFilter::all()).await.unwrap();
        assert_eq!(entries.len() % 10, 0);
    }
    let last = store.append(&k, vec![message("x")]).await.unwrap()[0];
    let session = store.get(&k).await.unwrap().unwrap();
    assert_eq!((last % 10, session.entries), (1, last));
}
