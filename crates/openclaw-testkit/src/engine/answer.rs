//! Requests other than calls and the handshake: lists and their entries.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::catalogue::others;
use super::handshake::members;
use super::message::Request;
use super::{Engine, Listener, Outbox, Session};
use crate::script::{CatalogueScript, RpcError, Skill};

impl Engine {
    /// Returns the members of the result; `None` if there is no response.
    pub(super) fn answer(
        &self,
        session: &Arc<Session>,
        method: &str,
        request: &Request<'_>,
        out: &Arc<dyn Outbox>,
    ) -> Result<Option<Vec<u8>>, RpcError> {
        let params = &request.params;
        let catalogue = &self.script.catalogue;
        let mut members = match method {
            "ping" if !request.modern => return Ok(Some(Vec::new())),
            "logging/setLevel" if !request.modern => return Ok(Some(Vec::new())),
            "subscriptions/listen" if request.modern => {
                listen(session, request, out);
                return Ok(None);
            }
            "tools/list" => {
                let cursor = params.cursor.as_ref().map(|cursor| &*cursor.0);
                self.catalogue
                    .tools(self.is_changed(), cursor)
                    .ok_or_else(|| RpcError::new(-32602, "Invalid cursor"))?
            }
            "resources/list" | "resources/templates/list" | "prompts/list"
                if !catalogue.tools_only =>
            {
                list(method, catalogue)
            }
            "resources/subscribe" if catalogue.subscriptions && !request.modern => {
                session.subscribe(params.uri.as_ref().map_or("", |uri| &uri.0));
                return Ok(Some(Vec::new()));
            }
            "skills/list" if !catalogue.skills.is_empty() => skill_list(&catalogue.skills),
            "skills/get" if !catalogue.skills.is_empty() => {
                let uri = params.uri.as_ref().map_or("", |uri| &uri.0);
                let skill = catalogue.skills.iter().find(|skill| skill.uri() == uri);
                let skill = skill.ok_or_else(|| RpcError::new(-32602, "No such skill"))?;
                members(&json!({"skill": skill.entry}))
            }
            "resources/read" if !catalogue.tools_only => {
                let uri = params.uri.as_ref().map_or("", |uri| &uri.0);
                // 2026-07-28 has replaced -32002 by -32602.
                let code = if request.modern { -32602 } else { -32002 };
                let file = catalogue.skills.iter().find_map(|skill| skill.files.get(uri));
                let file = file.map(|text| {
                    members(&json!({"contents": [
                        {"uri": uri, "mimeType": "text/markdown", "text": text}
                    ]}))
                });
                let text = || {
                    let (kind, text) = catalogue.contents.get(uri)?;
                    let content = json!({"uri": uri, "mimeType": kind, "text": text});
                    Some(members(&json!({"contents": [content]})))
                };
                file.or_else(text).or_else(|| others(method, uri, &Value::Null)).ok_or_else(
                    || RpcError {
                        data: Some(json!({"uri": uri})),
                        ..RpcError::new(code, "Resource not found")
                    },
                )?
            }
            "prompts/get" if !catalogue.tools_only => {
                let arguments = params
                    .arguments
                    .and_then(|raw| serde_json::from_str(raw.get()).ok())
                    .unwrap_or_default();
                let members = others(method, request.name(), &arguments)
                    .ok_or_else(|| RpcError::new(-32602, "Unknown prompt or missing argument"))?;
                return Ok(Some(members));
            }
            "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel" => {
                return self.about_task(method, request).map(Some);
            }
            "completion/complete" if !catalogue.tools_only => {
                return complete(params.argument, &catalogue.completions).map(Some);
            }
            _ => return Err(RpcError::new(-32601, format!("Method not found: {method}"))),
        };
        if request.modern {
            // How long lists and resources may be cached, which 2026-07-28 requires.
            members.extend_from_slice(br#","ttlMs":0,"cacheScope":"private""#);
        }
        Ok(Some(members))
    }
}

/// The usual entries of a list, and those of the script.
fn list(method: &str, catalogue: &CatalogueScript) -> Vec<u8> {
    let usual = others(method, "", &Value::Null).unwrap_or_default();
    let text = [b"{", usual.as_slice(), b"}"].concat();
    let mut listed: Map<String, Value> = serde_json::from_slice(&text).unwrap_or_default();
    for (name, entries) in &mut listed {
        let more = catalogue.entries.get(name).into_iter().flatten().cloned();
        if let Value::Array(entries) = entries {
            entries.extend(more);
        }
    }
    members(&Value::Object(listed))
}

fn skill_list(skills: &[Skill]) -> Vec<u8> {
    let listed = skills.iter().filter(|skill| !skill.is_unlisted).map(|skill| &skill.entry);
    members(&json!({"skills": listed.collect::<Vec<_>>()}))
}

/// Completes any argument to a name.
fn complete(argument: Option<&RawValue>, more: &[String]) -> Result<Vec<u8>, RpcError> {
    let argument = argument.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let typed = argument.as_ref().and_then(|argument| argument["value"].as_str());
    let typed = typed.ok_or_else(|| RpcError::new(-32602, "Invalid params: no value"))?;
    let values = ["Ada", "Alan", "Grace", "Anna Maria", "A\u{1b}[2J"];
    let values = values.into_iter().chain(more.iter().map(String::as_str));
    let values: Vec<_> = values.filter(|name| name.starts_with(typed)).collect();
    let completion = json!({"values": values, "total": values.len(), "hasMore": false});
    Ok(format!(r#""completion":{completion}"#).into_bytes())
}

/// The request stays open; changes are sent with its id (2026-07-28).
fn listen(session: &Session, request: &Request<'_>, out: &Arc<dyn Outbox>) {
    let id = request.id.get();
    let wanted = request.params.notifications.map_or("{}", RawValue::get);
    out.send(
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{wanted}}}}}"#
        )
        .into_bytes(),
    );
    session.listen(Listener { out: Arc::clone(out), subscription: Some(id.to_owned()) });
}
