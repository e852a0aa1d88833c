//! What a server answers, for people and programs: text on stdout, everything about it on stderr.

use std::path::Path;

use openclaw_content::unwrap;
use openclaw_tools::{Content, Details, Failure, ToolOutcome};
use serde_json::{Value, json};

use super::save::{Saved, save};
use crate::cli::ShowArgs;
use crate::exit::Exit;
use crate::output::Output;

/// Shows an outcome; the exit code says how it went.
pub(super) fn show(
    outcome: &ToolOutcome,
    what: &str,
    args: &ShowArgs,
    output: &mut Output,
) -> Exit {
    let saved = match args.save.as_deref().map(|folder| save_all(outcome, folder)).transpose() {
        Ok(saved) => saved.unwrap_or_default(),
        Err(problem) => {
            output.problem(&problem, None);
            return Exit::Failed;
        }
    };
    let exit = exit(outcome);
    if output.json {
        output.value(&to_json(outcome, args.raw, &saved));
        return exit;
    }
    if args.raw {
        output.outside(&outcome.text());
    } else if outcome.is_error {
        tell_failure(outcome, what, output);
    } else {
        show_parts(outcome, output);
    }
    tell_media(outcome, &saved, output);
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

fn tell_media(outcome: &ToolOutcome, saved: &[Saved], output: &mut Output) {
    if !saved.is_empty() {
        for file in saved {
            output.note(&format!("{} saved to {}", file.mime_type, file.path.display()));
        }
        return;
    }
    for part in &outcome.content {
        if let Content::Image { mime_type, data } | Content::Audio { mime_type, data } = part {
            let bytes = data.len() / 4 * 3;
            output.note(&format!(
                "{mime_type}, about {bytes} bytes, is not shown; `--save FOLDER` writes it to a file"
            ));
        }
    }
}

fn tell_details(details: &Details, output: &mut Output) {
    if !details.findings.is_empty() {
        let kinds: Vec<&str> = details.findings.iter().map(|finding| finding.kind.name()).collect();
        output.warning(&format!("there is something suspicious in it: {}", kinds.join(", ")));
    }
}

fn save_all(outcome: &ToolOutcome, folder: &Path) -> Result<Vec<Saved>, String> {
    let details = &outcome.details;
    let parts = [details.server.as_deref(), details.tool.as_deref()];
    let stem = parts.into_iter().flatten().collect::<Vec<_>>().join("-");
    let media = outcome.content.iter().filter_map(|part| match part {
        Content::Image { mime_type, data } | Content::Audio { mime_type, data } => {
            Some((mime_type.as_str(), data.as_str()))
        }
        Content::Text(_) => None,
    });
    media.map(|(mime_type, data)| save(folder, &stem, mime_type, data)).collect()
}

fn to_json(outcome: &ToolOutcome, raw: bool, saved: &[Saved]) -> Value {
    let mut saved = saved.iter();
    let mut media = |kind: &str, mime_type: &str, data: &str| match saved.next() {
        Some(file) => {
            json!({ "type": kind, "mimeType": mime_type, "file": file.path.to_string_lossy() })
        }
        None => json!({ "type": kind, "mimeType": mime_type, "data": data }),
    };
    let content: Vec<Value> = outcome
        .content
        .iter()
        .map(|part| match part {
            Content::Text(text) => {
                let inner = unwrap(text.as_str()).filter(|_| !raw);
                let is_ours = unwrap(text.as_str()).is_none();
                let text = inner.map_or(text.as_str(), |text| text.expose());
                json!({ "type": "text", "text": text, "untrusted": !is_ours })
            }
            Content::Image { mime_type, data } => media("image", mime_type, data),
            Content::Audio { mime_type, data } => media("audio", mime_type, data),
        })
        .collect();
    json!({
        "content": content,
        "isError": outcome.is_error,
        "details": details_json(&outcome.details),
    })
}

fn details_json(details: &Details) -> Value {
    let findings = details.findings.iter();
    let findings: Vec<Value> = findings
        .map(|finding| json!({ "kind": finding.kind.name(), "count": finding.count }))
        .collect();
    let links = details.links.iter();
    let links: Vec<Value> = links
        .map(|link| json!({ "uri": link.uri, "name": link.name, "mimeType": link.mime_type }))
        .collect();
    json!({
        "untrusted": details.untrusted,
        "source": details.source,
        "server": details.server,
        "tool": details.tool,
        "wrapped": details.wrapped,
        "findings": findings,
        "durationMs": u64::try_from(details.duration.as_millis()).unwrap_or(u64::MAX),
        "failure": details.failure.map(Failure::name),
        "isCut": details.is_cut,
        "keptIn": details.kept_in.as_ref().map(|file| file.to_string_lossy()),
        "links": links,
    })
}
