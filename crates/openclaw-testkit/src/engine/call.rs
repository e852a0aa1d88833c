//! Executes calls: directly, or with the faults of the script.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::message::{Request, error, notification, params, response, text_members};
use super::session::Cancel;
use super::{Engine, Incoming, Outbox, Session, tools};
use crate::script::{Ask, RpcError};

/// How often a waiting call checks whether its stream is still open.
const LOOK: Duration = Duration::from_millis(20);

/// The ids of the URLs that an error requires to be visited.
fn visit_ids(problem: &RpcError) -> Vec<&Value> {
    let visits = problem.data.as_ref().and_then(|data| data["elicitations"].as_array());
    visits.into_iter().flatten().filter_map(|visit| visit.get("elicitationId")).collect()
}

/// A request to the client.
pub(super) struct Question {
    method: String,
    params: String,
}

impl Engine {
    pub(super) fn call(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: &Request<'_>,
        line: &[u8],
        out: &Arc<dyn Outbox>,
    ) {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(refusal) = self.refusal(session, request) {
            return out.send(error(request.id.get(), &refusal));
        }
        if let Some(task) = self.script.calls.task {
            return match self.create_task(request, task) {
                Ok(members) => out.send(response(request.id.get(), &members, request.modern)),
                Err(problem) => out.send(error(request.id.get(), &problem)),
            };
        }
        let name = request.name();
        if name == "crash" {
            out.flush();
        }
        let knobs = &self.script.calls;
        if matches!(name, "sleep" | "ask") || knobs.delay_ms > 0 || knobs.ask.is_some() {
            // Registered before the thread starts: the cancellation may be the next line.
            let cancel = session.begin(request.id.get());
            let (engine, session, out) = (Arc::clone(self), Arc::clone(session), Arc::clone(out));
            let line = line.to_vec();
            thread::spawn(move || engine.slow_call(&session, &line, &out, &cancel, number));
        } else if self.plain {
            match tools::run(self, request) {
                Ok(members) => out.send(response(request.id.get(), &members, request.modern)),
                Err(problem) => out.send(error(request.id.get(), &problem)),
            }
        } else {
            let answer = self.run(request);
            self.reply(request, answer, out, number);
        }
    }

    /// Runs a call that takes time; called on its own thread.
    fn slow_call(
        &self,
        session: &Session,
        line: &[u8],
        out: &Arc<dyn Outbox>,
        cancel: &Cancel,
        number: u64,
    ) {
        // Parsed before: this cannot fail.
        let Ok(message) = serde_json::from_slice::<Incoming<'_>>(line) else { return };
        let (Some(id), Ok(params)) = (message.id, params(message.params)) else { return };
        let modern = self.modern && params.meta.version.is_some();
        let request = Request { id, params, modern };
        let cancelled = self.wait(&request, out, cancel);
        session.end(id.get());
        if cancelled && !self.script.calls.stubborn {
            return;
        }
        let answer = match self.question(&request) {
            Some(question) if modern && question.method != "ping" => {
                Ok(Self::require_input(&request, &question))
            }
            Some(question) => Ok(self.ask(session, &request, &question, out)),
            None => self.run(&request),
        };
        self.reply(&request, answer, out, number);
    }

    /// Waits for the duration of the call and sends progress; returns `true` if it was cancelled.
    fn wait(&self, request: &Request<'_>, out: &Arc<dyn Outbox>, cancel: &Cancel) -> bool {
        let arguments = tools::arguments(request);
        let sleep = if request.name() == "sleep" { arguments.ms.unwrap_or(0) } else { 0 };
        let total = sleep + self.script.calls.delay_ms;
        let every = Duration::from_millis(arguments.every.unwrap_or(100).max(1));
        let start = Instant::now();
        let end = start + Duration::from_millis(total);
        let mut progress_at = start + every;
        loop {
            let until = end.min(progress_at).min(Instant::now() + LOOK);
            if cancel.wait_until(until) {
                return true;
            }
            if out.is_closed() {
                let id = request.id.get();
                self.record(format!(r#"{{"closed":{id}}}"#).as_bytes());
                return true;
            }
            let now = Instant::now();
            // Progress that is due is sent even if the machine was busy until the end.
            if now >= progress_at && progress_at < end {
                progress_at += every;
                if let Some(token) = request.params.meta.progress_token {
                    let done = now.duration_since(start).as_millis();
                    let token = token.get();
                    out.send(
                        format!(
                            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{done},"total":{total}}}}}"#
                        )
                        .into_bytes(),
                    );
                }
            }
            if now >= end {
                return false;
            }
        }
    }

    pub(super) fn question(&self, request: &Request<'_>) -> Option<Question> {
        let of = |ask: Ask| {
            let params = ask.params(request.modern).to_string();
            Question { method: ask.method().into(), params }
        };
        if request.name() != "ask" {
            return self.script.calls.ask.map(of);
        }
        let arguments = tools::arguments(request);
        let method = arguments.method.map(|method| method.0.into_owned()).unwrap_or_default();
        // `{"method": "sampling"}` is short for the whole request.
        if let Ok(ask) = serde_json::from_value::<Ask>(Value::String(method.clone())) {
            return Some(of(ask));
        }
        let params = arguments.params.map_or("{}", RawValue::get).to_owned();
        Some(Question { method, params })
    }

    /// Sends the request to the client; its response is the result of the call.
    pub(super) fn ask(
        &self,
        session: &Session,
        request: &Request<'_>,
        question: &Question,
        out: &Arc<dyn Outbox>,
    ) -> Vec<u8> {
        let id = if self.script.calls.ask_with_client_id {
            request.id.get().to_owned()
        } else {
            (7000 + self.questions.fetch_add(1, Ordering::Relaxed)).to_string()
        };
        let Question { method, params } = question;
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let reply = session.ask(&id, || out.send(line.into_bytes()));
        let reply = reply.and_then(|line| serde_json::from_slice::<Value>(&line).ok());
        if self.script.calls.ask == Some(Ask::ElicitationUrl) {
            // The user has visited it meanwhile.
            let visited = json!({ "elicitationId": "elicitation-1" });
            out.send(notification("notifications/elicitation/complete", &visited));
        }
        let part = |key| reply.as_ref().and_then(|reply| reply.get(key)).map(|it| (key, it));
        match part("result").or_else(|| part("error")) {
            Some((key, value)) => text_members(&json!({key: value}).to_string()),
            None => text_members("no reply"),
        }
    }

    /// Like [`ask`](Self::ask), on 2026-07-28: the client retries the call with the requested input,
    /// and with the state byte for byte.
    fn require_input(request: &Request<'_>, question: &Question) -> Vec<u8> {
        const STATE: &str = "asked once: \"é\\/\u{1f980}\"";
        match request.params.request_state.as_ref().map(|state| &*state.0) {
            None => {}
            Some(STATE) => {
                return text_members(request.params.input_responses.map_or("none", RawValue::get));
            }
            Some(given) => return text_members(&format!("the state was changed: {given}")),
        }
        let Question { method, params } = question;
        let state = Value::from(STATE);
        format!(
            r#""resultType":"input_required","inputRequests":{{"question":{{"method":"{method}","params":{params}}}}},"requestState":{state}"#
        )
        .into_bytes()
    }

    fn run(&self, request: &Request<'_>) -> Result<Vec<u8>, RpcError> {
        let name = request.name();
        if self.script.process.stderr_per_call {
            crate::process::say(&format!("call of {name}"));
        }
        if self.script.calls.unknown_tools.iter().any(|unknown| unknown == name) {
            return Err(tools::unknown(name));
        }
        match &self.script.calls.error {
            Some(problem) => Err(problem.clone()),
            None => tools::run(self, request),
        }
    }

    /// Sends the response to a call, with the extra messages of the script.
    fn reply(
        &self,
        request: &Request<'_>,
        answer: Result<Vec<u8>, RpcError>,
        out: &Arc<dyn Outbox>,
        number: u64,
    ) {
        let knobs = &self.script.calls;
        let mut id = request.id.get().to_owned();
        if knobs.string_ids && !id.starts_with('"') {
            id = format!("\"{id}\"");
        }
        if knobs.wrong_id {
            id = format!("\"wrong-{number}\"");
        }
        let visits = match &answer {
            // The user has visited the URLs meanwhile.
            Err(problem) if number > 1 => visit_ids(problem),
            _ => Vec::new(),
        };
        for id in visits {
            let visited = json!({ "elicitationId": id });
            out.send(notification("notifications/elicitation/complete", &visited));
        }
        let line = match answer {
            Ok(members) => response(&id, &members, request.modern),
            Err(problem) => error(&id, &problem),
        };
        let log = || {
            let data = json!({"level": "info", "logger": "test", "data": format!("call {number}")});
            notification("notifications/message", &data)
        };
        flood(knobs.flood, out);
        if knobs.log {
            out.send(log());
        }
        if knobs.unsolicited {
            out.send(response("424242", br#""content":[{"type":"text","text":"WRONG"}]"#, false));
        }
        for _ in 0..if knobs.answer_twice { 2 } else { 1 } {
            if knobs.batch {
                out.send([b"[".as_slice(), &log(), b",", &line, b"]"].concat());
            } else {
                out.send(line.clone());
            }
        }
        if self.script.catalogue.subscriptions {
            self.update_resources();
        }
        if knobs.list_changed_after == Some(number) {
            self.change();
        }
        if knobs.crash_after.is_some_and(|after| number >= after) {
            if !out.flush() {
                thread::sleep(Duration::from_millis(100));
            }
            std::process::exit(1);
        }
    }

    /// Changes the tool list and notifies all listeners.
    fn change(&self) {
        self.changed.store(true, Ordering::Relaxed);
        self.broadcast(|session, listener| {
            let params = match &listener.subscription {
                Some(id) => {
                    format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#)
                }
                None if session.is_initialized() => "{}".to_owned(),
                None => return None,
            };
            let method = "notifications/tools/list_changed";
            Some(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#).into())
        });
    }
}

/// Sends this many requests, many in one write.
fn flood(requests: usize, out: &Arc<dyn Outbox>) {
    const AT_ONCE: usize = 500;
    for first in (0..requests).step_by(AT_ONCE) {
        let numbers = first..requests.min(first + AT_ONCE);
        let lines: Vec<_> = numbers
            .map(|number| format!(r#"{{"jsonrpc":"2.0","id":"f{number}","method":"roots/list"}}"#))
            .collect();
        out.send(lines.join("\n").into_bytes());
        out.flush();
    }
}
