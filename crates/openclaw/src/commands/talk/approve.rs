//! Calls that wait for somebody's word: the question, and what an answer means (B9).

use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::approvals::{Approval, Decision, RespondParams, RespondResult, Severity};
use openclaw_protocol::{AskError, ErrorCode, Method, Surface};
use serde_json::Value;

use super::call::glimpse;
use crate::commands::link::look;
use crate::output::{FAINT, STRONG, WARNING};

/// How much of a tool's name and of words about a call is shown.
const NAME_CHARS: usize = 80;
const WORDS_CHARS: usize = 200;

/// What is to be known before somebody decides.
pub(crate) fn lines(approval: &Approval) -> Vec<String> {
    let line = |text: &str, room| clean_line(Untrusted::new(text), room);
    let tool = line(&approval.tool, NAME_CHARS);
    let args = approval.args.as_ref().and_then(|args| serde_json::from_str(args.get()).ok());
    let args = args.map(|args: Value| glimpse(&args)).unwrap_or_default();
    let mark = match approval.severity {
        Severity::Info => FAINT,
        Severity::Warning | Severity::Critical => WARNING,
    };
    let mut lines = vec![format!("{mark}?{mark:#} Allow {STRONG}{tool}{STRONG:#}({args})?")];
    let about = match approval.severity {
        Severity::Critical => Some(approval.title.as_str()),
        _ => approval.description.as_deref(),
    };
    if let Some(about) = about.filter(|about| !about.is_empty()) {
        lines.push(format!("  {FAINT}{}{FAINT:#}", line(about, WORDS_CHARS)));
    }
    lines
}

/// What can be typed.
pub(crate) fn choices(approval: &Approval) -> String {
    let known = [
        (Decision::AllowOnce, "[y] once"),
        (Decision::AllowAlways, "[a] always for this tool"),
        (Decision::Deny, "[n] no"),
    ];
    let allowed = known.iter().filter(|(it, _)| approval.allowed_decisions.contains(it));
    allowed.map(|(_, words)| *words).collect::<Vec<_>>().join("  ")
}

/// What an answer means; none if it is none.
pub(crate) fn meaning(answer: &str, approval: &Approval) -> Option<Decision> {
    let decision = match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "once" => Decision::AllowOnce,
        "a" | "always" => Decision::AllowAlways,
        "n" | "no" => Decision::Deny,
        _ => return None,
    };
    let is_allowed = decision == Decision::Deny || approval.allowed_decisions.contains(&decision);
    is_allowed.then_some(decision)
}

/// Tells the gateway. That nobody waits for it any more is no fault.
pub(crate) async fn respond(
    surface: &dyn Surface,
    id: &str,
    decision: Decision,
) -> Result<(), AskError> {
    let params = RespondParams { id: id.to_owned(), decision };
    let answer: Result<RespondResult, AskError> =
        look(surface, Method::ApprovalsRespond, &params).await;
    match answer {
        Err(AskError::Refused(shape)) if shape.code == ErrorCode::ApprovalNotFound => Ok(()),
        other => other.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(allowed: &[Decision]) -> Approval {
        Approval {
            id: "1".to_owned(),
            agent_id: None,
            session_key: None,
            run_id: None,
            tool: "mcp_git_push".to_owned(),
            server: None,
            title: "Call push".to_owned(),
            description: None,
            severity: Severity::Warning,
            args: serde_json::value::to_raw_value(&serde_json::json!({ "force": true })).ok(),
            allowed_decisions: allowed.to_vec(),
            created_at_ms: 0,
            expires_at_ms: 0,
        }
    }

    #[test]
    fn only_what_is_offered_can_be_chosen() {
        let all = approval(&[Decision::AllowOnce, Decision::AllowAlways, Decision::Deny]);
        assert_eq!(choices(&all), "[y] once  [a] always for this tool  [n] no");
        assert_eq!(meaning(" Y ", &all), Some(Decision::AllowOnce));
        assert_eq!(meaning("always", &all), Some(Decision::AllowAlways));
        assert_eq!(meaning("", &all), None);
        let once = approval(&[Decision::AllowOnce, Decision::Deny]);
        assert_eq!(choices(&once), "[y] once  [n] no");
        assert_eq!(meaning("a", &once), None);
        assert_eq!(meaning("n", &approval(&[])), Some(Decision::Deny));
    }

    #[test]
    fn the_question_names_the_tool_and_its_arguments() {
        let lines = lines(&approval(&[Decision::AllowOnce]));
        let plain = anstream::adapter::strip_str(&lines[0]).to_string();
        assert_eq!(plain, "? Allow mcp_git_push(force=true)?");
    }
}
