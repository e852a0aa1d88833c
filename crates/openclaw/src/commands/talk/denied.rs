//! How to allow a call that was denied because no user could be asked.

use openclaw_content::{Untrusted, clean_line};
use serde_json::Value;

use super::ShownCall;

/// Maximum length of a word that is suggested.
const WORD_CHARS: usize = 200;

/// Returns the command that allows such calls, or what else to do. `folder` is where the turn worked.
pub(crate) fn way_to_allow(
    call: &ShownCall,
    agent: Option<&str>,
    folder: Option<&str>,
) -> Option<String> {
    let name = clean_line(Untrusted::new(&call.name), WORD_CHARS);
    match call.refused_by.as_deref()? {
        "changed" => {
            return Some(format!(
                "`openclaw mcp call {name}` at a terminal shows the change and asks for approval"
            ));
        }
        "nobody-to-ask" => {}
        _ => return None,
    }
    let argument = |key: &str| call.args.as_ref()?.get(key).and_then(Value::as_str);
    if name == "web_fetch" {
        return Some("add the host to `tools.web.fetch.allowHosts` to allow it".to_owned());
    }
    let mut words = ["openclaw", "approvals", "allow"].map(ToOwned::to_owned).to_vec();
    if let Some(agent) = agent {
        words.extend(["--agent".to_owned(), agent.to_owned()]);
    }
    // Tools of MCP servers do not work in a folder.
    if let Some(folder) = folder.filter(|_| !name.starts_with("mcp_")) {
        words.extend(["--workspace".to_owned(), folder.to_owned()]);
    }
    words.push(name.clone());
    match name.as_str() {
        // As one word: it is approved as it stands.
        "exec" => words.extend(["--".to_owned(), argument("command")?.to_owned()]),
        "write" | "edit" => words.extend(argument("path").map(|path| format!("path={path}"))),
        _ => {}
    }
    // Another word than the agent's would allow something else.
    if words.iter().any(|word| clean_line(Untrusted::new(word), WORD_CHARS) != *word) {
        return None;
    }
    let command = shlex::try_join(words.iter().map(String::as_str)).ok()?;
    Some(format!("to allow such calls: `{command}`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hint(refused_by: &str, name: &str, args: Value) -> Option<String> {
        let call = ShownCall {
            name: name.to_owned(),
            args: Some(args),
            refused_by: Some(refused_by.to_owned()),
            ..ShownCall::default()
        };
        way_to_allow(&call, None, Some("/a b"))
    }

    #[test]
    fn the_command_is_complete() {
        let command = |name: &str, args: Value| {
            let hint = hint("nobody-to-ask", name, args).unwrap_or_default();
            let (_, command) = hint.split_once(": ").unwrap_or_default();
            command.trim_matches('`').to_owned()
        };
        let exec = command("exec", json!({ "command": "ls 'x y'" }));
        assert_eq!(exec, "openclaw approvals allow --workspace '/a b' exec -- \"ls 'x y'\"");
        for hidden in ["ls\ntouch x", "ls \u{202e}x", &"x".repeat(300)] {
            let command = json!({ "command": hidden });
            assert_eq!(hint("nobody-to-ask", "exec", command), None);
        }
        let write = command("write", json!({ "path": "n.md", "content": "x" }));
        assert_eq!(write, "openclaw approvals allow --workspace '/a b' write 'path=n.md'");
        let tool = command("mcp_git_commit", json!({ "message": "x" }));
        assert_eq!(tool, "openclaw approvals allow mcp_git_commit");
        let fetch = hint("nobody-to-ask", "web_fetch", json!({})).unwrap_or_default();
        assert!(fetch.contains("allowHosts"), "{fetch}");
    }

    #[test]
    fn a_changed_tool_is_reviewed_and_what_was_declined_is_not_allowed() {
        let changed = hint("changed", "mcp_git_commit", json!({})).unwrap_or_default();
        assert!(changed.contains("`openclaw mcp call mcp_git_commit` at a terminal"), "{changed}");
        assert_eq!(hint("declined", "exec", json!({})), None);
    }
}
