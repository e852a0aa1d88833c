//! Converts results of servers to the protocol.

use openclaw_content::{Text, render};
use openclaw_protocol::mcp::{Audience, Details, Failure, Finding, Link, Outcome, Part};
use openclaw_tools::{self as tools, Content, ToolOutcome};

/// Converts an outcome: texts first, then other content. Content from outside is marked; with `raw`
/// the texts are rendered as a model reads them.
pub(super) fn outcome(outcome: ToolOutcome, raw: bool) -> Outcome {
    let rendered = raw.then(|| rendered(&outcome));
    let ToolOutcome { content, is_error, details } = outcome;
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    let for_user = details.for_user.into_iter().map(|part| (part, Some(Audience::User)));
    for (part, audience) in content.into_iter().map(|part| (part, None)).chain(for_user) {
        match part {
            Content::Text(text) => texts.push(text_part(text, false, audience)),
            Content::Placeholder(text) => texts.push(text_part(text, true, audience)),
            Content::ForModel(text) => {
                texts.push(text_part(text, false, Some(Audience::Assistant)));
            }
            Content::Image { mime_type, data } => {
                media.push(Part::Image { mime_type, file: None, data: Some(data) });
            }
            Content::Audio { mime_type, data } => {
                media.push(Part::Audio { mime_type, file: None, data: Some(data) });
            }
        }
    }
    let mut texts = rendered.unwrap_or(texts);
    let blobs = details.blobs.into_iter().map(|tools::Blob { uri, mime_type, data }| Part::Blob {
        uri,
        mime_type,
        file: None,
        data: Some(data),
    });
    texts.extend(media.into_iter().chain(blobs));
    let findings = details.findings.iter();
    let findings =
        findings.map(|it| Finding { kind: it.kind.name().to_owned(), count: it.count }).collect();
    let links = details.links.into_iter();
    let links =
        links.map(|tools::ResourceLink { uri, name, mime_type }| Link { uri, name, mime_type });
    Outcome {
        content: texts,
        structured_content: details.structured,
        messages: None,
        is_error,
        details: Details {
            untrusted: details.untrusted,
            source: details.source.map(ToOwned::to_owned),
            server: details.server.as_deref().map(str::to_owned),
            tool: details.tool.as_deref().map(str::to_owned),
            wrapped: raw && details.untrusted,
            findings,
            duration_ms: u64::try_from(details.duration.as_millis()).unwrap_or(u64::MAX),
            failure: details.failure.map(failure),
            violations: details.violations.map(Into::into),
            is_cut: details.is_cut,
            kept_in: details.kept_in.map(|file| file.to_string_lossy().into_owned()),
            links: links.collect(),
        },
        warnings: Vec::new(),
    }
}

fn text_part(text: Text, placeholder: bool, audience: Option<Audience>) -> Part {
    let untrusted = text.is_outside();
    Part::Text { text: text.into_exposed(), untrusted, placeholder, audience }
}

/// The texts as a model reads them; adjacent texts from the same origin are joined.
fn rendered(outcome: &ToolOutcome) -> Vec<Part> {
    let texts: Vec<&Text> = outcome.texts().collect();
    let runs = texts.chunk_by(|a, b| a.is_outside() && a.origin() == b.origin());
    let part = |run: &[&Text]| Part::Text {
        text: render(run.iter().copied()).join("\n"),
        untrusted: run.first().is_some_and(|text| text.is_outside()),
        placeholder: false,
        audience: None,
    };
    runs.map(part).collect()
}

fn failure(failure: tools::ToolFailure) -> Failure {
    match failure {
        tools::ToolFailure::Unavailable => Failure::Unavailable,
        tools::ToolFailure::NeedsLogin => Failure::NeedsLogin,
        tools::ToolFailure::TimedOut => Failure::TimedOut,
        tools::ToolFailure::Protocol => Failure::ProtocolError,
        tools::ToolFailure::InvalidResponse => Failure::InvalidResponse,
        tools::ToolFailure::Denied => Failure::Denied,
        tools::ToolFailure::RateLimited => Failure::RateLimited,
        tools::ToolFailure::InvalidArguments => Failure::InvalidArguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_the_same_names_in_the_protocol() {
        for kind in [
            tools::ToolFailure::Unavailable,
            tools::ToolFailure::NeedsLogin,
            tools::ToolFailure::TimedOut,
            tools::ToolFailure::Protocol,
            tools::ToolFailure::InvalidResponse,
            tools::ToolFailure::Denied,
            tools::ToolFailure::RateLimited,
            tools::ToolFailure::InvalidArguments,
        ] {
            assert_eq!(serde_json::to_value(failure(kind)).unwrap(), kind.name());
        }
    }
}
