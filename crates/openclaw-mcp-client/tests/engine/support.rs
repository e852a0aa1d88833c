//! A connection to a server of the testkit.

use openclaw_mcp_client::process::{ServerProcess, ShutdownTimeouts};
use openclaw_mcp_client::wire::{self, CallError, FastLane, TimeLimits};
use openclaw_process::Guard;
use openclaw_testkit::Script;
use rmcp::RoleClient;
use rmcp::model::ClientConfig;
use rmcp::service::RunningService;
use serde_json::Value;

pub(crate) use crate::common::{LIMITS, client};
use crate::common::{call_tool, plan, scripted};

pub(crate) struct Connection {
    pub(crate) fast: FastLane,
    pub(crate) rmcp: RunningService<RoleClient, ClientConfig>,
    process: ServerProcess,
}

impl Connection {
    pub(crate) async fn open(script: &Script) -> Self {
        let launch = plan(scripted(script)).launch;
        let (process, pipes) = ServerProcess::spawn(&launch, &Guard::none()).unwrap();
        let (redactor, traffic) = (openclaw_secrets::Redactor::new(), wire::Traffic::default());
        let opened = wire::open("test", &redactor, pipes.stdin, pipes.stdout, traffic);
        let (fast, slow) = opened.unwrap();
        let rmcp = rmcp::serve_client(client(), slow).await.unwrap();
        Self { fast, rmcp, process }
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        limits: TimeLimits,
    ) -> Result<Value, CallError> {
        call_tool(&self.fast, (tool, arguments, ""), limits).await
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
