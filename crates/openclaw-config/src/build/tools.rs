//! Builds the tool policy and the settings of the built-in tools.

use crate::decode::Field;
use crate::model::{Setting, ToolPolicy};
use crate::native::{ExecTool, FileTools, NativeToolSettings, PrivateHost, WebFetchTool};
use crate::raw::{
    ApprovalPolicy, RawExecTool, RawFetchTool, RawFsTools, RawPolicy, RawTools, RawWebTools, Words,
};

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
        let allow_hosts = self.public_hosts(allow_hosts, noted);
        let allow_private = self.private_hosts(allow_private, noted);
        let max_chars =
            self.count(noted, "tools.web.fetch.maxChars", max_chars, DEFAULT_PAGE_CHARS);
        let timeout = self.millis(noted, "tools.web.fetch.timeoutMs", timeout, DEFAULT_FETCH_MS);
        WebFetchTool { enabled, approval, allow_hosts, allow_private, max_chars, timeout }
    }

    fn public_hosts(&mut self, hosts: Field<Words>, noted: &mut Vec<Setting>) -> Vec<String> {
        let Some(hosts) = hosts else { return Vec::new() };
        self.note_words("tools.web.fetch.allowHosts", &hosts, noted);
        let mut out = Vec::new();
        for text in &hosts.value {
            let Some(word) = self.filled(text, &mut Unset::Refused) else { continue };
            let (all_below, name) = match word.as_str().strip_prefix("*.") {
                Some(name) => ("*.", name),
                None => ("", word.as_str()),
            };
            match PrivateHost::parse(name) {
                Some(PrivateHost::Name(name)) => out.push(format!("{all_below}{name}")),
                _ => {
                    let message = "expected a host name";
                    let help = "without scheme and port: `docs.rs`, or `*.example.com`";
                    self.found.push(text.error(message, "not a host name").help(help));
                }
            }
        }
        out
    }

    fn private_hosts(&mut self, hosts: Field<Words>, noted: &mut Vec<Setting>) -> Vec<PrivateHost> {
        let Some(hosts) = hosts else { return Vec::new() };
        self.note_words("tools.web.fetch.allowPrivate", &hosts, noted);
        let mut out = Vec::new();
        for text in &hosts.value {
            let Some(word) = self.filled(text, &mut Unset::Refused) else { continue };
            match PrivateHost::parse(word.as_str()) {
                Some(host) => out.push(host),
                None => {
                    let message = "expected a host name, an IP address or a network";
                    let help =
                        "without scheme and port: `wiki.example.com`, `10.0.0.7`, `10.1.0.0/16`";
                    self.found.push(text.error(message, "not one of these").help(help));
                }
            }
        }
        out
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
