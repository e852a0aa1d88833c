//! Measures a call of the test server over a bare pipe, and its startup time.
//!
//! ```text
//! cargo build --release -p openclaw-testkit && taskset -c 0 cargo run --release -p openclaw-testkit --example latency
//! ```
#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use openclaw_testkit::{Script, StdioClient, TestServer};

const CALL: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"hello\"}}}\n";
const INITIALIZE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}\n";

fn main() -> std::io::Result<()> {
    let mut starts: Vec<_> = (0..50)
        .map(|_| {
            let start = Instant::now();
            let client = StdioClient::connect(&Script::new());
            let time = start.elapsed();
            drop(client);
            time
        })
        .collect();
    report("start and handshake", &mut starts);

    let (program, arguments) = TestServer::stdio(&Script::new());
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(());
    };
    let mut output = BufReader::new(output);
    round(&mut input, &mut output, INITIALIZE, 1)?;
    let mut best = Vec::new();
    for _ in 0..7 {
        let calls: Result<Vec<_>, _> =
            (0..20_000).map(|_| round(&mut input, &mut output, CALL, 1)).collect();
        let mut calls = calls?;
        calls.sort_unstable();
        best.push(calls[calls.len() / 2]);
    }
    report("one call, p50 of a round", &mut best);
    let many = CALL.repeat(64);
    let mut gathered: Vec<_> = (0..2000)
        .map(|_| round(&mut input, &mut output, &many, 64).map(|time| time / 64))
        .collect::<Result<_, _>>()?;
    report("64 calls in one write, per call", &mut gathered);
    drop(input);
    child.wait()?;
    http()
}

/// Measures calls over HTTP, on one connection, with JSON responses and without a session.
fn http() -> std::io::Result<()> {
    let server = TestServer::http(&Script::new().no_sessions());
    let mut stream = TcpStream::connect(("127.0.0.1", server.port()))?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut post = |body: &[u8]| {
        let head =
            format!("POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        let request = [head.as_bytes(), body].concat();
        let start = Instant::now();
        stream.write_all(&request)?;
        // Responses are small: each arrives in one read.
        let read = stream.read(&mut buffer)?;
        if read == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(start.elapsed()) }
    };
    post(INITIALIZE)?;
    let mut times = (0..50_000).map(|_| post(CALL)).collect::<std::io::Result<Vec<_>>>()?;
    report("one call over HTTP", &mut times);
    Ok(())
}

fn round(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
    lines: &[u8],
    answers: usize,
) -> std::io::Result<Duration> {
    let start = Instant::now();
    input.write_all(lines)?;
    let mut line = Vec::with_capacity(256);
    for _ in 0..answers {
        line.clear();
        output.read_until(b'\n', &mut line)?;
    }
    Ok(start.elapsed())
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    println!("{what}: best {:?}, median {:?}", times[0], times[times.len() / 2]);
}
