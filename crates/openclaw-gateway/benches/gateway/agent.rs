//! A turn with five tool calls, compared with the same five calls made directly through the bridge:
//! concurrently and sequentially.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::{self, BoxStream};
use openclaw_agent::{Agent, AgentLimits, EndReason, LoopEvent, Turn};
use openclaw_gateway::socket::Caller;
use openclaw_mcp::fleet::toolset::ServerTools;
use openclaw_models::{Chunk, Message, Model, ModelError, ModelRequest, Part, StopReason, ToolUse};
use openclaw_protocol::client;
use openclaw_sessions::{EntryKind, NewEntry, ReadFilter, SessionKey, SessionStore, SqliteStore};
use openclaw_tools::audit::Audit;
use openclaw_tools::schema::SchemaDialect;
use openclaw_tools::{NoApprover, Pipeline};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::measure::{ROUNDS, keep_best, median, pin, repeats, verdict};
use crate::runtime;
use crate::sides::{CALLS, RunningGateway, arguments, call, chat};

const TURNS: usize = 60;
/// Budget for the overhead of a turn over its calls, in ms.
const OVERHEAD: f64 = 2.0;

pub(crate) fn run() {
    pin();
    println!(
        "turns with {CALLS} calls, each in a session of its own; p50 of {TURNS}, best of {ROUNDS} rounds"
    );
    runtime().block_on(compare());
}

async fn compare() {
    let host_context = RunningGateway::open().await;
    let tools = host_context.tools();
    let said: Vec<_> = (0..CALLS).map(arguments).collect();
    let surface = host_context.served.gateway.caller(ourselves());
    let mut events = surface.events();
    let kept = SqliteStore::open(host_context.folder.path().join("bench.db")).await.unwrap();
    let store: Arc<dyn SessionStore> = Arc::new(kept.store);
    let toolset =
        Arc::new(ServerTools::new(Arc::clone(host_context.served.gateway.fleet()), "main"));
    let at_once = agent(&store, CALLS);
    let one_by_one = agent(&store, 1);
    let mut number = 0;
    let mut next = || {
        number += 1;
        format!("agent:main:turn-{number}")
    };

    let mut best = [f64::MAX; 7];
    for _ in 0..repeats(ROUNDS) {
        let round = [
            median(TURNS, async || {
                join_all(said.iter().map(|arguments| call(&tools, arguments))).await;
            })
            .await,
            median(TURNS, async || {
                for arguments in &said {
                    call(&tools, arguments).await;
                }
            })
            .await,
            median(TURNS, async || chat(&*surface, &mut events, &next(), 1).await).await,
            median(TURNS, async || take(&at_once, turn(&next(), &toolset), 2).await).await,
            median(TURNS, async || take(&one_by_one, turn(&next(), &toolset), 6).await).await,
            median(TURNS, async || keep(&*store, &next(), 4).await).await,
            median(TURNS, async || keep(&*store, &next(), 12).await).await,
        ];
        keep_best(&mut best, round);
    }
    let [calls_at_once, calls_one_by_one, gateway, agent, agent_one_by_one, kept, kept_one_by_one] =
        best.map(|micros| micros / 1e3);
    println!("{:<44} {:>8} {:>8} {:>9}", "", "turn", "calls", "overhead");
    for (what, turn, calls) in [
        ("gateway, built-in model, calls at once", gateway, calls_at_once),
        ("agent alone, calls at once", agent, calls_at_once),
        ("agent alone, one after the other", agent_one_by_one, calls_one_by_one),
    ] {
        let overhead = turn - calls;
        let verdict = verdict(overhead, OVERHEAD);
        println!("{what:<44} {turn:>8.2} {calls:>8.2} {overhead:>9.2} ms   {verdict}");
    }
    println!(
        "of which keeping 4 messages (two rounds) {kept:.2} ms, 12 (six rounds) {kept_one_by_one:.2} ms"
    );
    host_context.close().await;
}

fn ourselves() -> Caller {
    let options = client::ConnectOptions::new("", None, "bench");
    Caller {
        client: options.client,
        role: options.role,
        scopes: options.scopes,
        caps: options.caps,
        commands: Vec::new(),
        remote: ([127, 0, 0, 1], 0).into(),
        connection: "bench".to_owned(),
    }
}

fn agent(store: &Arc<dyn SessionStore>, at_once: usize) -> Agent {
    Agent {
        id: "main".to_owned(),
        models: vec![Arc::new(Stepping { at_once })],
        store: Arc::clone(store),
        instructions: "Be brief.".to_owned(),
        limits: AgentLimits::default(),
        pipeline: Pipeline::new(Audit::none()),
    }
}

fn turn(session: &str, tools: &Arc<ServerTools>) -> Turn {
    Turn {
        session: SessionKey::new(session).unwrap(),
        run: session.to_owned(),
        message: vec![Part::ours("Say hello five times.")],
        who: "bench".to_owned(),
        briefing: Vec::new(),
        tools: Arc::clone(tools) as _,
        approver: Arc::new(NoApprover),
        permission: openclaw_tools::PermissionMode::Configured,
        observer: Arc::new(|_: LoopEvent| {}),
        cancel: CancellationToken::new(),
        trace: None,
    }
}

async fn take(agent: &Agent, turn: Turn, rounds: u32) {
    let answer = agent.answer(&turn).await.unwrap();
    assert_eq!((answer.ended, answer.calls), (EndReason::Done, CALLS as u32), "{}", answer.text);
    assert_eq!(answer.rounds, rounds);
}

/// The store operations of a turn: a session, a lease, and this many messages one by one.
async fn keep(store: &dyn SessionStore, session: &str, messages: usize) {
    let key = SessionKey::new(session).unwrap();
    store.open(&key, "main").await.unwrap();
    let lease = store.lease(&key, "bench", Duration::from_secs(30)).await.unwrap();
    assert!(store.read(&key, ReadFilter::last(200)).await.unwrap().is_empty());
    for _ in 0..messages {
        let body = json!({ "message": "x".repeat(400), "at": SystemTime::UNIX_EPOCH });
        let entry = NewEntry { run: Some(session.to_owned()), kind: EntryKind::Message, body };
        store.append(&key, vec![entry]).await.unwrap();
    }
    lease.release().await;
}

/// A model that requests the calls of a turn, a fixed number in each round.
#[derive(Debug)]
struct Stepping {
    at_once: usize,
}

impl Model for Stepping {
    fn name(&self) -> &str {
        "stepping"
    }

    fn dialect(&self) -> SchemaDialect {
        SchemaDialect::Plain
    }

    fn context_tokens(&self) -> u64 {
        100_000
    }

    fn stream<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<Chunk, ModelError>> {
        let results = request.messages.iter().map(|message| match &**message {
            Message::Tool { results } => {
                assert!(results.iter().all(|result| !result.is_error), "{results:?}");
                results.len()
            }
            _ => 0,
        });
        let made: usize = results.sum();
        let wanted = (made..CALLS).take(self.at_once).map(|nth| {
            Chunk::ToolUse(ToolUse {
                id: format!("call-{nth}"),
                name: "mcp_x_echo".to_owned(),
                arguments: arguments(nth).get().to_owned(),
            })
        });
        let mut chunks: Vec<Chunk> = wanted.collect();
        chunks.push(match chunks.is_empty() {
            true => Chunk::Text("Done.".to_owned()),
            false => Chunk::Text(String::new()),
        });
        chunks.push(Chunk::End(if made < CALLS { StopReason::ToolUse } else { StopReason::Done }));
        stream::iter(chunks.into_iter().map(Ok)).boxed()
    }
}
