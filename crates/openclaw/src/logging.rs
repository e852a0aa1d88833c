//! Logs go to stderr, through the redactor, and to a collector if there is one for them.

use std::io::{IsTerminal as _, Write as _, stderr};

use openclaw_secrets::{RedactingWriter, Redactor};
use openclaw_trace::export::LogExporter;
use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets};
use tracing_subscriber::layer::Filter;
use tracing_subscriber::prelude::*;

use crate::cli::{GlobalArgs, LogFormat};
use crate::log_export::LogExport;
use crate::log_writer::LogWriter;

/// Starts logging at the level of the command line or `OPENCLAW_LOG`, or else at the `usual` one.
/// An exporter gets the same lines. The returned writer has to be finished before the program exits.
pub(crate) fn start(
    args: &GlobalArgs,
    usual: &str,
    redactor: &Redactor,
    exporter: Option<LogExporter>,
) -> Result<LogWriter, String> {
    let level = levels(args.log_level.as_deref().unwrap_or(usual))?;
    let redactor = redactor.clone();
    let log = LogWriter::new(match args.log_format {
        LogFormat::Json => dropped_as_json,
        LogFormat::Human => dropped,
    });
    let lines = log.clone();
    let writer = move || RedactingWriter::new(redactor.clone(), lines.clone());
    let export = exporter.map(|exporter| LogExport(exporter).with_filter(capped(&level)));
    let registry = tracing_subscriber::registry().with(export);
    match args.log_format {
        LogFormat::Json => {
            let layer = tracing_subscriber::fmt::layer().json().flatten_event(true);
            registry.with(layer.with_writer(writer).with_filter(capped(&level))).init();
        }
        LogFormat::Human => {
            let colour = stderr().is_terminal() && crate::output::colour_wanted();
            let layer = tracing_subscriber::fmt::layer().with_ansi(colour);
            registry.with(layer.with_writer(writer).with_filter(capped(&level))).init();
        }
    }
    Ok(log)
}

/// Filters by level, and by the caps of libraries.
fn capped<S: Subscriber>(level: &Targets) -> impl Filter<S> + use<S> {
    FilterExt::<S>::and(level.clone(), quiet())
}

fn dropped(lines: u64) -> String {
    format!("WARN openclaw: {lines} log lines were dropped: stderr is read too slowly\n")
}

fn dropped_as_json(lines: u64) -> String {
    let message = "log lines were dropped: stderr is read too slowly";
    let line = serde_json::json!({ "level": "WARN", "message": message, "lines": lines });
    format!("{line}\n")
}

/// Caps the levels of all libraries: at debug and trace they log URLs with passwords and whole
/// messages, such as `tungstenite` the handshake with the token; `rmcp` logs authorization codes at
/// debug. `notify` logs every event of a watched folder: if the log is written to that folder, each
/// line would cause the next one. `rustls_platform_verifier` logs certificates that it rejects as
/// errors, which we report ourselves.
fn quiet() -> Targets {
    Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("openclaw", LevelFilter::TRACE)
        .with_target("rmcp", LevelFilter::WARN)
        .with_target("notify", LevelFilter::WARN)
        .with_target("rustls_platform_verifier", LevelFilter::OFF)
}

/// Parses a level, or levels per module: `info,openclaw_mcp=debug`.
fn levels(text: &str) -> Result<Targets, String> {
    // `Targets` takes an unknown level for the name of a module.
    for word in text.split(',').filter(|word| !word.contains('=')) {
        let known = word.trim().parse::<LevelFilter>();
        known.map_err(|_| format!("unknown log level `{word}`"))?;
    }
    text.parse().map_err(|error| format!("invalid log filter `{text}`: {error}"))
}

/// Redacts panic messages, which may contain anything, like log lines.
pub(crate) fn redact_panics(redactor: &Redactor) {
    let redactor = redactor.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let text = format!("openclaw crashed: {panic}");
        let hint = "This is a bug. Please report it, with the steps to reproduce it.";
        let _ = writeln!(stderr(), "{}\n{hint}", redactor.redact(&text));
    }));
}
