//! Calls without a future.

use openclaw_metrics::CallSample;
use openclaw_secrets::Redactor;

use super::*;

/// Begins a call. Returns whether it was started, whether it has an outcome, and its audit log lines;
/// a call that hangs is cancelled.
async fn begun(shop: &Shop, name: &str, arguments: &str) -> (bool, bool, Vec<Value>) {
    let logged = Logged::new();
    let (is_started, is_done) = begin(&logged.pipeline, shop, name, arguments, |_| {});
    (is_started, is_done, logged.lines().await)
}

/// Begins a call. Returns whether it was started, and whether it has an outcome; a call that hangs is
/// cancelled after `meanwhile`.
fn begin(
    pipeline: &Pipeline,
    shop: &Shop,
    name: &str,
    arguments: &str,
    meanwhile: impl FnOnce(&StartedCall),
) -> (bool, bool) {
    let approver = Answers(YES);
    let consent = Consent::Ask { approver: &approver, fallback: Fallback::Deny };
    let session = Some("s");
    let context = CallContext { session, consent, ..CallContext::by_hand("test") };
    let call = Call { name, arguments: Given::Text(arguments) };
    let ended = Arc::new(AtomicUsize::new(0));
    let done = || {
        let ended = Arc::clone(&ended);
        move |_: ToolOutcome| {
            ended.fetch_add(1, Ordering::Relaxed);
        }
    };
    let started = pipeline.begin(shop, call, &context, Instant::now(), done);
    let is_started = started.is_some();
    if let Some(started) = started.filter(|_| shop.0.hangs) {
        meanwhile(&started);
        assert!(started.cancel() && !started.cancel());
    }
    (is_started, ended.load(Ordering::Relaxed) == 1)
}

#[tokio::test]
async fn a_call_without_a_future_leaves_one_line_also_if_it_is_cancelled() {
    for (hangs, outcome) in [(false, "ok"), (true, "cancelled")] {
        let shop = Shop::with(|tool| tool.hangs = hangs);
        let (is_started, is_done, lines) = begun(&shop, "push", r#"{"to":"x"}"#).await;
        assert!(is_started && is_done != hangs);
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((&line["outcome"], &line["who"]), (&json!(outcome), &json!("test")));
        assert_eq!((&line["session"], &line["server"]), (&json!("s"), &json!("shop")));
        assert_eq!((&line["tool"], &line["agent"]), (&json!("push"), &Value::Null));
    }
}

#[tokio::test]
async fn what_is_refused_or_has_to_be_asked_is_left_to_a_future() {
    type Change = fn(&mut ScriptedTool);
    let table: [(Change, &str, &str); 7] = [
        (|_| {}, "pull", "{}"),
        (|_| {}, "push", r#"{"to":5}"#),
        (|tool| tool.decision = Decision::Denied { by: "x".to_owned() }, "push", "{}"),
        (|tool| tool.flaw = Some("x".to_owned()), "push", "{}"),
        (|tool| tool.pin = Pin::Changed, "push", "{}"),
        (|tool| tool.rule = ApprovalRule::Always, "push", "{}"),
        (|tool| tool.limit = Err("later".to_owned()), "push", "{}"),
    ];
    for (change, name, arguments) in table {
        let shop = Shop::with(change);
        let (is_started, is_done, lines) = begun(&shop, name, arguments).await;
        assert!(!is_started && !is_done && lines.is_empty(), "{name} {arguments}");
        assert_eq!(shop.0.executed.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn calls_without_a_future_are_counted_like_others() {
    let metrics = Metrics::on(Redactor::new());
    // The calls of servers that do not run are dropped.
    let _server = metrics.server("shop");
    let pipeline = Pipeline::new(Audit::none()).counted_in(metrics.clone());
    let counted = || {
        let sample = metrics.sample().unwrap();
        let [tool] = sample.tools.as_slice() else { panic!("{sample:?}") };
        let CallSample { calls, errors, in_flight, durations } = &tool.calls;
        (*calls, *errors, *in_flight, durations.count())
    };
    let fails = Shop::with(|tool| tool.failure = Some(ToolFailure::TimedOut));
    let (hangs, ends) = (Shop::with(|tool| tool.hangs = true), Shop::with(|_| {}));
    begin(&pipeline, &ends, "push", "{}", |_| {});
    assert_eq!(counted(), (1, 0, 0, 1));
    begin(&pipeline, &fails, "push", "{}", |_| {});
    assert_eq!(counted(), (2, 1, 0, 2));
    begin(&pipeline, &hangs, "push", "{}", |_| assert_eq!(counted(), (2, 1, 1, 2)));
    assert_eq!(counted(), (3, 2, 0, 2), "it was cancelled");
    let denied = Shop::with(|tool| tool.decision = Decision::Denied { by: "x".to_owned() });
    begin(&pipeline, &denied, "push", "{}", |_| {});
    assert_eq!(counted(), (3, 2, 0, 2), "it was not started: a future refuses and counts it");
}
