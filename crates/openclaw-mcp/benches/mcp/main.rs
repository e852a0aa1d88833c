//! What the engine costs, beside the bare libraries, on the same kind of server, in one run:
//! `cargo xtask bench call | http | catalogue | fleet | memory`.
//!
//! Rounds are interleaved and the best of each side counts: the machine is shared. A budget that is missed is
//! printed as missed; nothing fails by the clock.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark talks to a person")]

mod call;
mod catalogue;
mod fleet;
mod http;
mod measure;
mod memory;
mod sides;
mod syscalls;

/// Whatever hangs is given up by the calls' own time-outs; this thread does all the work.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn main() {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        // This program, started by itself to be measured from outside.
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
