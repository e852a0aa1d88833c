//! The native tools, called as an agent calls them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod approval;
#[cfg(unix)]
mod confinement;
#[cfg(unix)]
mod exec;
mod files;
#[cfg(unix)]
mod prefixes;
mod web;

use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_tools::ToolSource as _;
use openclaw_tools::audit::Audit;
use openclaw_tools::native::{NativeSetup, NativeTools};
use openclaw_tools::{
    ApprovalAnswer, ApprovalExtent, ApprovalRequest, Approver, Call, CallContext, Consent,
    Fallback, Pipeline, ToolOutcome,
};
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;

/// Timeout that no working call exceeds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace with all tools, in a folder with room for files outside of it.
struct Bench {
    folder: TempDir,
    tools: NativeTools,
}

impl Bench {
    fn new() -> Self {
        Self::with(|setup| setup)
    }

    fn with(adjust: impl FnOnce(NativeSetup) -> NativeSetup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        let tools =
            NativeTools::new(adjust(NativeSetup::new(folder.path().join("workspace")))).unwrap();
        Self { folder, tools }
    }

    /// Returns a path in the workspace.
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("workspace").join(name)
    }

    /// Returns a path outside of it.
    fn outside(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Calls a tool with an approval of this one call.
    async fn call(&self, name: &str, arguments: Value) -> ToolOutcome {
        self.call_as(name, arguments, Some(ApprovalExtent::Once)).await
    }

    async fn call_as(
        &self,
        name: &str,
        arguments: Value,
        approval: Option<ApprovalExtent>,
    ) -> ToolOutcome {
        self.call_in(None, name, arguments, approval).await
    }

    async fn call_in(
        &self,
        session: Option<&str>,
        name: &str,
        arguments: Value,
        approval: Option<ApprovalExtent>,
    ) -> ToolOutcome {
        let arguments = RawValue::from_string(arguments.to_string()).unwrap();
        let approver = Answers(approval.map_or(ApprovalAnswer::Unanswered, ApprovalAnswer::Yes));
        let consent = Consent::Ask { approver: &approver, fallback: Fallback::Deny };
        let context = CallContext { consent, session, ..CallContext::by_hand("test") };
        let pipeline = Pipeline::new(Audit::none());
        in_time(pipeline.call(&self.tools, Call::new(name, &*arguments), &context)).await
    }
}

/// Answers every question in the same way.
#[derive(Debug)]
struct Answers(ApprovalAnswer);

impl Approver for Answers {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

#[test]
fn models_always_see_the_native_tools() {
    let tools = Bench::new().tools.tools();
    assert!(!tools.is_empty() && tools.iter().all(|tool| tool.is_essential()));
}
