//! Shows the servers that were found, without credentials.

use std::path::Path;

use comfy_table::{Attribute, Cell, Color};
use openclaw_config::import::{BrokenFile, ImportStatus};
use openclaw_content::wrap_words;
use serde_json::{Map, Value, json};

use super::Candidate;
use crate::output::{Column, Output, cut, fit, printable};
use openclaw_terminal::style::FAINT;

/// Number, program, name, transport, target, standing.
const COLUMNS: [Column; 6] = [
    Column { widths: [3, 3], cut },
    Column { widths: [14, 8], cut },
    Column { widths: [24, 12], cut },
    Column { widths: [5, 5], cut },
    Column { widths: [40, 12], cut },
    Column { widths: [15, 15], cut },
];
/// The lines besides servers and remarks: the header, an empty line and the question.
const MARGIN: usize = 4;
/// The indent of remarks.
const REMARK_INDENT: usize = 6;

/// Warns about files that could not be read or parsed.
pub(super) fn broken(broken: &[BrokenFile], output: &mut Output) {
    for BrokenFile { app, file, problem } in broken {
        let (app, file) = (app.title(), file.display());
        output.warning(&format!("cannot use {file} ({app}): {problem}"));
    }
}

/// Writes a row for each server, and the remarks below the table. On a terminal each server has one
/// line of remarks, or none if the list and the question after it would not fit; `in_full` shows all.
/// Returns whether all remarks were shown.
pub(super) fn table(candidates: &[Candidate], in_full: bool, output: &mut Output) -> bool {
    if candidates.is_empty() {
        output.line("No MCP servers of other programs found.");
        return true;
    }
    let header = ["  #", "program", "name", "type", "target", "status"].map(str::to_owned).to_vec();
    let mut texts = vec![header];
    let mut colours = vec![Color::Reset];
    for (candidate, number) in candidates.iter().zip(1..) {
        let namesake = namesake(candidate, number, candidates);
        let (row, colour) = row(candidate, number, namesake.as_deref());
        texts.push(row);
        colours.push(colour);
    }
    let rows = fit(&texts, &COLUMNS, output.width()).into_iter().zip(colours).enumerate();
    output.table(rows.map(|(at, (row, colour))| {
        let mut cells: Vec<Cell> = row.iter().map(|text| Cell::new(printable(text))).collect();
        if at == 0 {
            return cells.into_iter().map(|cell| cell.add_attribute(Attribute::Dim)).collect();
        }
        let standing = cells.pop();
        cells.extend(standing.map(|standing| standing.fg(colour)));
        cells
    }));
    let brief = output.columns().filter(|_| !in_full);
    let remarked = candidates.iter().filter(|candidate| !remarks(candidate).is_empty()).count();
    let room = output.lines().filter(|_| !in_full).unwrap_or(usize::MAX);
    if remarked > 0 && candidates.len() + remarked + MARGIN > room {
        output.line(format_args!("{FAINT}      details: `openclaw mcp import --dry-run`{FAINT:#}"));
        return false;
    }
    for (candidate, number) in candidates.iter().zip(1..) {
        let remarks = remarks(candidate);
        if let (Some(width), false) = (brief, remarks.is_empty()) {
            let remarks = cut(&printable(&remarks.join("; ")), width.saturating_sub(REMARK_INDENT));
            output.line(format_args!("{FAINT}{number:>4}  {remarks}{FAINT:#}"));
            continue;
        }
        for remark in remarks {
            let room = usize::from(output.width()).saturating_sub(REMARK_INDENT).max(20);
            for (at, line) in wrap_words(&printable(&remark), room).iter().enumerate() {
                let number = if at == 0 { number.to_string() } else { String::new() };
                output.line(format_args!("{FAINT}{number:>4}  {line}{FAINT:#}"));
            }
        }
    }
    brief.is_none()
}

/// Returns the remark for a new server if an earlier one has the same name.
fn namesake(candidate: &Candidate, number: usize, candidates: &[Candidate]) -> Option<String> {
    let mut before = candidates.iter().zip(1..number).filter(|(other, _)| other.is_new());
    let (other, first) = before.find(|(other, _)| other.found.name == candidate.found.name)?;
    let words = if candidate.equals(other) { "the same as" } else { "differs from" };
    candidate.is_new().then(|| format!("{words} {first}"))
}

fn row(candidate: &Candidate, number: usize, namesake: Option<&str>) -> (Vec<String>, Color) {
    let (found, judgement) = (&candidate.found, &candidate.judgement);
    let (standing, colour) = match (candidate.is_addable(), judgement.standing) {
        (true, ImportStatus::New) if namesake.is_some() => {
            (namesake.unwrap_or_default(), Color::Yellow)
        }
        (false, _) => ("cannot be added", Color::Red),
        (true, ImportStatus::New) => ("new", Color::Green),
        (true, ImportStatus::Same) => ("already exists", Color::Reset),
        (true, ImportStatus::Differs) => ("differs", Color::Yellow),
    };
    let row = [
        &format!("{number:>3}"),
        found.app.title(),
        &found.written_name,
        judgement.transport,
        &judgement.gist,
        standing,
    ];
    (row.map(str::to_owned).to_vec(), colour)
}

/// Returns details that do not fit in the row.
fn remarks(candidate: &Candidate) -> Vec<String> {
    let (found, judgement) = (&candidate.found, &candidate.judgement);
    let mut remarks: Vec<String> = Vec::new();
    remarks.extend(found.project.as_ref().map(|project| format!("project: {project}")));
    remarks.extend(judgement.settings.iter().filter_map(|setting| {
        let is_told = ["env.", "headers.", "apiKey", "auth.", "cwd", "enabled"];
        let is_told = is_told.iter().any(|prefix| setting.key.starts_with(prefix));
        let value = match &setting.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        is_told.then(|| format!("{} = {value}", setting.key))
    }));
    remarks.extend(found.notes.iter().cloned());
    let unset = judgement.unset_variables.iter();
    remarks.extend(unset.map(|name| format!("cannot start until `{name}` is set")));
    remarks.extend(judgement.problems.iter().cloned());
    remarks
}

/// Warns about servers that were skipped because of another one of the same name.
pub(super) fn left_out(candidates: &[Candidate], picked: &[&Candidate], output: &mut Output) {
    let twin = |it: &&Candidate| {
        picked.iter().any(|other| other.found.name == it.found.name && !other.equals(it))
    };
    for candidate in candidates.iter().filter(|it| it.is_new()).filter(twin) {
        let (name, app) = (&candidate.found.written_name, candidate.found.app.title());
        output.warning(&format!("skipped `{name}` of {app}: it differs from an earlier one"));
    }
}

/// Writes what would be added without `--dry-run`.
pub(super) fn would_add(picked: &[&Candidate], file: &Path, output: &mut Output) {
    let names: Vec<&str> =
        picked.iter().filter_map(|it| it.found.name.as_ref()).map(|it| it.as_str()).collect();
    let file = file.display();
    match names.is_empty() {
        true => output.line("\nNothing would be added."),
        false => output.line(format_args!("\n{} would be added to {file}", names.join(", "))),
    }
}

pub(super) fn json(candidate: &Candidate) -> Value {
    let (found, judgement) = (&candidate.found, &candidate.judgement);
    let settings = judgement.settings.iter();
    let settings: Map<String, Value> =
        settings.map(|setting| (setting.key.clone(), setting.value.clone())).collect();
    let standing = match judgement.standing {
        ImportStatus::New => "new",
        ImportStatus::Same => "same",
        ImportStatus::Differs => "differs",
    };
    json!({
        "app": found.app.title(),
        "file": found.file.to_string_lossy(),
        "project": found.project,
        "writtenName": found.written_name,
        "name": found.name.as_ref().map(|name| name.as_str()),
        "transport": judgement.transport,
        "what": judgement.gist,
        "settings": settings,
        "standing": standing,
        "addable": candidate.is_addable(),
        "notes": found.notes,
        "unsetVariables": judgement.unset_variables,
        "problems": judgement.problems,
    })
}

pub(super) fn broken_json(broken: &BrokenFile) -> Value {
    json!({
        "app": broken.app.title(),
        "file": broken.file.to_string_lossy(),
        "problem": broken.problem,
    })
}
