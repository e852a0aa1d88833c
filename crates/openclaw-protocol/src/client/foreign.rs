//! A gateway of another program (the Node OpenClaw) in the terms of ours: results of tools, stored
//! messages and approvals have other shapes there. Front ends know only ours.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::Client;
use crate::approvals::{
    AlwaysChoice, Approval, ApprovalKind, Decision, ListResult, PassResult, RespondParams,
    RespondResult, Severity,
};
use crate::chat::{HistoryParams, HistoryResult};
use crate::error::ErrorShape;
use crate::event::names;
use crate::method::{Request, Response};

/// The kinds of approvals there. Each has its own methods and events.
const KINDS: [&str; 2] = ["exec", "plugin"];
/// The tool that approvals of the kind `exec` are about.
const EXEC: &str = "exec";

/// Translates an event.
pub(super) fn event(name: String, payload: Box<RawValue>) -> (String, Box<RawValue>) {
    let translated = match name.split_once(".approval.") {
        _ if name == names::AGENT => tool_result(&payload).map(|payload| (name.clone(), payload)),
        Some((kind, "requested")) => {
            let approval = serde_json::from_str(payload.get()).ok().and_then(|it| asked(kind, it));
            let payload = approval.and_then(|approval| to_raw_value(&approval).ok());
            payload.map(|payload| (names::APPROVAL_REQUESTED.to_owned(), payload))
        }
        Some((kind, "resolved")) => {
            resolved(kind, &payload).map(|it| (names::APPROVAL_RESOLVED.to_owned(), it))
        }
        _ => None,
    };
    translated.unwrap_or((name, payload))
}

/// Answers a request whose method is missing there, or has another shape. `Err` returns the request
/// that can be sent as it is.
pub(super) async fn call(
    client: &Client,
    request: Request,
) -> Result<Result<Response, ErrorShape>, Request> {
    Ok(match request {
        Request::ApprovalsRespond(params) => {
            respond(client, params).await.map(Response::ApprovalsRespond)
        }
        Request::ApprovalsList(params) => {
            let mut approvals = Vec::new();
            for kind in KINDS {
                approvals.extend(pending(client, kind).await);
            }
            let session = params.session_key;
            approvals.retain(|it| session.is_none() || it.session_key == session);
            Ok(Response::ApprovalsList(ListResult { approvals }))
        }
        // There, a request waits for a client that decides, or expires.
        Request::ApprovalsPass(params) => {
            Ok(Response::ApprovalsPass(PassResult { ok: true, id: params.id }))
        }
        // Media are always described there.
        Request::ChatHistory(params) if params.include_media.is_some() => {
            return Err(Request::ChatHistory(HistoryParams { include_media: None, ..params }));
        }
        other => return Err(other),
    })
}

/// Translates a result.
pub(super) fn response(response: Response) -> Response {
    match response {
        Response::ChatHistory(history) => {
            let messages = history.messages.into_iter().map(message).collect();
            Response::ChatHistory(HistoryResult { messages, ..history })
        }
        other => other,
    }
}

/// Adds the text of a tool's result to its event.
fn tool_result(payload: &RawValue) -> Option<Box<RawValue>> {
    // Most events are pieces of text: they are not parsed.
    if !payload.get().contains("\"result\"") {
        return None;
    }
    let mut event: Value = serde_json::from_str(payload.get()).ok()?;
    if event["stream"] != "tool" || event["data"]["phase"] != "result" {
        return None;
    }
    let text = texts(&event["data"]["result"]["content"]);
    event["data"]["text"] = json!(text);
    to_raw_value(&event).ok()
}

fn texts(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// Translates a stored message: the content is a list, and results of tools are parts.
fn message(message: Box<RawValue>) -> Box<RawValue> {
    let translate = || {
        let mut value: Value = serde_json::from_str(message.get()).ok()?;
        if let Some(text) = value["content"].as_str() {
            value["content"] = json!([{ "type": "text", "text": text }]);
        } else if value["role"] == "toolResult" && value["toolCallId"].is_string() {
            value["content"] = json!([{
                "type": "toolResult",
                "toolCallId": value["toolCallId"],
                "name": value["toolName"],
                "isError": value["isError"] == true,
                "content": value["content"],
            }]);
        }
        if let Some(run) = value["__openclaw"]["runId"].as_str().map(ToOwned::to_owned) {
            value["runId"] = json!(run);
        }
        to_raw_value(&value).ok()
    };
    translate().unwrap_or(message)
}

/// A pending approval there.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pending {
    id: String,
    #[serde(default)]
    request: Requested,
    #[serde(default)]
    created_at_ms: u64,
    #[serde(default)]
    expires_at_ms: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Requested {
    command: Option<String>,
    cwd: Option<String>,
    warning_text: Option<String>,
    title: Option<String>,
    description: Option<String>,
    severity: Option<Severity>,
    tool_name: Option<String>,
    agent_id: Option<String>,
    session_key: Option<String>,
    allowed_decisions: Option<Vec<Decision>>,
}

/// Returns an approval of this kind. Its id names the kind, by which it is answered.
fn asked(kind: &str, pending: Pending) -> Option<Approval> {
    if !KINDS.contains(&kind) {
        return None;
    }
    let Pending { id, request, created_at_ms, expires_at_ms } = pending;
    let all = || vec![Decision::AllowOnce, Decision::AllowAlways, Decision::Deny];
    let allowed_decisions = request.allowed_decisions.unwrap_or_else(all);
    let can_always = allowed_decisions.contains(&Decision::AllowAlways);
    let args = request.command.map(|command| json!({ "command": command, "cwd": request.cwd }));
    let words = "always allow this, as the gateway understands it".to_owned();
    Some(Approval {
        id: format!("{kind}:{id}"),
        kind: ApprovalKind::Call,
        agent_id: request.agent_id,
        session_key: request.session_key,
        run_id: None,
        tool: request.tool_name.unwrap_or_else(|| EXEC.to_owned()),
        server: None,
        title: request.title.unwrap_or_else(|| "Run a command on the gateway".to_owned()),
        description: request.description.or(request.warning_text),
        severity: request.severity.unwrap_or(Severity::Warning),
        args: args.and_then(|args| to_raw_value(&args).ok()),
        allowed_decisions,
        always: if can_always {
            vec![AlwaysChoice { words, for_session: false }]
        } else {
            Vec::new()
        },
        changes: Vec::new(),
        whole: None,
        created_at_ms,
        expires_at_ms,
    })
}

fn resolved(kind: &str, payload: &RawValue) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Resolved {
        id: String,
        decision: Option<Decision>,
    }
    let Resolved { id, decision } = serde_json::from_str(payload.get()).ok()?;
    let reason = if decision.is_some() { "user" } else { "expired" };
    to_raw_value(&json!({ "id": format!("{kind}:{id}"), "decision": decision, "reason": reason }))
        .ok()
}

/// Lists the approvals of a kind. There are none if the gateway does not list them.
async fn pending(client: &Client, kind: &str) -> Vec<Approval> {
    let none = RawValue::from_string("{}".to_owned()).ok();
    let listed = client.request(&format!("{kind}.approval.list"), none).await;
    let listed = listed.ok().and_then(|it| serde_json::from_str::<Vec<Pending>>(it.get()).ok());
    listed.into_iter().flatten().filter_map(|it| asked(kind, it)).collect()
}

async fn respond(client: &Client, params: RespondParams) -> Result<RespondResult, ErrorShape> {
    #[derive(Serialize)]
    struct Resolve<'a> {
        id: &'a str,
        decision: Decision,
    }
    let RespondParams { id, decision, .. } = params;
    let unknown = || ErrorShape::invalid(format!("no approval `{id}`"));
    let (kind, own) = id.split_once(':').ok_or_else(unknown)?;
    if !KINDS.contains(&kind) {
        return Err(unknown());
    }
    let params = to_raw_value(&Resolve { id: own, decision }).map_err(|_| unknown())?;
    client.request(&format!("{kind}.approval.resolve"), Some(params)).await?;
    Ok(RespondResult { ok: true, id, decision })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).unwrap()
    }

    fn read(raw: &RawValue) -> Value {
        serde_json::from_str(raw.get()).unwrap()
    }

    #[test]
    fn the_result_of_a_tool_has_its_text() {
        let payload = json!({ "runId": "r", "stream": "tool", "data": { "phase": "result",
            "toolCallId": "c", "result": { "content": [{ "type": "text", "text": "5" }] } } });
        let (name, payload) = event("agent".to_owned(), raw(&payload));
        assert_eq!((name.as_str(), &read(&payload)["data"]["text"]), ("agent", &json!("5")));
    }

    #[test]
    fn stored_messages_have_lists_of_parts() {
        let user = message(raw(&json!({ "role": "user", "content": "hi" })));
        assert_eq!(read(&user)["content"][0]["text"], "hi");
        let result =
            message(raw(&json!({ "role": "toolResult", "toolCallId": "c", "isError": true,
            "content": [{ "type": "text", "text": "no" }], "__openclaw": { "runId": "r" } })));
        let result = read(&result);
        assert_eq!(result["runId"], "r");
        let part = &result["content"][0];
        assert_eq!((&part["toolCallId"], &part["isError"]), (&json!("c"), &json!(true)));
        assert_eq!(part["content"][0]["text"], "no");
        let ours = json!({ "role": "assistant", "content": [{ "type": "text", "text": "x" }] });
        assert_eq!(read(&message(raw(&ours))), ours);
    }

    #[test]
    fn approvals_are_those_of_our_gateway() {
        let payload = json!({ "id": "7", "createdAtMs": 1, "expiresAtMs": 2, "request": {
            "command": "rm x", "sessionKey": "agent:main:a", "later": true } });
        let (name, payload) = event("exec.approval.requested".to_owned(), raw(&payload));
        assert_eq!(name, names::APPROVAL_REQUESTED);
        let approval: Approval = serde_json::from_str(payload.get()).unwrap();
        assert_eq!((approval.id.as_str(), approval.tool.as_str()), ("exec:7", "exec"));
        assert_eq!(approval.session_key.as_deref(), Some("agent:main:a"));
        let payload = json!({ "id": "7", "decision": "deny", "ts": 3 });
        let (name, payload) = event("exec.approval.resolved".to_owned(), raw(&payload));
        assert_eq!(
            (name.as_str(), &read(&payload)["id"]),
            (names::APPROVAL_RESOLVED, &json!("exec:7"))
        );
        let other = json!({ "id": "7" });
        assert_eq!(event("x.approval.requested".to_owned(), raw(&other)).0, "x.approval.requested");
    }
}
