use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use openclaw_protocol::{ErrorShape, Event, EventSender, Method, Request, Response, names};
use openclaw_trace::SpanContext;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::*;
use crate::exit::Exit;

/// A gateway that sends scripted events when it receives a message.
#[derive(Debug)]
struct Scripted {
    events: Mutex<Option<EventSender>>,
    script: Vec<(&'static str, Value)>,
    /// The statuses that `chat.send` returns, in order.
    statuses: Mutex<VecDeque<&'static str>>,
    /// Whether the connection is closed after the script.
    leaves: bool,
}

impl Scripted {
    fn new(capacity: usize, script: Vec<(&'static str, Value)>) -> Self {
        Self {
            events: Mutex::new(Some(EventSender::new(capacity))),
            script,
            statuses: Mutex::new(["started"].into()),
            leaves: false,
        }
    }

    fn send(&self) -> Value {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let status = statuses.pop_front().unwrap();
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if status == "started" {
            for (name, payload) in &self.script {
                let event = Event::from_json(*name, to_raw_value(payload).unwrap());
                events.as_ref().unwrap().tell(event);
            }
        }
        if self.leaves {
            *events = None;
        }
        json!({ "runId": "run", "status": status })
    }
}

impl Surface for Scripted {
    fn call_in(
        &self,
        request: Request,
        _: Option<SpanContext>,
    ) -> BoxFuture<'_, Result<Response, RequestError>> {
        let method = request.method();
        let answer = match method {
            Method::ChatSend => self.send(),
            Method::ChatHistory => {
                let said = json!([{ "type": "text", "text": "from the history" }]);
                let message = json!({ "role": "assistant", "content": said });
                json!({ "sessionKey": "key", "messages": [message] })
            }
            other => {
                let unknown = ErrorShape::unknown_method(other.name());
                return Box::pin(async move { Err(unknown.into()) });
            }
        };
        let answer = to_raw_value(&answer).unwrap();
        Box::pin(async move { Ok(Response::read(method, &answer).unwrap()) })
    }

    fn events(&self) -> EventReceiver {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.as_ref().unwrap().listen()
    }
}

fn chat(run: &str, state: &Value) -> (&'static str, Value) {
    let mut event = json!({ "runId": run, "sessionKey": "key", "seq": 1 });
    event.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
    (names::CHAT, event)
}

fn tool(data: &Value) -> (&'static str, Value) {
    (names::AGENT, json!({ "runId": "run", "seq": 1, "stream": "tool", "ts": 1, "data": data }))
}

fn delta(text: &str) -> Value {
    json!({ "state": "delta", "deltaText": text })
}

fn last(text: &str) -> Value {
    let message = json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] });
    json!({ "state": "final", "message": message, "stopReason": "done" })
}

async fn begin(surface: &Scripted) -> FollowedTurn<'_> {
    let words = OutgoingMessage {
        session: "key".to_owned(),
        agent: None,
        message: "hello".to_owned(),
        is_plain: false,
        timeout: None,
        workspace: None,
        attachments: Vec::new(),
        span: openclaw_trace::Span::default(),
    };
    FollowedTurn::begin(surface, words).await.unwrap()
}

async fn answer(turn: &mut FollowedTurn<'_>) -> TurnOutcome {
    loop {
        if let TurnEvent::Over(answer) = turn.next().await {
            return *answer;
        }
    }
}

#[tokio::test]
async fn a_turn_is_followed_to_its_end() {
    let surface = Scripted::new(
        64,
        vec![
            chat("run", &delta("I add. ")),
            tool(
                &json!({ "phase": "start", "toolCallId": "1", "name": "add", "args": { "a": 2 } }),
            ),
            tool(&json!({ "phase": "update", "toolCallId": "1", "name": "add",
                     "progress": { "done": 2.0, "percent": 40.0, "message": "carrying\u{1b}[2J" } })),
            tool(&json!({ "phase": "result", "toolCallId": "1", "name": "add", "isError": false,
                     "text": "5", "durationMs": 1.5, "failure": null, "keptIn": null })),
            chat("run", &last("It is 5.")),
        ],
    );
    let mut turn = begin(&surface).await;
    assert!(matches!(turn.next().await, TurnEvent::Text(text) if text == "I add. "));
    assert!(matches!(turn.next().await, TurnEvent::Called(call) if call.asked() == "add(a=2)"));
    let TurnEvent::Advanced(call) = turn.next().await else {
        panic!("expected progress of the call")
    };
    let progress = call.progress.as_ref().map(|progress| progress.words());
    assert_eq!(
        (call.asked().as_str(), progress.as_deref()),
        ("add(a=2)", Some("40%  carrying[2J"))
    );
    let TurnEvent::Returned(call) = turn.next().await else {
        panic!("expected the result of the call")
    };
    assert_eq!((call.asked().as_str(), call.result()), ("add(a=2)", "5"));
    let answer = answer(&mut turn).await;
    assert_eq!((answer.ending, answer.text.as_str()), (TurnStatus::Done, "It is 5."));
    assert_eq!(answer.calls.len(), 1);
}

#[tokio::test]
async fn events_of_other_runs_are_ignored() {
    let surface = Scripted::new(
        64,
        vec![
            chat("other", &delta("not for us")),
            chat("other", &last("nor this")),
            ("something.new", json!({ "of": "a newer gateway" })),
            chat("run", &last("ours")),
        ],
    );
    let mut turn = begin(&surface).await;
    assert!(matches!(turn.next().await, TurnEvent::Over(answer) if answer.text == "ours"));
}

#[tokio::test]
async fn cancellation_and_failure_are_reported() {
    let cases = [
        (json!({ "state": "aborted", "stopReason": "cancelled" }), TurnStatus::Cancelled),
        (
            json!({ "state": "error", "errorMessage": "no", "errorKind": "timeout" }),
            TurnStatus::TimedOut,
        ),
        (json!({ "state": "error", "errorMessage": "no" }), TurnStatus::Failed),
        (json!({ "state": "final", "stopReason": "too-many-rounds" }), TurnStatus::Short),
        (json!({ "state": "final", "stopReason": "refused" }), TurnStatus::Failed),
    ];
    for (state, ending) in cases {
        let surface = Scripted::new(64, vec![chat("run", &state)]);
        let answer = answer(&mut begin(&surface).await).await;
        assert_eq!(answer.ending, ending);
        assert!(answer.trouble().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_end_is_polled_for() {
    // The end is lost, because the queue of events overflows.
    let mut script = vec![chat("run", &last("lost"))];
    script.extend((0..8).map(|_| chat("other", &delta("noise"))));
    let surface = Scripted::new(2, script);
    *surface.statuses.lock().unwrap() = ["started", "in_flight", "ok"].into();
    let answer = answer(&mut begin(&surface).await).await;
    assert_eq!((answer.ending, answer.text.as_str()), (TurnStatus::Done, "from the history"));
}

#[tokio::test]
async fn a_lost_connection_ends_the_turn() {
    let surface = Scripted { leaves: true, ..Scripted::new(64, vec![chat("run", &delta("I"))]) };
    let answer = answer(&mut begin(&surface).await).await;
    assert_eq!((answer.ending, answer.ending.exit()), (TurnStatus::Gone, Exit::Unavailable));
    assert_eq!(answer.trouble().as_deref(), Some("the connection to the gateway was lost"));
    assert_eq!(answer.text, "I", "the streamed text is kept");
}

#[tokio::test]
async fn the_streamed_text_of_a_failed_turn_is_its_answer() {
    let broken = json!({ "state": "error", "errorMessage": "it broke off" });
    let call = json!({ "phase": "start", "toolCallId": "1", "name": "add", "args": {} });
    let script = vec![
        chat("run", &delta("I add. ")),
        tool(&call),
        chat("run", &delta("Half an ")),
        chat("run", &delta("ans")),
        chat("run", &broken),
    ];
    let surface = Scripted::new(64, script);
    let answer = answer(&mut begin(&surface).await).await;
    assert_eq!((answer.ending, answer.text.as_str()), (TurnStatus::Failed, "Half an ans"));
    assert_eq!(answer.content, json!([{ "type": "text", "text": "Half an ans" }]));
    assert_eq!(answer.trouble().as_deref(), Some("it broke off"));
}

#[tokio::test]
async fn an_answer_without_content_is_empty() {
    for (said, is_empty) in [(" ", true), ("no", false)] {
        let surface = Scripted::new(64, vec![chat("run", &last(said))]);
        assert_eq!(answer(&mut begin(&surface).await).await.is_empty(), is_empty);
    }
}
