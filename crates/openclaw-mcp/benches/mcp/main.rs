//! The cost of the engine compared with the bare libraries, on the same servers, in one run:
//! `cargo xtask bench call | http | catalogue | fleet | memory`.
//!
//! Rounds are interleaved and the best of each side counts, because the machine is shared. A missed
//! budget is printed; it does not fail the run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark prints its results"
)]

mod call;
mod catalogue;
#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../../openclaw-mcp-client/tests/common/mod.rs"]
mod connection;
mod fleet;
mod http;
mod measure;
mod memory;
mod sides;
mod syscalls;

/// Single-threaded. Calls that hang end by their own timeouts.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn main() {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        // Subcommands for child processes that are measured from outside.
        ["__calls", side, count] => runtime().block_on(syscalls::make_calls(side, count)),
        ["__one", side, script] => runtime().block_on(memory::one_call(side, script)),
        names => {
            let benches: [(&str, fn()); 5] = [
                ("call", call::run),
                ("http", http::run),
                ("catalogue", catalogue::run),
                ("fleet", fleet::run),
                ("memory", memory::run),
            ];
            for (name, run) in benches {
                if names.is_empty() || names.contains(&name) {
                    println!("-- {name} --");
                    run();
                }
            }
        }
    }
}
