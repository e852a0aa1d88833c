//! A collector that is down, slow or wrong changes nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::logs::demo;

/// Runs a turn with a tool call, and returns what it logs.
fn turn(endpoint: &str, more: &[(&str, &str)]) -> String {
    let place = demo();
    let mut command = place.command(&["--log-level", "warn", "agent"]);
    command.args(["--message", "add 2 and 3"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).envs(more.iter().copied());
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stdout.contains('5'), "{stdout}{stderr}");
    stderr
}

/// A server that does this with each connection.
fn server(serve: impl Fn(std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

/// A server that gives this answer.
fn answering(answer: &'static [u8]) -> String {
    server(move |mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(answer);
    })
}

#[test]
fn a_collector_that_is_down_is_reported_once() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let log = turn(&format!("http://{free}"), &[("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")]);
    assert_eq!(log.matches("spans are not sent to the collector").count(), 1, "{log}");
    assert!(log.contains("spans were not sent"), "{log}");
}

#[test]
fn a_collector_that_never_answers_does_not_keep_the_program() {
    let kept = std::sync::Mutex::new(Vec::new());
    let address = server(move |stream| kept.lock().unwrap().push(stream));
    let log = turn(&address, &[]);
    assert!(log.contains("spans were not sent"), "{log}");
}

#[test]
fn a_collector_that_answers_garbage_is_an_outage() {
    let log = turn(&answering(&[0xff; 4096]), &[]);
    assert!(log.contains("spans are not sent to the collector"), "{log}");
}

#[test]
fn a_collector_that_refuses_is_reported_with_its_status() {
    let log = turn(&answering(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n"), &[]);
    assert!(log.contains("HTTP 401"), "{log}");
}

#[test]
fn settings_that_cannot_work_are_explained() {
    let more = [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let log = turn("http://127.0.0.1:4317", &more);
    assert!(log.contains("traces are off: OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`"), "{log}");
}
