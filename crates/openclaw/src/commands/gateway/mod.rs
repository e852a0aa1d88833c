//! `openclaw gateway run | start | stop | restart | status | logs | install | uninstall | token`.

mod background;
mod install;
mod run;
mod service;
mod status;
mod stop;
mod token;

use crate::cli::{GatewayArgs, GatewayCommand};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;

pub(crate) use status::{AgentStatus, GatewayState, gateway_state};

/// Runs the subcommand; without one, the gateway.
pub(crate) fn gateway(args: &GatewayArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    // `clap` could check this only for all options, also for global ones.
    if args.command.is_some() && args.run.are_given() {
        let message = "`--port` and `--bind` must not be given before a subcommand";
        return Err(CommandError::usage(message).hint("use `openclaw gateway run --port PORT`"));
    }
    match &args.command {
        None => run::run(&args.run, edge, output),
        Some(GatewayCommand::Run(args)) => run::run(args, edge, output),
        Some(GatewayCommand::Status) => status::status(edge, output),
        Some(GatewayCommand::Stop) => stop::stop(edge, output),
        Some(GatewayCommand::Start(args)) => background::start(args, edge, output),
        Some(GatewayCommand::Restart(args)) => background::restart(args, edge, output),
        Some(GatewayCommand::Logs(args)) => background::logs(args, edge, output),
        Some(GatewayCommand::Install(args)) => install::install(args, edge, output),
        Some(GatewayCommand::Uninstall) => install::uninstall(edge, output),
        Some(GatewayCommand::Token(command)) => token::token(command, edge, output),
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
