//! A connection to an HTTP server of the testkit.

use std::time::Duration;

use openclaw_mcp_client::connection::remote::{self, RemoteConnection, RemoteError, RemotePlan};
use openclaw_mcp_client::wire::{CallError, FastLane, TimeLimits};
use openclaw_testkit::{Recording, Script, TestServer};
use rmcp::model::ClientConfig;
use serde_json::Value;

use crate::common::call_tool;
pub(crate) use crate::common::{LIMITS, client, remote_plan as plan};

/// The `_meta` members of a modern call.
pub(crate) const MODERN_META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}"#;

pub(crate) async fn open(plan: RemotePlan) -> Result<RemoteConnection<ClientConfig>, RemoteError> {
    remote::open(plan, client()).await
}

/// Returns why connecting to such a server fails.
pub(crate) async fn refused(script: &Script) -> RemoteError {
    let server = TestServer::http(script);
    open(plan(server.url())).await.unwrap_err()
}

/// A server, a connection to it, and a recording of its requests.
pub(crate) struct Connection {
    pub(crate) opened: RemoteConnection<ClientConfig>,
    pub(crate) recording: Recording,
    pub(crate) server: openclaw_testkit::HttpServer,
    pub(crate) folder: tempfile::TempDir,
}

impl Connection {
    pub(crate) async fn open(script: Script) -> Self {
        Self::open_with(script, |_| {}).await
    }

    pub(crate) async fn open_with(script: Script, adjust: impl FnOnce(&mut RemotePlan)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::at(folder.path().join("record"));
        let server = TestServer::http(&script.record(recording.path()));
        let mut plan = plan(server.url());
        adjust(&mut plan);
        let opened = open(plan).await.unwrap();
        Self { opened, recording, server, folder }
    }

    pub(crate) fn lane(&self) -> &FastLane {
        &self.opened.lane
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        limits: TimeLimits,
    ) -> Result<Value, CallError> {
        let is_modern = self.opened.version.as_deref() == Some("2026-07-28");
        let meta = if is_modern { MODERN_META } else { "" };
        call_tool(self.lane(), (tool, arguments, meta), limits).await
    }

    pub(crate) async fn try_echo(&self, text: &str) -> Result<String, CallError> {
        let arguments = serde_json::json!({ "text": text }).to_string();
        let result = self.call("echo", &arguments, LIMITS).await?;
        Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn echo(&self, text: &str) -> String {
        self.try_echo(text).await.unwrap()
    }

    /// Returns why an ordinary call fails.
    pub(crate) async fn failure(&self) -> CallError {
        self.try_echo("x").await.unwrap_err()
    }

    /// Waits until the server has received such a request.
    pub(crate) async fn received(&self, wanted: impl Fn(&Value) -> bool + Send + 'static) -> bool {
        let recording = self.recording.clone();
        let waited = tokio::task::spawn_blocking(move || {
            recording.wait_for(Duration::from_secs(60), wanted).is_some()
        });
        waited.await.unwrap()
    }

    pub(crate) async fn close(mut self) -> Ended {
        let _ = self.opened.rmcp.close().await;
        assert!(self.opened.lane.closed().is_some());
        self.server.kill();
        Ended { recording: self.recording, _folder: self.folder }
    }
}

/// The recording of a server after the connection was closed.
pub(crate) struct Ended {
    recording: Recording,
    _folder: tempfile::TempDir,
}

impl std::ops::Deref for Ended {
    type Target = Recording;

    fn deref(&self) -> &Recording {
        &self.recording
    }
}
