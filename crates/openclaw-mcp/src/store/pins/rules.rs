//! What was approved for later calls: listed and revoked (B17).

use std::io;

use openclaw_tools::GrantRule;

use super::{Pins, ServerKey};

/// An approval of a server's tool for later calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRule {
    /// The agent and the server.
    pub server: ServerKey,
    /// The server's name for the tool.
    pub tool: String,
    /// What is covered.
    pub grant: GrantRule,
}

impl Pins {
    /// Returns all approvals for later calls. Reads the file if another program changed it.
    pub fn rules(&self) -> Vec<ToolRule> {
        let mut known = self.known();
        known.read_if_changed(&self.path, tokio::time::Instant::now());
        let mut rules = Vec::new();
        for (server, tools) in &known.approvals {
            for (tool, approved) in tools {
                let rule = |grant: &GrantRule| ToolRule {
                    server: server.clone(),
                    tool: tool.clone(),
                    grant: grant.clone(),
                };
                rules.extend(approved.always.iter().map(rule));
            }
        }
        rules
    }

    /// Revokes an approval for later calls. Returns whether it was there. The tool is still known: a
    /// change of it is noticed. Reads and writes a file.
    ///
    /// # Errors
    /// If that cannot be saved.
    pub fn revoke(&self, rule: &ToolRule) -> io::Result<bool> {
        let mut was_there = false;
        self.change_if(|approvals| {
            let tool = approvals.get_mut(&rule.server).and_then(|it| it.get_mut(&rule.tool));
            was_there = tool.is_some_and(|tool| tool.always.remove(&rule.grant));
            was_there
        })?;
        Ok(was_there)
    }
}
