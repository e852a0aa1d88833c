//! Builds the tool policy and the settings of the built-in tools.

use crate::decode::Field;
use crate::native::{ExecTool, FileTools, NativeToolSettings, PrivateHost, WebFetchTool};
use crate::raw::{
    ApprovalPolicy, RawExecTool, RawFetchTool, RawFsTools, RawPolicy, RawTools, RawWebTools,
};
use crate::setting::Setting;
use crate::tool_policy::ToolPolicy;

use serde_json::json;

use super::values::{Builder, Unset};

const DEFAULT_PAGE_CHARS: u64 = 100_000;
const DEFAULT_FETCH_MS: u64 = 30_000;
const DEFAULT_EXEC_MS: u64 = 60_000;

impl Builder<'_> {
    pub(super) fn tools(
        &mut self,
        tools: Field<RawTools>,
        noted: &mut Vec<Setting>,
    ) -> (ToolPolicy, NativeToolSettings) {
        let RawTools { allow, deny, web, exec, fs } = tools.map(|it| it.value).unwrap_or_default();
        let RawWebTools { fetch } = web.map(|it| it.value).unwrap_or_default();
        let policy = self.policy("tools", &allow, &deny, &mut Unset::Refused, noted);
        let web_fetch = self.web_fetch(fetch, noted);
        let exec = self.exec_tool(exec, noted);
        let RawFsTools { enabled } = fs.map(|it| it.value).unwrap_or_default();
        let fs = FileTools { enabled: self.switch("tools.fs.enabled", enabled, noted) };
        (policy, NativeToolSettings { web_fetch, exec, fs })
    }

    fn web_fetch(&mut self, fetch: Field<RawFetchTool>, noted: &mut Vec<Setting>) -> WebFetchTool {
        let RawFetchTool { enabled, approval, allow_hosts, allow_private, max_chars, timeout } =
            fetch.map(|it| it.value).unwrap_or_default();
        let enabled = self.switch("tools.web.fetch.enabled", enabled, noted);
        let (key, auto) = ("tools.web.fetch.approval", ApprovalPolicy::Auto);
        let approval = self.take(noted, key, approval, auto, |it| json!(it.as_str()));
        let rejection = [
            "expected a host name",
            "not a host name",
            "without scheme and port: `docs.rs`, or `*.example.com`",
        ];
        let key = "tools.web.fetch.allowHosts";
        let allow_hosts = self.noted_words(key, allow_hosts, noted, public_host, rejection);
        let rejection = [
            "expected a host name, an IP address or a network",
            "not one of these",
            "without scheme and port: `wiki.example.com`, `10.0.0.7`, `10.1.0.0/16`",
        ];
        let key = "tools.web.fetch.allowPrivate";
        let allow_private =
            self.noted_words(key, allow_private, noted, PrivateHost::parse, rejection);
        let max_chars =
            self.count(noted, "tools.web.fetch.maxChars", max_chars, DEFAULT_PAGE_CHARS);
        let timeout = self.millis(noted, "tools.web.fetch.timeoutMs", timeout, DEFAULT_FETCH_MS);
        WebFetchTool { enabled, approval, allow_hosts, allow_private, max_chars, timeout }
    }

    fn exec_tool(&mut self, exec: Field<RawExecTool>, noted: &mut Vec<Setting>) -> ExecTool {
        let RawExecTool { enabled, timeout, shell } = exec.map(|it| it.value).unwrap_or_default();
        let enabled = self.switch("tools.exec.enabled", enabled, noted);
        let timeout = self.millis(noted, "tools.exec.timeoutMs", timeout, DEFAULT_EXEC_MS);
        let shell = self.noted_text("tools.exec.shell", shell, noted, |cx, text| {
            Some(cx.filled(text, &mut Unset::Refused)?.as_str().to_owned())
        });
        ExecTool { enabled, timeout, shell }
    }

    /// Returns a flag that is on by default.
    fn switch(&mut self, key: &str, field: Field<bool>, noted: &mut Vec<Setting>) -> bool {
        self.take(noted, key, field, true, |on| json!(on))
    }

    pub(super) fn tool_policy(
        &mut self,
        key: &str,
        policy: Field<RawPolicy>,
        noted: &mut Vec<Setting>,
    ) -> ToolPolicy {
        let RawPolicy { allow, deny } = policy.map(|it| it.value).unwrap_or_default();
        self.policy(key, &allow, &deny, &mut Unset::Refused, noted)
    }
}

/// Normalizes a host name, or `*.` and a name for all below it.
fn public_host(written: &str) -> Option<String> {
    let (all_below, name) = written.strip_prefix("*.").map_or(("", written), |name| ("*.", name));
    match PrivateHost::parse(name)? {
        PrivateHost::Name(name) => Some(format!("{all_below}{name}")),
        PrivateHost::Network(_) => None,
    }
}
