//! Scripted faults in place of the regular responses.

use std::sync::atomic::Ordering;

use hyper::Response;

use super::bodies::{Body, set_header, status, text};
use super::{Exchange, Reply, Server};
use crate::engine::Incoming;
use crate::script::{Fault, On};

impl Server {
    /// Returns the fault that applies to this request, if any. `Some(None)` closes the connection.
    pub(super) fn fault(&self, exchange: &Exchange) -> Option<Reply> {
        let faults = &self.engine.script.http.faults;
        let hit = faults.iter().zip(&self.faults).find(|(fault, met)| {
            fits(fault.on, exchange) && {
                let before = met.fetch_add(1, Ordering::Relaxed);
                before >= fault.after && (fault.times == 0 || before < fault.after + fault.times)
            }
        });
        hit.map(|(fault, _)| answer(fault))
    }

    pub(super) fn unauthorized(&self, exchange: &Exchange) -> Option<Response<Body>> {
        let http = &self.engine.script.http;
        let token = http.bearer.as_ref()?;
        let given = exchange.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
        if given == Some(token) {
            return None;
        }
        let mut response = status(401);
        if let Some(challenge) = &http.challenge {
            set_header(&mut response, "www-authenticate", challenge);
        }
        Some(response)
    }
}

fn answer(fault: &Fault) -> Reply {
    if fault.status == 0 {
        return None;
    }
    let named = |header: &str| fault.headers.iter().any(|(name, _)| name == header);
    let mut response = if fault.body.is_empty() || named("content-type") {
        let mut response = text(fault.status, "text/plain", fault.body.clone());
        response.headers_mut().clear();
        response
    } else {
        text(fault.status, "text/plain", fault.body.clone())
    };
    for (name, value) in &fault.headers {
        set_header(&mut response, name, value);
    }
    Some(response)
}

fn fits(on: On, exchange: &Exchange) -> bool {
    let post = exchange.method == "POST";
    match on {
        On::Any => true,
        On::Post => post,
        On::Get => exchange.method == "GET",
        On::Delete => exchange.method == "DELETE",
        On::Handshake => post && matches!(rpc_method(exchange), "initialize" | "server/discover"),
        On::Call => post && rpc_method(exchange) == "tools/call",
    }
}

/// Returns the JSON-RPC method of a body; empty if there is none.
fn rpc_method(exchange: &Exchange) -> &str {
    let method = serde_json::from_slice::<Incoming<'_>>(&exchange.body)
        .ok()
        .and_then(|message| message.method);
    match method.map(|method| method.0) {
        Some(std::borrow::Cow::Borrowed(method)) => method,
        _ => "",
    }
}
