//! `openclaw chat`: a conversation at the terminal, or with one message per line of a pipe.

mod approval;
mod commands;
mod complete;
mod dialogue;
mod editor;
mod elicit;
mod greeting;
mod inbox;
mod interactive;
mod invoke;
mod piped;
mod turn;
mod watch;

use std::cell::RefCell;
use std::path::Path;

use openclaw_protocol::Surface;
use openclaw_protocol::keys::MAIN;

use super::link::{Need, Role, with_lasting_link};
use super::talk::ChatAgent;
use crate::cli::ChatArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;

/// The state of a chat.
struct Chat<'a> {
    surface: &'a dyn Surface,
    /// Whether the gateway is another process.
    is_remote: bool,
    whom: ChatAgent,
    session: String,
    /// The id of the run that was last shown.
    own_run: RefCell<String>,
}

impl Chat<'_> {
    /// Notes the id of a run that is shown.
    fn ran(&self, run: &str) {
        *self.own_run.borrow_mut() = run.to_owned();
    }

    fn own_run(&self) -> String {
        self.own_run.borrow().clone()
    }
}

pub(crate) fn chat(
    args: &ChatArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    if output.json {
        return Err(CommandError::usage("`openclaw chat` has no JSON output")
            .hint("use `openclaw agent --message TEXT --json`"));
    }
    let can_edit = edge.can_edit();
    let role = if can_edit { Role::Attending } else { Role::Script };
    let history = edge.paths(flag)?.state.join("chat-history");
    let need = Need::Agents(role);
    with_lasting_link(&need, flag, edge, output, async |link, relink, signals, output| {
        let surface = &*link.surface;
        let (agent, session) = (args.agent.as_deref(), args.session.as_deref());
        let whom = ChatAgent::find(surface, agent, session).await?;
        let session = whom.session(session.unwrap_or(MAIN));
        let (is_remote, own_run) = (link.is_remote(), RefCell::default());
        let mut chat = Chat { surface, is_remote, whom, session, own_run };
        if can_edit {
            Box::pin(interactive::run(&mut chat, relink, &history, signals, output)).await
        } else {
            Box::pin(piped::run(&mut chat, signals, output)).await
        }
    })
}
