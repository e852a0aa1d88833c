//! `openclaw gateway run | status | stop | token`.

mod run;
mod status;
mod stop;
mod token;

use std::path::Path;

use crate::cli::{GatewayArgs, GatewayCommand};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;

pub(crate) use status::{Agent, GatewayState, gateway_state};

/// Runs the subcommand; without one, the gateway.
pub(crate) fn gateway(
    args: &GatewayArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    // `clap` could check this only for all options, also for global ones.
    if args.command.is_some() && args.run.are_given() {
        let message = "`--port` and `--bind` must not be given before a subcommand";
        return Err(CommandError::usage(message).hint("use `openclaw gateway run --port PORT`"));
    }
    match &args.command {
        None => run::run(&args.run, flag, edge, output),
        Some(GatewayCommand::Run(args)) => run::run(args, flag, edge, output),
        Some(GatewayCommand::Status) => status::status(flag, edge, output),
        Some(GatewayCommand::Stop) => stop::stop(flag, edge, output),
        Some(GatewayCommand::Token(command)) => token::token(command, flag, edge, output),
    }
}

/// Formats a duration: "3 s", "5 min", "2 h", "4 days".
pub(crate) fn duration_words(milliseconds: u64) -> String {
    match milliseconds / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
