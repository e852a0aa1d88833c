//! A tool of a catalogue, as the pipeline sees it: the pipeline does not know about MCP.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_content::{Untrusted, clean_line};
use openclaw_metrics::CallSeries;
use openclaw_tools::schema::{LazyValidator, SchemaDialect, Unusable};
use openclaw_tools::{
    AlwaysOption, ApprovalContext, ApprovalExtent, ApprovalRule, Arguments, AuditName, CallOptions,
    ChangeTooLarge, Decision, Executed, GrantRule, Pin, Ready, Tool, ToolCall, ToolFingerprint,
    ToolSpec,
};
use serde_json::Value;
use tokio::time::Instant;

use super::direct::DirectCall;
use super::limits::check_limit;
use super::send;
use crate::catalogue::{CatalogueTool, SOURCE};
use crate::store::pins::{self, ServerKey};

/// Maximum length of a tool's name in a command that is shown, in characters.
const MAX_NAME: usize = 100;

impl Tool for CatalogueTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn schema_for(&self, dialect: SchemaDialect) -> Result<Arc<Value>, Unusable> {
        Self::schema_for(self, dialect).cloned().map_err(Clone::clone)
    }

    fn origin(&self) -> AuditName<'_> {
        AuditName {
            name: self.spec.name.as_str(),
            source: SOURCE,
            server: self.server().name().as_str(),
            raw_tool: &self.listed.name,
        }
    }

    fn known_series(&self) -> Option<&CallSeries> {
        Self::series(self).map(AsRef::as_ref)
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    fn is_withheld(&self) -> bool {
        self.is_changed()
    }

    fn flaw(&self) -> Option<String> {
        Self::flaw(self).map(ToString::to_string)
    }

    fn pin(&self, about: ApprovalContext<'_>) -> Pin {
        self.pinned(about.now, Some(about.arguments))
    }

    fn rule(&self, _: &Arguments<'_>) -> ApprovalRule {
        self.member.rule()
    }

    /// Without a store, an approval does not outlive the call.
    fn always(&self, about: ApprovalContext<'_>) -> Vec<AlwaysOption> {
        if self.services.pins.is_none() {
            return Vec::new();
        }
        let ServerKey { agent, server, .. } = &self.member.key;
        let option = |grant: GrantRule| {
            let what = grant.words(self.spec.name.as_str());
            let words = format!(
                "always allow {what} of MCP server {server} for agent {agent}, until the tool or the \
                 server changes",
            );
            AlwaysOption { grant, words }
        };
        let by_argument = GrantRule::by_argument(about.arguments);
        [GrantRule::Tool].into_iter().chain(by_argument).map(option).collect()
    }

    fn changes(&self) -> Result<Vec<String>, ChangeTooLarge> {
        let Some(pins) = &self.services.pins else { return Ok(Vec::new()) };
        let changes = pins.changes(&self.member.key, &self.listed);
        changes.ok_or_else(|| {
            let name = clean_line(Untrusted::new(&self.listed.name), MAX_NAME);
            let server = &self.member.key.server;
            let review = format!(
                "review it with `openclaw mcp tools {server} {name} --raw`, then run \
                 `openclaw mcp call {server} {name} --approve`"
            );
            ChangeTooLarge { review }
        })
    }

    /// Returns without waiting for the write, which may take longer than the call; shutdown waits
    /// for it.
    fn keep(&self, approval: &ApprovalExtent, pin: Pin, _: ApprovalContext<'_>) {
        let Some(pins) = &self.services.pins else { return };
        let always = match approval {
            ApprovalExtent::Always(grant) => Some(grant.clone()),
            // A new tool was recorded when it was listed.
            ApprovalExtent::Once if pin != Pin::Changed => return,
            ApprovalExtent::Once => None,
        };
        pins.keep(&self.member.key, &self.listed.name, *Self::fingerprint(self), always);
        pins.keep_definition(&self.member.key, &self.listed);
    }

    fn fingerprint(&self) -> Option<ToolFingerprint> {
        Some(*Self::fingerprint(self))
    }

    fn is_current(&self) -> bool {
        let inventory = self.server().cache().inventory();
        let now = inventory.tools.iter().find(|tool| tool.name == self.listed.name);
        now.is_some_and(|now| {
            Arc::ptr_eq(now, &self.listed) || pins::fingerprint(now) == *Self::fingerprint(self)
        })
    }

    fn validator(&self) -> &LazyValidator {
        &self.validator
    }

    fn limit(&self, now: Instant, options: CallOptions<'_>) -> Result<(), String> {
        check_limit(self.server(), now, options)
    }

    fn ready(self: Arc<Self>, options: CallOptions<'_>) -> Option<Box<dyn Ready>> {
        DirectCall::prepare(self, options).map(|call| call as Box<dyn Ready>)
    }

    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        Box::pin(send::call(self, call))
    }
}
