//! `openclaw mcp import`: imports the servers of other programs (C11).

mod pick;
mod show;

use openclaw_config::import::{App, BrokenFile, FoundServer, ImportCandidate, ImportStatus};
use openclaw_config::{Document, Paths};
use serde_json::Value;

use super::write::{NewServer, Written, print_added, put};
use crate::cli::{AppArg, ImportArgs};
use crate::edge::Edge;
use crate::error::{CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};

/// A server that was found, and whether it can be added.
struct Candidate {
    found: FoundServer,
    judgement: ImportCandidate,
}

impl Candidate {
    fn is_addable(&self) -> bool {
        self.found.name.is_some() && self.judgement.problems.is_empty()
    }

    /// Whether it can be added without replacing anything.
    fn is_new(&self) -> bool {
        self.is_addable() && self.judgement.standing == ImportStatus::New
    }

    /// Whether both would be added as the same entry.
    fn equals(&self, other: &Self) -> bool {
        self.found.name == other.found.name && self.found.entry == other.found.entry
    }
}

pub(super) fn import(args: &ImportArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let findings = edge.servers_elsewhere(args.from.map(app));
    let findings = findings.context("cannot read the current folder")?;
    let paths = edge.paths()?;
    let judged = |found: FoundServer| {
        let judgement = found.judge(&paths.config, edge.load_environment());
        Candidate { found, judgement }
    };
    let candidates: Vec<Candidate> = findings.servers.into_iter().map(judged).collect();
    run(args, &candidates, &findings.broken, &paths, edge, output)
}

fn run(
    args: &ImportArgs,
    candidates: &[Candidate],
    broken: &[BrokenFile],
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let is_asked = args.all || !args.names.is_empty();
    let mut are_shown = false;
    if !output.json {
        show::broken(broken, output);
        // A user who names servers knows them; `--all` shows what they are.
        if args.names.is_empty() || args.dry_run {
            are_shown = show::table(candidates, args.dry_run, output);
        }
    }
    let picked = if args.all {
        let picked = pick::all(candidates, args.force);
        if !output.json {
            show::left_out(candidates, &picked, output);
            if picked.is_empty() && !candidates.is_empty() && !args.dry_run {
                output.line("\nNo new servers.");
            }
        }
        picked
    } else if is_asked {
        pick::by_name(&args.names, candidates, args.force, output)?
    } else if !args.dry_run && !output.json && !candidates.is_empty() {
        pick::ask(candidates, args.force, output)?
    } else {
        Vec::new()
    };
    if args.dry_run || picked.is_empty() {
        let added = (!args.dry_run).then_some(&[][..]);
        finish(candidates, broken, &picked, added, &[], output);
        if !output.json && args.dry_run && is_asked {
            show::would_add(&picked, &paths.config, output);
        }
        return Ok(Exit::Ok);
    }
    let servers: Vec<NewServer> = picked.iter().filter_map(|it| new_server(it)).collect();
    let written = put(&servers, paths, edge)?;
    let diagnostics = diagnostics(&servers, &written);
    finish(candidates, broken, &picked, Some(&servers), &diagnostics, output);
    if !output.json {
        for candidate in &picked {
            tell(candidate, &written, are_shown, paths, output);
        }
    }
    Ok(Exit::Ok)
}

fn new_server(candidate: &Candidate) -> Option<NewServer> {
    let name = candidate.found.name.clone()?;
    Some(NewServer { name, entry: candidate.found.entry.clone() })
}

/// Reports a server that was added and, unless they were shown, the notes about its settings.
fn tell(
    candidate: &Candidate,
    written: &Written,
    are_shown: bool,
    paths: &Paths,
    output: &mut Output,
) {
    let Some(name) = &candidate.found.name else { return };
    print_added(name, written, false, paths, output);
    if are_shown {
        return;
    }
    candidate
        .found
        .notes
        .iter()
        .for_each(|note| output.line(format_args!("  {}", printable(note))));
}

/// Returns the findings about the servers that were added.
fn diagnostics(servers: &[NewServer], written: &Written) -> Vec<Value> {
    let about = |server: &NewServer| {
        let about = written.report.about(&Document::server_path(&server.name)).to_json();
        about.as_array().cloned().unwrap_or_default()
    };
    servers.iter().flat_map(about).collect()
}

/// Writes the result as JSON, with `--json`.
fn finish(
    candidates: &[Candidate],
    broken: &[BrokenFile],
    picked: &[&Candidate],
    added: Option<&[NewServer]>,
    diagnostics: &[Value],
    output: &mut Output,
) {
    if !output.json {
        return;
    }
    let names = |names: Vec<&str>| names.into_iter().map(Value::from).collect::<Value>();
    let picked = picked.iter().filter_map(|it| it.found.name.as_ref()).map(|it| it.as_str());
    let added = added.map(|added| names(added.iter().map(|it| it.name.as_str()).collect()));
    output.value(&serde_json::json!({
        "ok": true,
        "servers": candidates.iter().map(show::json).collect::<Value>(),
        "brokenFiles": broken.iter().map(show::broken_json).collect::<Value>(),
        "picked": names(picked.collect()),
        "added": added,
        "diagnostics": diagnostics,
    }));
}

fn app(arg: AppArg) -> App {
    match arg {
        AppArg::ClaudeCode => App::ClaudeCode,
        AppArg::ClaudeDesktop => App::ClaudeDesktop,
        AppArg::Cursor => App::Cursor,
        AppArg::Vscode => App::VsCode,
        AppArg::Codex => App::Codex,
        AppArg::Windsurf => App::Windsurf,
        AppArg::Zed => App::Zed,
        AppArg::GeminiCli => App::GeminiCli,
        AppArg::Opencode => App::OpenCode,
        AppArg::Goose => App::Goose,
        AppArg::Amp => App::Amp,
        AppArg::Jetbrains => App::JetBrains,
    }
}
