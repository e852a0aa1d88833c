//! What a server answers, for people and programs: text on stdout, everything about it on stderr.

use std::path::Path;

use openclaw_content::unwrap;
use openclaw_tools::{Content, Details, Failure, ToolOutcome};
use serde::Serialize;
use serde_json::value::RawValue;

use super::save::{Saved, save, save_as};
use crate::cli::ShowArgs;
use crate::exit::Exit;
use crate::output::{Output, plural};

/// Shows an outcome; the exit code says how it went.
pub(super) fn show(
    outcome: &ToolOutcome,
    what: &str,
    args: &ShowArgs,
    output: &mut Output,
) -> Exit {
    let exit = exit(outcome);
    let saved = match save_parts(outcome, args) {
        Ok(saved) => saved,
        Err((problem, hint)) => {
            output.problem(&problem, hint);
            return Exit::Failed;
        }
    };
    if output.json {
        output.data(&Shown::of(outcome, args.raw, &saved));
        return exit;
    }
    if args.raw {
        output.outside(&outcome.text());
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

fn exit(outcome: &ToolOutcome) -> Exit {
    match outcome.details.failure {
        Some(Failure::Unavailable) => Exit::Unavailable,
        Some(Failure::TimedOut) => Exit::TimedOut,
        Some(Failure::Denied) => Exit::Denied,
        Some(Failure::InvalidArguments) => Exit::Usage,
        Some(Failure::Protocol | Failure::InvalidResponse | Failure::RateLimited) => Exit::Failed,
        None if outcome.is_error => Exit::Failed,
        None => Exit::Ok,
    }
}

/// Texts from outside are the result; our own words are about it.
fn show_parts(outcome: &ToolOutcome, output: &mut Output) {
    for part in &outcome.content {
        let Content::Text(text) = part else { continue };
        match unwrap(text.as_str()) {
            Some(text) => output.outside(text.expose()),
            None => output.note(text.as_str()),
        }
    }
}

fn tell_failure(outcome: &ToolOutcome, what: &str, output: &mut Output) {
    let texts = outcome.content.iter().filter_map(|part| match part {
        Content::Text(text) => Some(text.as_str()),
        Content::Image { .. } | Content::Audio { .. } => None,
    });
    let texts: Vec<&str> =
        texts.map(|text| unwrap(text).map_or(text, |text| text.expose())).collect();
    let text = texts.join("\n");
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

fn tell_saved(outcome: &ToolOutcome, saved: &SavedParts, output: &mut Output) {
    for file in &saved.files {
        output.note(&format!("{} saved to {}", file.mime_type, file.path.display()));
    }
    if !saved.files.is_empty() {
        return;
    }
    for Binary { mime_type, data, .. } in binaries(outcome) {
        let bytes = data.len() / 4 * 3;
        let kind = if mime_type.is_empty() { "something binary" } else { mime_type };
        output.note(&format!(
            "{kind}, about {bytes} bytes, is not shown; `-o FILE` or `--save FOLDER` writes it"
        ));
    }
}

fn tell_details(details: &Details, output: &mut Output) {
    if !details.findings.is_empty() {
        let kinds: Vec<&str> = details.findings.iter().map(|finding| finding.kind.name()).collect();
        output.warning(&format!("there is something suspicious in it: {}", kinds.join(", ")));
    }
}

/// Something in an answer that is no text.
struct Binary<'a> {
    kind: &'static str,
    uri: Option<&'a str>,
    mime_type: &'a str,
    /// In base64.
    data: &'a str,
}

/// Pictures and sounds first, in their order, then what no model takes.
fn binaries(outcome: &ToolOutcome) -> impl Iterator<Item = Binary<'_>> {
    let media = outcome.content.iter().filter_map(|part| match part {
        Content::Image { mime_type, data } => {
            Some(Binary { kind: "image", uri: None, mime_type, data })
        }
        Content::Audio { mime_type, data } => {
            Some(Binary { kind: "audio", uri: None, mime_type, data })
        }
        Content::Text(_) => None,
    });
    let blobs = outcome.details.blobs.iter().map(|blob| Binary {
        kind: "blob",
        uri: blob.uri.as_deref(),
        mime_type: &blob.mime_type,
        data: &blob.data,
    });
    media.chain(blobs)
}

/// What was written to files.
#[derive(Default)]
struct SavedParts {
    files: Vec<Saved>,
    /// Whether the text is in a file, because there was nothing else.
    is_text: bool,
}

fn save_parts(
    outcome: &ToolOutcome,
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

fn save_text(outcome: &ToolOutcome, file: &Path) -> Result<SavedParts, String> {
    let texts = outcome.content.iter().filter_map(|part| match part {
        Content::Text(text) => unwrap(text.as_str()).map(|text| text.expose()),
        Content::Image { .. } | Content::Audio { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    std::fs::write(file, text)
        .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
    let saved = Saved { mime_type: "text".to_owned(), path: file.to_owned() };
    Ok(SavedParts { files: vec![saved], is_text: true })
}

/// An outcome for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    content: Vec<Part<'a>>,
    /// Raw from the server, and untrusted: nobody has looked through it.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
    details: ShownDetails<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: &'a str,
        untrusted: bool,
    },
    #[serde(rename_all = "camelCase")]
    Binary {
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<&'a str>,
        mime_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// Unless it is in a file.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a str>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownDetails<'a> {
    untrusted: bool,
    source: Option<&'a str>,
    server: Option<&'a str>,
    tool: Option<&'a str>,
    wrapped: bool,
    findings: Vec<ShownFinding>,
    duration_ms: u64,
    failure: Option<&'static str>,
    is_cut: bool,
    kept_in: Option<String>,
    links: Vec<ShownLink<'a>>,
}

#[derive(Serialize)]
struct ShownFinding {
    kind: &'static str,
    count: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownLink<'a> {
    uri: &'a str,
    name: Option<&'a str>,
    mime_type: Option<&'a str>,
}

impl<'a> Shown<'a> {
    fn of(outcome: &'a ToolOutcome, raw: bool, saved: &SavedParts) -> Self {
        let texts = outcome.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.as_str()),
            Content::Image { .. } | Content::Audio { .. } => None,
        });
        let texts = texts.map(|text| {
            let inner = unwrap(text);
            let untrusted = inner.is_some();
            let text = inner.filter(|_| !raw).map_or(text, |inner| inner.expose());
            Part::Text { kind: "text", text, untrusted }
        });
        let mut files = saved.files.iter().filter(|_| !saved.is_text);
        let binaries = binaries(outcome).map(|it| {
            let file = files.next().map(|file| file.path.to_string_lossy().into_owned());
            let data = file.is_none().then_some(it.data);
            Part::Binary { kind: it.kind, uri: it.uri, mime_type: it.mime_type, file, data }
        });
        Self {
            content: texts.chain(binaries).collect(),
            structured_content: outcome.details.structured.as_deref(),
            is_error: outcome.is_error,
            details: ShownDetails::of(&outcome.details),
        }
    }
}

impl<'a> ShownDetails<'a> {
    fn of(details: &'a Details) -> Self {
        let findings = details.findings.iter();
        let findings =
            findings.map(|it| ShownFinding { kind: it.kind.name(), count: it.count }).collect();
        let links = details.links.iter().map(|link| ShownLink {
            uri: &link.uri,
            name: link.name.as_deref(),
            mime_type: link.mime_type.as_deref(),
        });
        Self {
            untrusted: details.untrusted,
            source: details.source,
            server: details.server.as_deref(),
            tool: details.tool.as_deref(),
            wrapped: details.wrapped,
            findings,
            duration_ms: u64::try_from(details.duration.as_millis()).unwrap_or(u64::MAX),
            failure: details.failure.map(Failure::name),
            is_cut: details.is_cut,
            kept_in: details.kept_in.as_ref().map(|file| file.to_string_lossy().into_owned()),
            links: links.collect(),
        }
    }
}
