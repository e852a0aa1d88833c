//! The `openclaw` command: parses arguments and formats output. Everything that another front end
//! would need, too, is in the other crates.

mod cli;
mod clipboard;
mod commands;
mod completion;
mod edge;
mod error;
mod exit;
mod hidden;
mod log_export;
mod log_writer;
mod logging;
mod output;
mod prompt;
mod signals;
mod state_files;
mod telemetry;
mod typed_ahead;

use std::time::Duration;

use openclaw_secrets::Redactor;
use openclaw_trace::Tracer;

use crate::cli::Cli;
use crate::edge::{CompletionRequest, Edge};
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::Output;
use crate::telemetry::Telemetry;

/// How long the last log lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(1);
/// The memory for reading a PDF, in bytes, and the processor time, in seconds; on Windows, the time.
const PDF_MEMORY: u64 = 1024 * 1024 * 1024;
const PDF_SECONDS: u64 = 20;

/// Limits the memory of the process that reads a PDF. A job object could, too, but not without `unsafe`.
#[cfg(windows)]
#[global_allocator]
static MEMORY: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

fn main() -> std::process::ExitCode {
    // Checked first: a guard is started for every process with servers, and needs nothing else.
    if std::env::args_os().nth(1).is_some_and(|first| first == edge::GUARD_ARGUMENT) {
        openclaw_process::guard::run();
        return Exit::Ok.into();
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == edge::PDF_ARGUMENT) {
        return read_pdf();
    }
    if let Some(request) = CompletionRequest::of_this_process() {
        let edge = Edge::of_this_process(Redactor::new(), None, Tracer::off());
        completion::run(request, &edge, &mut std::io::stdout().lock());
        return Exit::Ok.into();
    }
    if edge::is_colourless() {
        anstream::ColorChoice::Never.write_global();
    }
    let redactor = Redactor::new();
    logging::redact_panics(&redactor);
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let mut output = Output::new(cli.global.json).with_utf8(edge::has_utf8());
    let exit = run(&cli, redactor, &mut output).unwrap_or_else(|error| {
        output.error(&error);
        error.exit()
    });
    // A closed pipe (`| head`) is not a failure.
    match output.finish() {
        Ok(()) => exit.into(),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit.into(),
        Err(error) => {
            output.error(&CommandError::failed("cannot write the output").cause(error.to_string()));
            Exit::Failed.into()
        }
    }
}

/// Writes the text of a PDF. The document may be hostile: memory and time are limited.
fn read_pdf() -> std::process::ExitCode {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, setrlimit};
        let limits = [(Resource::RLIMIT_AS, PDF_MEMORY), (Resource::RLIMIT_CPU, PDF_SECONDS)];
        for (resource, limit) in limits {
            if setrlimit(resource, limit, limit).is_err() {
                return Exit::Failed.into();
            }
        }
    }
    #[cfg(windows)]
    {
        let limited =
            usize::try_from(PDF_MEMORY).is_ok_and(|limit| MEMORY.set_limit(limit).is_ok());
        // The parent ends the process after this time, unless it has ended itself.
        let ended = std::thread::Builder::new().spawn(|| {
            std::thread::sleep(Duration::from_secs(PDF_SECONDS));
            std::process::exit(1);
        });
        if !limited || ended.is_err() {
            return Exit::Failed.into();
        }
    }
    let done = openclaw_mcp_server::extract_pdf(std::io::stdin().lock(), std::io::stdout().lock());
    if done { Exit::Ok.into() } else { Exit::Failed.into() }
}

fn run(cli: &Cli, redactor: Redactor, output: &mut Output) -> CommandResult {
    let telemetry = Telemetry::of_this_process(&redactor);
    let (level, lines) = (cli.usual_log_level(), telemetry.logs.clone());
    let log = logging::start(&cli.global, level, &redactor, lines).map_err(|error| {
        CommandError::usage(error)
            .hint("use error, warn, info, debug, trace or off; per module: info,openclaw_mcp=debug")
    })?;
    telemetry.report_problems();
    let edge = Edge::of_this_process(redactor, cli.global.config.clone(), telemetry.tracer());
    let result = commands::run(cli, &edge, output);
    telemetry.finish();
    log.finish(LAST_LINES);
    result
}

/// Prints an error of `clap`, as JSON with `--json`, or the help.
fn usage(error: &clap::Error) -> std::process::ExitCode {
    let wants_json =
        std::env::args_os().skip(1).take_while(|it| it != "--").any(|it| it == "--json");
    if !error.use_stderr() || !wants_json {
        // A closed pipe is not a failure.
        let _ = error.print();
        return if error.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() };
    }
    let text = error.render().to_string();
    let mut paragraphs =
        text.split("\n\n").map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let message = paragraphs.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let tip = paragraphs.find_map(|it| it.strip_prefix("tip: ").map(ToOwned::to_owned));
    let hint = tip.unwrap_or_else(|| "run it with `--help` for usage".to_owned());
    let (mut output, error) = (Output::new(true), CommandError::usage(message).hint(hint));
    output.error(&error);
    let _ = output.finish();
    error.exit().into()
}
