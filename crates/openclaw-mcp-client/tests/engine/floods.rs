//! Servers that flood the client with requests: their cost is bounded.

#![expect(deprecated, reason = "older servers still request roots")]

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use openclaw_mcp_client::process::{Launch, ServerProcess, ShutdownTimeouts};
use openclaw_mcp_client::wire::json::Json;
use openclaw_mcp_client::wire::{self, CallError, Closed, FastLane, TimeLimits, WireCall};
use openclaw_process::Guard;
use openclaw_testkit::{Script, TestServer};
use rmcp::model::{ClientConfig, ErrorData, ListRootsResult};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{ClientHandler, RoleClient};
use serde_json::value::RawValue;

use crate::support::client;

/// Longer than any test may take.
const FOREVER: Duration = Duration::from_secs(600);
const PATIENT: TimeLimits = TimeLimits { timeout: FOREVER, cap: FOREVER };
/// Enough for a busy machine, and far less than forever.
const SOON: Duration = Duration::from_secs(120);

/// Counts the requests it receives, and responds immediately or never.
#[derive(Clone, Default)]
struct Counting {
    asked: Arc<AtomicUsize>,
    at_once: Arc<AtomicUsize>,
    most_at_once: Arc<AtomicUsize>,
    never_answers: bool,
}

impl ClientHandler for Counting {
    fn get_info(&self) -> ClientConfig {
        client()
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        if self.never_answers {
            pending::<()>().await;
        }
        tokio::task::yield_now().await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        Ok(ListRootsResult::default())
    }
}

struct Flooded {
    fast: FastLane,
    rmcp: RunningService<RoleClient, Counting>,
    process: ServerProcess,
}

impl Flooded {
    async fn open(script: &Script, handler: Counting) -> Self {
        let (program, args) = TestServer::stdio(script);
        let program = program.to_str().unwrap().to_owned();
        let launch = Launch { program, args, env: BTreeMap::new(), cwd: None };
        let (process, pipes) = ServerProcess::spawn(&launch, &Guard::none()).unwrap();
        let redactor = openclaw_secrets::Redactor::new();
        let (fast, slow) =
            wire::open("test", &redactor, pipes.stdin, pipes.stdout, wire::Traffic::default())
                .unwrap();
        let rmcp = rmcp::serve_client(handler, slow).await.unwrap();
        Self { fast, rmcp, process }
    }

    async fn echo(&self) -> Result<Json, CallError> {
        let arguments = RawValue::from_string(r#"{"text":"hello"}"#.to_owned()).unwrap();
        let call = WireCall {
            tool: "echo",
            arguments: &arguments,
            meta: "",
            more: "",
            headers: &[],
            trace: None,
            work: None,
        };
        tokio::time::timeout(SOON, self.fast.call_tool(call, PATIENT, None)).await.unwrap()
    }

    async fn close(mut self) {
        let _ = self.rmcp.close().await;
        let hurry = ShutdownTimeouts {
            after_close: Duration::from_millis(50),
            after_term: Duration::from_secs(5),
        };
        self.process.shut_down(None, hurry).await;
    }
}

#[tokio::test]
async fn slow_requests_are_bounded_and_calls_still_succeed() {
    let handler = Counting { never_answers: true, ..Counting::default() };
    let flooded = Flooded::open(&Script::new().legacy().flood(5_000), handler.clone()).await;
    for _ in 0..3 {
        let answer = flooded.echo().await.unwrap();
        assert!(answer.get().contains("hello"), "{answer}");
    }
    assert_eq!(handler.asked.load(Ordering::SeqCst), 256);
    flooded.close().await;
}

#[tokio::test]
async fn fast_requests_are_all_answered_with_bounded_concurrency() {
    let handler = Counting::default();
    let flooded = Flooded::open(&Script::new().legacy().flood(20_000), handler.clone()).await;
    let answer = flooded.echo().await.unwrap();
    assert!(answer.get().contains("hello"), "{answer}");
    let all = async {
        while handler.asked.load(Ordering::SeqCst) < 20_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, all).await.unwrap();
    let most = handler.most_at_once.load(Ordering::SeqCst);
    assert!(most <= 256, "{most}");
    flooded.close().await;
}

#[tokio::test]
async fn a_server_that_floods_and_never_reads_is_disconnected() {
    let handler = Counting::default();
    let script = Script::new().legacy().flood(100_000_000);
    let flooded = Flooded::open(&script, handler.clone()).await;
    let error = flooded.echo().await.unwrap_err();
    assert!(matches!(error, CallError::Closed(Closed::Unread)), "{error:?}");
    assert_eq!(error.to_string(), "the server does not read its input");
    let asked = handler.asked.load(Ordering::SeqCst);
    assert!(asked < 1_000_000, "reading did not stop: {asked}");
    flooded.close().await;
}
