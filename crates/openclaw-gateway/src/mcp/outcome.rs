//! What comes back from a server, for people and programs.

use openclaw_content::unwrap;
use openclaw_protocol::mcp::{Details, Failure, Finding, Link, Outcome, Part};
use openclaw_tools::{self as tools, Content, ToolOutcome};

/// An outcome as it is told: texts first, then what is no text. What comes from outside is marked;
/// `raw` leaves it inside its boundary, as a model sees it.
pub fn outcome(outcome: ToolOutcome, raw: bool) -> Outcome {
    let ToolOutcome { content, is_error, details } = outcome;
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in content {
        match part {
            Content::Text(text) => {
                let whole = text.into_string();
                let inner = unwrap(&whole).map(|inner| inner.expose().to_owned());
                let untrusted = inner.is_some();
                let text = inner.filter(|_| !raw).unwrap_or(whole);
                texts.push(Part::Text { text, untrusted });
            }
            Content::Image { mime_type, data } => {
                media.push(Part::Image { mime_type, file: None, data: Some(data) });
            }
            Content::Audio { mime_type, data } => {
                media.push(Part::Audio { mime_type, file: None, data: Some(data) });
            }
        }
    }
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
    let links = links.map(|tools::Link { uri, name, mime_type }| Link { uri, name, mime_type });
    Outcome {
        content: texts,
        structured_content: details.structured,
        messages: None,
        is_error,
        details: Details {
            untrusted: details.untrusted,
            source: details.source.map(ToOwned::to_owned),
            server: details.server,
            tool: details.tool,
            wrapped: details.wrapped,
            findings,
            duration_ms: u64::try_from(details.duration.as_millis()).unwrap_or(u64::MAX),
            failure: details.failure.map(failure),
            is_cut: details.is_cut,
            kept_in: details.kept_in.map(|file| file.to_string_lossy().into_owned()),
            links: links.collect(),
        },
    }
}

fn failure(failure: tools::Failure) -> Failure {
    match failure {
        tools::Failure::Unavailable => Failure::Unavailable,
        tools::Failure::TimedOut => Failure::TimedOut,
        tools::Failure::Protocol => Failure::ProtocolError,
        tools::Failure::InvalidResponse => Failure::InvalidResponse,
        tools::Failure::Denied => Failure::Denied,
        tools::Failure::RateLimited => Failure::RateLimited,
        tools::Failure::InvalidArguments => Failure::InvalidArguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_called_the_same_everywhere() {
        for kind in [
            tools::Failure::Unavailable,
            tools::Failure::TimedOut,
            tools::Failure::Protocol,
            tools::Failure::InvalidResponse,
            tools::Failure::Denied,
            tools::Failure::RateLimited,
            tools::Failure::InvalidArguments,
        ] {
            assert_eq!(serde_json::to_value(failure(kind)).unwrap(), kind.name());
        }
    }
}
