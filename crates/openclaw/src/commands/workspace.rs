//! The folder that a conversation works in: the current one if a user started it at a terminal and
//! trusts the folder. The answer is remembered.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openclaw_config::{Config, Paths};
use openclaw_protocol::keys::agent_of;
use serde::{Deserialize, Serialize};

use super::link::GatewayTarget;
use crate::edge::Edge;
use crate::error::{CommandError, Context as _};
use crate::output::{Output, printable};
use crate::prompt;
use openclaw_terminal::style::{FAINT, STRONG};

/// A larger file is invalid.
const MAX_FILE: u64 = 1024 * 1024;
/// The number of folders that are remembered.
const MAX_FOLDERS: usize = 2_000;
/// How long to wait for the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// The conversation that a folder is chosen for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversation<'a> {
    /// The agent that the user named.
    pub(crate) agent: Option<&'a str>,
    /// The session that the user named.
    pub(crate) session: Option<&'a str>,
}

/// Returns the folder to work in; `None` for the agent's own workspace: that is used with a named
/// gateway, which may be on another machine, without a user, for an agent whose workspace is
/// configured, and in a folder that the user does not trust.
pub(crate) fn choose(
    named: Option<&Path>,
    of: Conversation<'_>,
    target: &GatewayTarget,
    has_user: bool,
    edge: &Edge,
    output: &mut Output,
) -> Result<Option<PathBuf>, CommandError> {
    if let Some(gateway) = target.named() {
        return match named {
            None => Ok(None),
            Some(_) => Err(CommandError::usage(format!(
                "`--workspace` is a folder of this machine; the gateway at {} has its own",
                gateway.url
            ))
            .hint("leave out `--workspace`: the agent works in its own workspace")),
        };
    }
    if let Some(named) = named {
        return folder(named).map(Some);
    }
    if !has_user {
        return Ok(None);
    }
    let paths = edge.paths()?;
    // Problems of the configuration are reported later, with more context.
    let config = edge.load(&paths.config).config;
    let id = of.agent.or_else(|| of.session.and_then(agent_of));
    let agent = config.as_ref().and_then(|config| config.agent(id));
    if agent.is_some_and(|agent| agent.workspace.is_some()) {
        return Ok(None);
    }
    let current = folder(&edge.folder()?)?;
    let answers = TrustedFolders(paths.state.join("trusted-folders.json"));
    let is_trusted = match answers.answer(&current) {
        Some(true) => true,
        Some(false) => {
            output.note(
                "you do not trust this folder, so the agent works in its own workspace; \
                 use `--workspace .` to work here anyway",
            );
            false
        }
        None => {
            let is_trusted = ask(&current, edge.is_home(&current), output)?;
            if let Err(error) = answers.add(&current, is_trusted) {
                output.warning(&format!("cannot save the answer: {error}"));
            }
            is_trusted
        }
    };
    Ok(is_trusted.then_some(current))
}

/// Which folders of an editor agents work in.
pub(crate) struct EditorFolders {
    /// The agents with a workspace of their own; `None` if the gateway is elsewhere, and has other folders.
    busy: Option<BTreeSet<String>>,
    answers: TrustedFolders,
    home: Option<PathBuf>,
}

impl EditorFolders {
    pub(crate) fn new(config: &Config, paths: &Paths, is_elsewhere: bool, edge: &Edge) -> Self {
        let agents = config.agents.iter().filter(|agent| agent.workspace.is_some());
        let busy = (!is_elsewhere).then(|| agents.map(|agent| agent.id.to_string()).collect());
        let answers = TrustedFolders(paths.state.join("trusted-folders.json"));
        Self { busy, answers, home: edge.home_folder() }
    }

    /// Whether an agent works in this folder. The user has opened it in the editor; for the home folder, or
    /// one around it, that is not enough.
    pub(crate) fn are_used(&self, agent: &str, folder: &Path) -> bool {
        let is_free = self.busy.as_ref().is_some_and(|busy| !busy.contains(agent));
        let is_home = self.home.as_ref().is_some_and(|home| home.starts_with(folder));
        is_free && folder.is_dir() && self.answers.answer(folder).unwrap_or(!is_home)
    }
}

/// Returns the absolute path of a folder, without links.
fn folder(path: &Path) -> Result<PathBuf, CommandError> {
    let found = openclaw_files::canonical(path)
        .context(format!("cannot open the folder {}", path.display()))?;
    match found.is_dir() {
        true => Ok(found),
        false => Err(CommandError::usage(format!("{} is not a folder", path.display()))),
    }
}

/// Asks whether to work in a folder; an empty line means yes.
fn ask(folder: &Path, is_home: bool, output: &mut Output) -> Result<bool, CommandError> {
    let shown = folder.display().to_string();
    output.aside(&format!("Work in {STRONG}{}{STRONG:#}?", printable(&shown)));
    let what = match is_home {
        true => "This is your home folder: the agent can read everything in it, including keys.",
        false => "The agent can read the files in it.",
    };
    output.aside(&format!(
        "{FAINT}{what} It asks before it changes a file or runs a command. \"no\" uses the agent's \
         own workspace.{FAINT:#}"
    ));
    let question = if is_home { "Trust this folder? [y/N] " } else { "Trust this folder? [Y/n] " };
    loop {
        match prompt::line(question)?.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            "" => return Ok(!is_home),
            // It is remembered, so it is not guessed.
            _ => output.aside("Answer y or n."),
        }
    }
}

/// The file of the trusted folders, and of those that the user does not trust.
struct TrustedFolders(PathBuf);

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct File {
    folders: BTreeSet<PathBuf>,
    refused: BTreeSet<PathBuf>,
}

impl TrustedFolders {
    /// Returns whether the user trusts a folder or one that it is in; `None` if not asked yet. A
    /// folder that is not trusted may contain one that is.
    fn answer(&self, folder: &Path) -> Option<bool> {
        let File { folders, refused } = self.read();
        let is_trusted = folder.ancestors().any(|it| folders.contains(it));
        (is_trusted || refused.contains(folder)).then_some(is_trusted)
    }

    fn add(&self, folder: &Path, is_trusted: bool) -> io::Result<()> {
        let Self(path) = self;
        if let Some(parent) = path.parent() {
            openclaw_files::make_folder(parent)?;
        }
        let _turn = openclaw_files::lock(&path.with_extension("lock"), PATIENCE)?;
        let mut file = self.read();
        if file.folders.len() + file.refused.len() >= MAX_FOLDERS {
            return Err(io::Error::other("too many folders"));
        }
        let answers = if is_trusted { &mut file.folders } else { &mut file.refused };
        answers.insert(folder.to_owned());
        openclaw_files::replace(path, &serde_json::to_vec_pretty(&file)?)
    }

    /// An invalid file trusts nothing.
    fn read(&self) -> File {
        let text = openclaw_files::read(&self.0, MAX_FILE).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_remembered_and_trust_extends_to_what_is_in_a_folder() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("new").join("trusted-folders.json");
        let trusted = TrustedFolders(file.clone());
        assert_eq!(trusted.answer(Path::new("/home/me/project")), None);
        trusted.add(Path::new("/home/me/project"), true).unwrap();
        trusted.add(Path::new("/srv/x"), true).unwrap();
        trusted.add(Path::new("/srv"), false).unwrap();
        let trusted = TrustedFolders(file.clone());
        for inside in ["/home/me/project", "/home/me/project/src/deep", "/srv/x"] {
            assert_eq!(trusted.answer(Path::new(inside)), Some(true), "{inside}");
        }
        assert_eq!(trusted.answer(Path::new("/srv")), Some(false));
        for unknown in ["/home/me", "/home/me/project2", "/srv/y", "/"] {
            assert_eq!(trusted.answer(Path::new(unknown)), None, "{unknown}");
        }
        std::fs::write(&file, r#"{ "folders": ["/srv/x"] }"#).unwrap();
        assert_eq!(trusted.answer(Path::new("/srv/x")), Some(true), "of an earlier version");
        std::fs::write(&file, "nonsense").unwrap();
        assert_eq!(trusted.answer(Path::new("/srv/x")), None);
    }
}
