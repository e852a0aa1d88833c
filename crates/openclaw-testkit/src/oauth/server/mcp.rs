//! The MCP endpoint: the scripted server behind a check of the access token.

use hyper::Response;

use super::OAuthRequest;
use super::shared::Shared;
use crate::engine::lock;
use crate::http::bodies::{Body, set_header, status};
use crate::http::{Exchange, Reply};

impl Shared {
    pub(super) async fn mcp(&self, exchange: &Exchange, request: &OAuthRequest) -> Reply {
        let header = request.headers.get("authorization");
        let token = header.and_then(|header| header.strip_prefix("Bearer "));
        let granted = token.and_then(|token| lock(&self.tokens).access(token));
        let Some(granted) = granted else {
            return Some(self.unauthorized());
        };
        let has = |scope: &str| scope.split(' ').all(|one| granted.split(' ').any(|it| it == one));
        if let Some(missing) = self.scopes_of(request).into_iter().find(|scope| !has(scope)) {
            return Some(self.insufficient(&missing));
        }
        self.mcp.reply(exchange).await
    }

    /// The scopes that a request needs.
    fn scopes_of(&self, request: &OAuthRequest) -> Vec<String> {
        let script = lock(&self.script);
        let tool = match request.json["method"].as_str() {
            Some("tools/call") => request.json["params"]["name"].as_str(),
            _ => None,
        };
        let of_tool = script.tool_scopes.iter().filter(|(name, _)| Some(name.as_str()) == tool);
        std::iter::once(&script.scope).chain(of_tool.map(|(_, scope)| scope)).cloned().collect()
    }

    fn unauthorized(&self) -> Response<Body> {
        let mut response = status(401);
        let script = lock(&self.script);
        if let Some(challenge) = &script.challenge {
            let challenge = challenge.replace("{metadata}", &self.resource_metadata_url());
            let challenge = challenge.replace("{scope}", &script.scope);
            set_header(&mut response, "www-authenticate", &challenge);
        }
        response
    }

    fn insufficient(&self, scope: &str) -> Response<Body> {
        let mut response = status(403);
        let metadata = self.resource_metadata_url();
        let challenge = format!(
            r#"Bearer error="insufficient_scope", scope="{scope}", resource_metadata="{metadata}""#
        );
        set_header(&mut response, "www-authenticate", &challenge);
        response
    }
}
