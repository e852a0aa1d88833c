//! Asks the user for a login that a server requires in the middle of a call: more scopes (O6).

use futures_util::future::BoxFuture;
use openclaw_oauth::login::{LoginPrompt, LoginRequest, PromptResponse};
use rmcp::model::ElicitationAction;

use super::elicitation::Elicitation;
use super::{ClientSide, ElicitationKind, PATIENCE};

impl LoginPrompt for ClientSide {
    /// Shows the URL like one that the server itself asks the user to visit. The time limits of
    /// calls do not run until the login ends.
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse> {
        Box::pin(async move {
            let _thinking = self.thinking();
            let LoginRequest { url, issuer, scopes, .. } = login;
            let message = match scopes.as_slice() {
                [] => format!("a login at {issuer} is required"),
                scopes => {
                    format!("more permissions are required, from {issuer}: {}", scopes.join(" "))
                }
            };
            let wanted = ElicitationKind::Visit(url.into());
            let answer = self.elicit(Elicitation { message, wanted, id: None }, None).await;
            match answer.action {
                // The browser calls back, which ends this future. A user who accepted and left does
                // not keep the call waiting forever.
                ElicitationAction::Accept => {
                    tokio::time::sleep(PATIENCE).await;
                    PromptResponse::Declined
                }
                _ => PromptResponse::Declined,
            }
        })
    }
}
