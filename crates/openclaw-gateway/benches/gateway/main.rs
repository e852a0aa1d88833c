//! What the agent and its gateway cost over what they stand on, in one run:
//! `cargo xtask bench agent | gateway`.
//!
//! Rounds are interleaved and the best of each side counts: the machine is shared. A budget that is missed
//! is printed as missed; nothing fails by the clock.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark talks to a person")]

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

/// This thread does all the work, but for that of the database.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
