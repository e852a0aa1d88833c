//! Two hundred concurrent chats on one gateway, each on its own socket, each message with tool
//! calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_protocol::Surface as _;
use openclaw_protocol::client::Client;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::measure::{load, micros, percentile, repeats, verdict};
use crate::sides::{CALLS, RunningGateway, chat};

const CHATS: usize = 200;
const MESSAGES: usize = 3;
const ROUNDS: usize = 7;
const RATIO: f64 = 10.0;

pub(crate) fn run() {
    println!(
        "{CHATS} chats at once, {MESSAGES} messages each, {CALLS} calls a message; all cores; load of the \
         machine: {}",
        load()
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let host_context = RunningGateway::open().await;
    let mut ratios = Vec::new();
    for round in 1..=repeats(ROUNDS) {
        let (mut took, all) = round_of_chats(&host_context, round).await;
        let lost = CHATS * MESSAGES - took.len();
        let [p50, p99] = [50, 99].map(|percent| micros(percentile(&mut took, percent)) / 1e3);
        let each = micros(all) / 1e3 / (CHATS * MESSAGES) as f64;
        println!(
            "round {round}: lost {lost}, p50 {p50:.1} ms, p99 {p99:.1} ms, {:.2} × that, {each:.2} ms a \
             message",
            p99 / p50
        );
        assert_eq!(lost, 0);
        ratios.push(p99 / p50);
    }
    ratios.sort_by(f64::total_cmp);
    for (what, ratio) in [("best", ratios[0]), ("worst", ratios[ratios.len() - 1])] {
        println!("p99 ÷ p50, {what} round {ratio:>23.2}   {}", verdict(ratio, RATIO));
    }
    host_context.close().await;
}

/// Returns the time of each message, and the total time.
async fn round_of_chats(host_context: &RunningGateway, round: usize) -> (Vec<Duration>, Duration) {
    let start = Arc::new(Barrier::new(CHATS + 1));
    let mut chats = JoinSet::new();
    for number in 0..CHATS {
        let client = host_context.client().await;
        chats.spawn(one_chat(client, format!("agent:main:{round}-{number}"), Arc::clone(&start)));
    }
    start.wait().await;
    let begun = Instant::now();
    let took = chats.join_all().await.concat();
    (took, begun.elapsed())
}

async fn one_chat(client: Client, session: String, start: Arc<Barrier>) -> Vec<Duration> {
    let mut events = client.events();
    start.wait().await;
    let mut took = Vec::new();
    for message in 0..MESSAGES {
        let begun = Instant::now();
        chat(&client, &mut events, &session, message).await;
        took.push(begun.elapsed());
    }
    took
}
