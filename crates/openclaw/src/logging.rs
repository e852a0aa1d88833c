//! Logs go to stderr; the redactor is the last in line.

use std::io::{IsTerminal as _, Write as _, stderr};

use openclaw_secrets::{RedactingWriter, Redactor};
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets};
use tracing_subscriber::prelude::*;

use crate::cli::{GlobalArgs, LogFormat};

/// Starts logging as the command line (or `OPENCLAW_LOG`) says, or as usual. `rmcp` logs authorization
/// codes at debug: that is never usual.
pub(crate) fn start(args: &GlobalArgs, usual: &str, redactor: &Redactor) -> Result<(), String> {
    let level = levels(args.log_level.as_deref().unwrap_or(usual))?;
    let level = FilterExt::and(level, quiet());
    let redactor = redactor.clone();
    let writer = move || RedactingWriter::new(redactor.clone(), stderr());
    let registry = tracing_subscriber::registry();
    match args.log_format {
        LogFormat::Json => {
            let layer = tracing_subscriber::fmt::layer().json().flatten_event(true);
            registry.with(layer.with_writer(writer).with_filter(level)).init();
        }
        LogFormat::Human => {
            let colour = stderr().is_terminal() && crate::output::colour_wanted();
            let layer = tracing_subscriber::fmt::layer().with_ansi(colour);
            registry.with(layer.with_writer(writer).with_filter(level)).init();
        }
    }
    Ok(())
}

/// What libraries below us may say at most: at debug and trace they show addresses with passwords, and
/// messages with whatever is in them.
fn quiet() -> Targets {
    let loud = ["hyper", "hyper_util", "reqwest", "rustls", "h2"];
    Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_targets(loud.map(|target| (target, LevelFilter::INFO)))
        .with_target("rmcp", LevelFilter::WARN)
}

/// A level, or levels of modules: `info,openclaw_mcp=debug`.
fn levels(text: &str) -> Result<Targets, String> {
    // `Targets` takes a word that is no level for the name of a module.
    for word in text.split(',').filter(|word| !word.contains('=')) {
        let known = word.trim().parse::<LevelFilter>();
        known.map_err(|_| format!("unknown log level `{word}`"))?;
    }
    text.parse().map_err(|error| format!("invalid log filter `{text}`: {error}"))
}

/// A panic is a bug, and its message may hold anything: it is redacted like a log line.
pub(crate) fn redact_panics(redactor: &Redactor) {
    let redactor = redactor.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let text = format!("openclaw crashed: {panic}");
        let hint = "This is a bug. Please report it, with the steps that led to it.";
        let _ = writeln!(stderr(), "{}\n{hint}", redactor.redact(&text));
    }));
}
