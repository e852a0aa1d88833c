//! The overhead of the agent and its gateway, in one run: `cargo xtask bench agent | gateway`.
//!
//! Rounds are interleaved and the best of each side counts, because the machine is shared. A missed
//! budget is printed as missed; nothing fails because of timing.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its results")]

mod agent;
mod chats;
mod health;
mod measure;
mod sides;

fn main() {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let benches: [(&str, fn()); 3] =
        [("agent", agent::run), ("health", health::run), ("chats", chats::run)];
    for (name, run) in benches {
        if args.is_empty() || args.iter().any(|arg| arg == name) {
            println!("-- {name} --");
            run();
        }
    }
}

/// A runtime on this thread, which does all the work except for the database.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
