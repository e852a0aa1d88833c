//! A connection to a server of the testkit.

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_mcp::process::guard::Guard;
use openclaw_mcp::process::{Launch, Process, ShutdownTimeouts};
use openclaw_mcp::wire::{self, CallError, FastLane, Limits, ToolCall};
use openclaw_testkit::{Script, TestServer};
use rmcp::RoleClient;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::RunningService;
use serde_json::Value;
use serde_json::value::RawValue;

/// Enough for a busy machine.
pub(crate) const LIMITS: Limits =
    Limits { timeout: Duration::from_secs(120), cap: Duration::from_secs(300) };

pub(crate) fn client() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("test", "0"))
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

pub(crate) struct Connection {
    pub(crate) fast: FastLane,
    pub(crate) rmcp: RunningService<RoleClient, ClientConfig>,
    process: Process,
}

impl Connection {
    pub(crate) async fn open(script: &Script) -> Self {
        let (program, args) = TestServer::stdio(script);
        let program = program.to_str().unwrap().to_owned();
        let launch = Launch { program, args, env: BTreeMap::new(), cwd: None };
        let (process, pipes) = Process::spawn(&launch, &Guard::none()).unwrap();
        let (fast, slow) =
            wire::open("test", &openclaw_secrets::Redactor::new(), pipes.stdin, pipes.stdout)
                .unwrap();
        let rmcp = rmcp::serve_client(client(), slow).await.unwrap();
        Self { fast, rmcp, process }
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        limits: Limits,
    ) -> Result<Value, CallError> {
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        let call = ToolCall { tool, arguments: &arguments, meta: "", more: "", headers: &[] };
        let result = self.fast.call_tool(call, limits).await?;
        Ok(serde_json::from_str(result.get()).unwrap())
    }

    pub(crate) async fn echo(&self, text: &str) -> String {
        // Pretty-printed: on the wire it must be one line.
        let arguments = serde_json::to_string_pretty(&serde_json::json!({ "text": text })).unwrap();
        let result = self.call("echo", &arguments, LIMITS).await.unwrap();
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn close(mut self) {
        let _ = self.rmcp.close().await;
        self.process.shut_down(None, ShutdownTimeouts::default()).await;
    }
}
