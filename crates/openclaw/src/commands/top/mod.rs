//! `openclaw top`: a live view of the servers and tools of the running gateway (N4).

mod display;
mod frame;
mod numbers;

use std::path::Path;
use std::time::Duration;

use openclaw_protocol::client::Client;
use openclaw_protocol::metrics::{SampleParams, SampleResult};
use openclaw_protocol::rpc;
use tokio::time::{MissedTickBehavior, interval};

use super::block_on;
use super::link::{find_running, look};
use crate::cli::TopArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::Signals;
use display::{Display, Input};
use numbers::Window;

pub(crate) fn top(args: &TopArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    block_on(async {
        let client = connect(&paths.state, edge).await?;
        if output.json {
            output.data(&sample(&client).await?);
            return Ok(Exit::Ok);
        }
        let mut signals = Signals::listen().context("cannot receive signals")?;
        let is_live = edge.is_interactive() && edge.can_draw();
        let first = sample(&client).await?;
        let mut display = match is_live {
            true => Display::live(output).context("cannot use the terminal")?,
            false => Display::Lines,
        };
        let work = watch(&client, first, args, &mut display, output);
        signals.interrupt(work).await
    })
}

async fn connect(state: &Path, edge: &Edge) -> Result<Client, CommandError> {
    let Some((running, called)) = find_running(state, edge).await else {
        return Err(CommandError::unavailable("the gateway is not running")
            .hint("run `openclaw gateway start` to start it"));
    };
    called.map_err(|error| {
        let message = format!("cannot connect to the gateway (PID {})", running.pid);
        CommandError::unavailable(message)
            .cause(error.to_string())
            .hint("run `openclaw gateway status`")
    })
}

async fn sample(client: &Client) -> Result<SampleResult, CommandError> {
    let sample = look::<rpc::MetricsSample>(client, SampleParams::default()).await;
    sample.map_err(|error| match !client.is_connected() {
        true => CommandError::unavailable("the gateway has stopped")
            .hint("run `openclaw gateway start` to start it"),
        false => error.into(),
    })
}

/// Shows samples until the user quits, or as many as requested.
async fn watch(
    client: &Client,
    first: SampleResult,
    args: &TopArgs,
    display: &mut Display,
    output: &mut Output,
) -> CommandResult {
    let mut window = Window::new(first);
    let mut ticks = interval(Duration::from_secs(args.interval));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut shown = 0;
    loop {
        display.show(&window, output);
        shown += 1;
        if output.has_failed() || args.count.is_some_and(|count| shown >= count) {
            return Ok(Exit::Ok);
        }
        loop {
            tokio::select! {
                _ = ticks.tick() => break,
                input = display.input() => match input {
                    Input::Quit => return Ok(Exit::Ok),
                    Input::Redraw => display.show(&window, output),
                },
            }
        }
        window.add(sample(client).await?);
    }
}
