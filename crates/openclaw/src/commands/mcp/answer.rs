//! Shows the result of a request: text or JSON on stdout, notes about it on stderr.

use openclaw_protocol::mcp::{Audience, Details, Failure, Outcome, Part};
use serde::Serialize;

use super::save::{self, Saved, is_whole, save, save_as, save_text};
use crate::cli::ShowArgs;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::Output;

/// Shows an outcome, even if it cannot be written to a file. A failed outcome is an error.
pub(super) fn show(
    outcome: &Outcome,
    what: &str,
    args: &ShowArgs,
    output: &mut Output,
) -> CommandResult {
    let mut saved = save_parts(outcome, args);
    let shows_text = !args.raw && !output.json;
    if output.json {
        output.data(&with_files(outcome, &saved));
    } else {
        if args.raw {
            output.outside(&texts(outcome).join("\n"));
        } else if has_result(outcome) && !saved.is_text {
            show_parts(outcome, output);
        }
        tell_saved(outcome, &saved, output);
    }
    if shows_text {
        tell_details(&outcome.details, output);
    }
    let failure = exit(outcome);
    // A failure of the call takes precedence over a failure to save its result.
    let last = if failure == Exit::Ok { saved.problems.pop() } else { None };
    saved.problems.iter().for_each(|problem| output.error(problem));
    match last {
        Some(problem) => Err(problem),
        None if shows_text && outcome.is_error => Err(failed(outcome, failure, what)),
        None => Ok(failure),
    }
}

/// Whether there is a result to show, even if it is not valid.
fn has_result(outcome: &Outcome) -> bool {
    !outcome.is_error || outcome.details.violations.is_some()
}

fn exit(outcome: &Outcome) -> Exit {
    match outcome.details.failure {
        Some(Failure::Unavailable) => Exit::Unavailable,
        Some(Failure::NeedsLogin) => Exit::NeedsLogin,
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

/// Writes untrusted texts, which are the result, to stdout, and our own remarks to stderr.
fn show_parts(outcome: &Outcome, output: &mut Output) {
    let has_blobs = outcome.content.iter().any(|part| matches!(part, Part::Blob { .. }));
    for part in &outcome.content {
        match part {
            // The blob that it stands for is reported separately.
            Part::Text { placeholder: true, .. } if has_blobs => {}
            Part::Text { audience: Some(Audience::Assistant), .. } => {}
            Part::Text { text, untrusted: true, .. } => output.outside(text),
            // The error says the same.
            Part::Text { untrusted: false, .. } if outcome.details.violations.is_some() => {}
            Part::Text { text, untrusted: false, .. } => output.note(text),
            Part::Image { .. } | Part::Audio { .. } | Part::Blob { .. } => {}
        }
    }
    // Our own notes to the model say nothing about the result.
    let is_for_model = |part: &&Part| {
        matches!(part, Part::Text { audience: Some(Audience::Assistant), untrusted: true, .. })
    };
    let hidden = outcome.content.iter().filter(is_for_model).count();
    if hidden > 0 {
        let texts = if hidden == 1 { "1 text" } else { &*format!("{hidden} texts") };
        output.note(&format!("{texts} for the model only; use `--raw` to see all texts"));
    }
}

fn failed(outcome: &Outcome, exit: Exit, what: &str) -> CommandError {
    let text = texts(outcome).join("\n");
    let text = text.trim_end();
    let server = outcome.details.server.as_deref().unwrap_or("SERVER");
    let tool = outcome.details.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
    if let Some(violations) = &outcome.details.violations {
        return CommandError::new(exit, format!("the result of {what} violates its output schema"))
            .cause(violations)
            .hint(format!("report this to the authors of `{server}`"));
    }
    match outcome.details.failure {
        Some(Failure::InvalidArguments) => {
            // The first line, for models, adds nothing to the violations after it.
            let violations = text.split_once('\n').map_or(text, |(_, violations)| violations);
            CommandError::new(exit, violations.replace('\n', "; "))
                .hint(format!("run `openclaw mcp tools {server}{tool}` to see the arguments"))
        }
        Some(Failure::TimedOut) => {
            CommandError::new(exit, text).hint("use `--timeout MS` to allow more time")
        }
        Some(Failure::Unavailable) if outcome.details.server.is_some() => {
            CommandError::new(exit, text).hint(format!("run `openclaw mcp doctor {server}`"))
        }
        Some(_) => CommandError::new(exit, text),
        None => {
            let (ours, theirs) = words_of_failure(outcome);
            let error = CommandError::new(exit, format!("{what} failed"));
            match (ours.is_empty(), theirs.is_empty()) {
                (true, true) => error,
                (true, false) => error.cause(theirs),
                (false, true) => error.cause(ours),
                (false, false) => error.cause(theirs).hint(ours),
            }
        }
    }
}

/// Separates our own words about a failure from those of the server.
fn words_of_failure(outcome: &Outcome) -> (String, String) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for part in &outcome.content {
        match part {
            Part::Text { text, untrusted: false, placeholder: false, .. } => ours.push(&**text),
            Part::Text { text, .. } => theirs.push(text.trim_end()),
            Part::Image { .. } | Part::Audio { .. } | Part::Blob { .. } => {}
        }
    }
    (ours.join(" "), theirs.join("\n"))
}

fn tell_saved(outcome: &Outcome, saved: &SavedParts, output: &mut Output) {
    for file in saved.files.iter().flatten() {
        output.note(&format!("{} saved to {}", save::named(&file.mime_type), file.path.display()));
    }
    if !saved.files.is_empty() || !saved.problems.is_empty() {
        return;
    }
    for Binary { uri, mime_type, data, .. } in binaries(outcome) {
        let bytes = data.len() / 4 * 3;
        let kind = save::named(mime_type);
        let from = uri.map(|uri| format!(" ({uri})")).unwrap_or_default();
        // Damaged data cannot be saved.
        output.note(&match is_whole(data) {
            true => format!(
                "{kind}{from}, about {bytes} bytes, not shown; use `-o FILE` or `--save FOLDER` to save it"
            ),
            false => format!("{kind}{from}, not shown: its data is damaged"),
        });
    }
}

fn tell_details(details: &Details, output: &mut Output) {
    if !details.findings.is_empty() {
        let kinds: Vec<&str> = details.findings.iter().map(|it| it.kind.as_str()).collect();
        output.warning(&format!("suspicious content in the result: {}", kinds.join(", ")));
    }
}

/// A part of a result that is not text.
struct Binary<'a> {
    uri: Option<&'a str>,
    mime_type: &'a str,
    /// In base64.
    data: &'a str,
}

/// Returns the parts that are not text, in order.
fn binaries(outcome: &Outcome) -> impl Iterator<Item = Binary<'_>> {
    outcome.content.iter().filter_map(|part| {
        let (uri, mime_type, data) = match part {
            Part::Text { .. } => return None,
            Part::Image { mime_type, data, .. } | Part::Audio { mime_type, data, .. } => {
                (None, mime_type, data)
            }
            Part::Blob { uri, mime_type, data, .. } => (uri.as_deref(), mime_type, data),
        };
        Some(Binary { uri, mime_type, data: data.as_deref().unwrap_or_default() })
    })
}

/// The files that were written, and the errors.
#[derive(Default)]
struct SavedParts {
    /// One for each part that is not text, `None` if it was not written; or the file of the text.
    files: Vec<Option<Saved>>,
    /// Whether the text was written to a file, because there was nothing else.
    is_text: bool,
    problems: Vec<CommandError>,
}

impl SavedParts {
    fn add(&mut self, saved: Result<Saved, CommandError>) {
        match saved {
            Ok(saved) => self.files.push(Some(saved)),
            Err(problem) => {
                self.files.push(None);
                // The same error is reported once.
                let is_known = |known: &CommandError| known.to_string() == problem.to_string();
                if !self.problems.iter().any(is_known) {
                    self.problems.push(problem);
                }
            }
        }
    }
}

fn save_parts(outcome: &Outcome, args: &ShowArgs) -> SavedParts {
    let mut parts = SavedParts::default();
    if let Some(folder) = &args.save {
        let stem = stem(&outcome.details);
        for it in binaries(outcome) {
            parts.add(save(folder, &stem, it.mime_type, it.data));
        }
    } else if let Some(file) = args.output.as_deref().filter(|_| has_result(outcome)) {
        let all: Vec<Binary<'_>> = binaries(outcome).collect();
        match &all[..] {
            [] => {
                let saved = save_text(file, &text_of(outcome));
                parts.is_text = saved.is_ok();
                parts.add(saved);
            }
            [only] => parts.add(save_as(file, only.mime_type, only.data)),
            more => parts.problems.push(save::too_many(more.len(), file)),
        }
    }
    parts
}

fn stem(details: &Details) -> String {
    let parts = [details.server.as_deref(), details.tool.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join("-")
}

/// Returns the untrusted texts, joined by line breaks.
fn text_of(outcome: &Outcome) -> String {
    let texts = outcome.content.iter().filter_map(|part| match part {
        Part::Text { text, untrusted: true, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// An outcome as JSON.
#[derive(Serialize)]
struct WithFiles {
    #[serde(flatten)]
    outcome: Outcome,
    /// Errors of writing files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

/// Replaces the data of saved parts by the names of their files.
fn with_files(outcome: &Outcome, saved: &SavedParts) -> WithFiles {
    let mut outcome = outcome.clone();
    let mut files = saved.files.iter().filter(|_| !saved.is_text);
    for part in &mut outcome.content {
        if let Part::Image { file, data, .. }
        | Part::Audio { file, data, .. }
        | Part::Blob { file, data, .. } = part
            && let Some(Some(saved)) = files.next()
        {
            *file = Some(saved.path.to_string_lossy().into_owned());
            *data = None;
        }
    }
    let problems = saved.problems.iter().map(ToString::to_string).collect();
    WithFiles { outcome, problems }
}
