//! The `openclaw` command: arguments in, pretty output out. What another front end would need, too,
//! lives in the other crates.

mod cli;
mod commands;
mod edge;
mod exit;
mod fold;
mod logging;
mod output;
mod signals;
mod typed_ahead;

use clap::Parser as _;
use openclaw_secrets::Redactor;

use crate::cli::Cli;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::Output;

fn main() -> std::process::ExitCode {
    // First of all: a guard is started beside every program that has servers, and reads nothing.
    if std::env::args_os().nth(1).is_some_and(|first| first == edge::GUARD_ARGUMENT) {
        openclaw_mcp::guard::serve(std::io::stdin().lock());
        return Exit::Ok.into();
    }
    let redactor = Redactor::new();
    logging::redact_panics(&redactor);
    let cli = Cli::parse();
    let mut output = Output::new(cli.global.json);
    if let Err(error) = logging::start(&cli.global, cli.usual_log_level(), &redactor) {
        let hint = "error, warn, info, debug, trace or off; per module: info,openclaw_mcp=debug";
        output.problem(&error, Some(hint));
        return Exit::Usage.into();
    }
    let edge = Edge::of_this_process(redactor);
    let exit = commands::run(&cli, &edge, &mut output);
    // Somebody who stops reading (`| head`) has seen enough: that changes nothing.
    match output.finish() {
        Ok(()) => exit.into(),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit.into(),
        Err(error) => {
            output.problem(&format!("the output cannot be written: {error}"), None);
            Exit::Failed.into()
        }
    }
}
