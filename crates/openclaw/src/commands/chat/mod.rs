//! `openclaw chat`: a conversation at the terminal, or with one message per line of a pipe.

mod ahead;
mod approval;
mod attach;
mod commands;
mod complete;
mod conversation;
mod dialogue;
mod editor;
mod elicit;
mod greeting;
mod inbox;
mod interactive;
mod invoke;
mod line_editor;
mod model;
mod paste;
mod paths;
mod picker;
mod piped;
mod plain;
mod results;
mod tty;
mod turn;
mod watch;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use openclaw_protocol::Surface;
use openclaw_protocol::chat::Attachment;

use self::conversation::ChatStart;
use self::model::SessionModel;
use self::paths::PathRoots;
use self::results::ShownResults;
use super::first_run;
use super::link::{ClientRole, GatewayTarget, Need, with_lasting_link};
use super::talk::ChatAgent;
use super::workspace::{self, Conversation};
use crate::cli::ChatArgs;
use crate::clipboard::ClipboardProgram;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::output::Output;
use openclaw_terminal::pictures::Pictures;
use openclaw_trace::Tracer;

/// The state of a chat.
struct Chat<'a> {
    surface: &'a dyn Surface,
    tracer: &'a Tracer,
    /// Whether the gateway is another process.
    is_remote: bool,
    /// The URL of the gateway, if the user named one.
    gateway: Option<String>,
    whom: ChatAgent,
    session: String,
    /// The folder to work in; `None` for the agent's workspace.
    workspace: Option<PathBuf>,
    /// The id of the run that was last shown.
    own_run: RefCell<String>,
    /// The model that the user has chosen for the conversation.
    model: SessionModel,
    /// Whether the conversation needs a title after its first turn.
    is_untitled: bool,
    /// The results that were shown with a number.
    results: ShownResults,
    /// How the terminal shows pictures.
    pictures: Pictures,
    /// What paths in messages are relative to.
    roots: PathRoots,
    /// The program that reads pictures from the clipboard.
    clipboard: Option<ClipboardProgram>,
    /// The pictures from the clipboard for the next message.
    pasted: RefCell<Vec<Attachment>>,
}

impl Chat<'_> {
    /// Notes the id of a run that is shown.
    fn ran(&self, run: &str) {
        *self.own_run.borrow_mut() = run.to_owned();
    }

    /// Returns the folder that the agent works in.
    fn working_folder(&self) -> PathBuf {
        let own = || self.whom.workspace.as_ref().map(PathBuf::from);
        self.workspace.clone().or_else(own).unwrap_or_else(|| self.roots.folder.clone())
    }

    fn own_run(&self) -> String {
        self.own_run.borrow().clone()
    }
}

pub(crate) fn chat(args: &ChatArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    if output.json {
        return Err(CommandError::usage("`openclaw chat` has no JSON output")
            .hint("use `openclaw agent --message TEXT --json`"));
    }
    let is_interactive = edge.is_interactive();
    if matches!(args.resume, Some(None)) && !is_interactive {
        return Err(CommandError::usage("no terminal to choose a session on")
            .hint("use `--resume KEY`; `openclaw sessions list` lists the keys"));
    }
    let role = if is_interactive { ClientRole::Attending } else { ClientRole::Script };
    let history = edge.paths()?.state.join("chat-history");
    let target = GatewayTarget::find(&args.gateway, edge)?;
    if is_interactive && args.model.is_none() && target.named().is_none() {
        first_run::offer(args.agent.as_deref(), edge, output)?;
    }
    let of = Conversation { agent: args.agent.as_deref(), session: args.session.as_deref() };
    let named = args.workspace.as_deref();
    let workspace = workspace::choose(named, of, &target, is_interactive, edge, output)?;
    let need = Need::agents(role, workspace.clone());
    with_lasting_link(&need, &target, edge, output, async |link, relink, signals, output| {
        let surface = &*link.surface;
        let start = conversation::find(surface, args).await?;
        let key = start.row().map(|row| row.key.as_str()).or(args.session.as_deref());
        let whom = ChatAgent::find(surface, args.agent.as_deref(), key).await?;
        let session = match key {
            Some(key) => whom.session(key),
            None => whom.new_session(),
        };
        let mut model = SessionModel::of(start.row());
        if let Some(name) = &args.model {
            model.choose(surface, &whom.agent, name).await?;
        }
        let is_untitled = matches!(start, ChatStart::New);
        let is_remote = link.is_remote();
        let mut chat = Chat {
            surface,
            tracer: &edge.tracer,
            is_remote,
            gateway: target.named().map(|named| named.url.clone()),
            whom,
            session,
            workspace,
            own_run: RefCell::default(),
            model,
            is_untitled,
            results: ShownResults::default(),
            pictures: edge.pictures(),
            roots: PathRoots { folder: edge.folder()?, home: edge.home().map(Path::to_owned) },
            clipboard: edge.clipboard(),
            pasted: RefCell::default(),
        };
        let prompt = args.prompt.clone();
        if is_interactive {
            let history = edge.can_draw().then_some(history.as_path());
            let begin = interactive::Begin { start, prompt, history };
            Box::pin(interactive::run(&mut chat, relink, begin, signals, output)).await
        } else {
            Box::pin(piped::run(&mut chat, prompt, signals, output)).await
        }
    })
}
