//! What a server answers, for people and programs: text on stdout, everything about it on stderr.

use std::path::Path;

use openclaw_protocol::mcp::{Details, Failure, Outcome, Part};

use super::save::{Saved, is_whole, save, save_as};
use crate::cli::ShowArgs;
use crate::exit::Exit;
use crate::output::{Output, plural};

/// Shows an outcome; the exit code says how it went.
pub(super) fn show(outcome: &Outcome, what: &str, args: &ShowArgs, output: &mut Output) -> Exit {
    let exit = exit(outcome);
    let saved = match save_parts(outcome, args) {
        Ok(saved) => saved,
        Err((problem, hint)) => {
            output.problem(&problem, hint);
            return Exit::Failed;
        }
    };
    if output.json {
        output.data(&with_files(outcome, &saved));
        return exit;
    }
    if args.raw {
        output.outside(&texts(outcome).join("\n"));
    } else if outcome.is_error {
        tell_failure(outcome, what, output);
    } else if !saved.is_text {
        show_parts(outcome, output);
    }
    tell_saved(outcome, &saved, output);
    if !args.raw {
        tell_details(&outcome.details, output);
    }
    exit
}

fn exit(outcome: &Outcome) -> Exit {
    match outcome.details.failure {
        Some(Failure::Unavailable) => Exit::Unavailable,
        Some(Failure::TimedOut) => Exit::TimedOut,
        Some(Failure::Denied) => Exit::Denied,
        Some(Failure::InvalidArguments) => Exit::Usage,
        Some(Failure::ProtocolError | Failure::InvalidResponse | Failure::RateLimited) => {
            Exit::Failed
        }
        None if outcome.is_error => Exit::Failed,
        None => Exit::Ok,
    }
}

fn texts(outcome: &Outcome) -> Vec<&str> {
    let texts = outcome.content.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        Part::Image { .. } | Part::Audio { .. } | Part::Blob { .. } => None,
    });
    texts.collect()
}

/// Texts from outside are the result; our own words are about it.
fn show_parts(outcome: &Outcome, output: &mut Output) {
    for part in &outcome.content {
        match part {
            Part::Text { text, untrusted: true } => output.outside(text),
            Part::Text { text, untrusted: false } => output.note(text),
            Part::Image { .. } | Part::Audio { .. } | Part::Blob { .. } => {}
        }
    }
}

fn tell_failure(outcome: &Outcome, what: &str, output: &mut Output) {
    let text = texts(outcome).join("\n");
    let hint = match outcome.details.failure {
        Some(Failure::InvalidArguments) => {
            let server = outcome.details.server.as_deref().unwrap_or("SERVER");
            Some(format!("`openclaw mcp tools {server} --schema` shows what tools take"))
        }
        Some(Failure::TimedOut) => Some("`--timeout MS` gives it longer".to_owned()),
        _ => None,
    };
    match outcome.details.failure {
        Some(_) => output.problem(text.trim_end(), hint.as_deref()),
        None => output.problem(&format!("{what} failed: {}", text.trim_end()), None),
    }
}

fn tell_saved(outcome: &Outcome, saved: &SavedParts, output: &mut Output) {
    for file in &saved.files {
        output.note(&format!("{} saved to {}", file.mime_type, file.path.display()));
    }
    if !saved.files.is_empty() {
        return;
    }
    for Binary { mime_type, data } in binaries(outcome) {
        let bytes = data.len() / 4 * 3;
        let kind = if mime_type.is_empty() { "something binary" } else { mime_type };
        // What cannot be written is not offered.
        output.note(&match is_whole(data) {
            true => format!(
                "{kind}, about {bytes} bytes, is not shown; `-o FILE` or `--save FOLDER` writes it"
            ),
            false => format!("{kind} cannot be written to a file: its data is damaged"),
        });
    }
}

fn tell_details(details: &Details, output: &mut Output) {
    if !details.findings.is_empty() {
        let kinds: Vec<&str> = details.findings.iter().map(|it| it.kind.as_str()).collect();
        output.warning(&format!("there is something suspicious in it: {}", kinds.join(", ")));
    }
}

/// Something in an answer that is no text.
struct Binary<'a> {
    mime_type: &'a str,
    /// In base64.
    data: &'a str,
}

/// Pictures and sounds first, in their order, then what no model takes.
fn binaries(outcome: &Outcome) -> impl Iterator<Item = Binary<'_>> {
    outcome.content.iter().filter_map(|part| match part {
        Part::Text { .. } => None,
        Part::Image { mime_type, data, .. }
        | Part::Audio { mime_type, data, .. }
        | Part::Blob { mime_type, data, .. } => {
            Some(Binary { mime_type, data: data.as_deref().unwrap_or_default() })
        }
    })
}

/// What was written to files.
#[derive(Default)]
struct SavedParts {
    files: Vec<Saved>,
    /// Whether the text is in a file, because there was nothing else.
    is_text: bool,
}

fn save_parts(
    outcome: &Outcome,
    args: &ShowArgs,
) -> Result<SavedParts, (String, Option<&'static str>)> {
    let is_text = false;
    if let Some(folder) = &args.save {
        let stem = stem(&outcome.details);
        let files = binaries(outcome).map(|it| save(folder, &stem, it.mime_type, it.data));
        let files: Result<_, String> = files.collect();
        return Ok(SavedParts { files: files.map_err(|problem| (problem, None))?, is_text });
    }
    let Some(file) = args.output.as_deref().filter(|_| !outcome.is_error) else {
        return Ok(SavedParts::default());
    };
    let all: Vec<Binary<'_>> = binaries(outcome).collect();
    match &all[..] {
        [] => save_text(outcome, file).map_err(|problem| (problem, None)),
        [only] => {
            let saved = save_as(file, only.mime_type, only.data);
            Ok(SavedParts { files: vec![saved.map_err(|problem| (problem, None))?], is_text })
        }
        more => {
            let problem = format!("the answer holds {}, and not one", plural(more.len(), "file"));
            Err((problem, Some("`--save FOLDER` writes them all")))
        }
    }
}

fn stem(details: &Details) -> String {
    let parts = [details.server.as_deref(), details.tool.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join("-")
}

fn save_text(outcome: &Outcome, file: &Path) -> Result<SavedParts, String> {
    let texts = outcome.content.iter().filter_map(|part| match part {
        Part::Text { text, untrusted: true } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    std::fs::write(file, text)
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    let saved = Saved { mime_type: "text".to_owned(), path: file.to_owned() };
    Ok(SavedParts { files: vec![saved], is_text: true })
}

/// The same, with the names of files in the place of what was written to them.
fn with_files(outcome: &Outcome, saved: &SavedParts) -> Outcome {
    let mut outcome = outcome.clone();
    let mut files = saved.files.iter().filter(|_| !saved.is_text);
    for part in &mut outcome.content {
        if let Part::Image { file, data, .. }
        | Part::Audio { file, data, .. }
        | Part::Blob { file, data, .. } = part
            && let Some(saved) = files.next()
        {
            *file = Some(saved.path.to_string_lossy().into_owned());
            *data = None;
        }
    }
    outcome
}
