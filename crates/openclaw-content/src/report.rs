//! Logs what was suspicious in a text and where the text came from, but never the text itself.

use std::fmt;

use crate::finding::Findings;
use crate::label::{clean_address, clean_name, clean_place};
use crate::source::Source;

/// Logs the findings of one text as one event. Names and addresses are untrusted as well: they are
/// sanitized.
#[cold]
#[inline(never)]
pub(crate) fn report(source: &Source, findings: &Findings) {
    let origin = Origin::of(source);
    tracing::warn!(
        source = source.label(),
        server = origin.server.as_deref(),
        tool = origin.tool.as_deref(),
        prompt = origin.prompt.as_deref(),
        uri = origin.uri.as_deref(),
        name = origin.name.as_deref(),
        kinds = %Kinds(findings),
        "suspicious external content"
    );
}

/// A source as fields of an event.
#[derive(Default)]
struct Origin {
    server: Option<String>,
    tool: Option<String>,
    prompt: Option<String>,
    uri: Option<String>,
    name: Option<String>,
}

impl Origin {
    fn of(source: &Source) -> Self {
        let known = |name: &str| Some(clean_name(name).into_owned());
        match source {
            Source::McpServer { server } | Source::McpSampling { server } => {
                Self { server: known(server), ..Self::default() }
            }
            Source::McpTool { server, tool } => {
                Self { server: known(server), tool: known(tool), ..Self::default() }
            }
            Source::McpResource { server, uri } => {
                Self { server: known(server), uri: Some(clean_place(uri)), ..Self::default() }
            }
            Source::McpPrompt { server, prompt } => {
                Self { server: known(server), prompt: known(prompt), ..Self::default() }
            }
            Source::WebFetch { url } => Self { uri: Some(clean_place(url)), ..Self::default() },
            Source::File { path } => Self { uri: Some(clean_address(path)), ..Self::default() },
            Source::Command => Self::default(),
            Source::Other { name } => Self { name: known(name), ..Self::default() },
        }
    }
}

/// The kinds of findings with their counts: `control-token=2 role-change=1`.
struct Kinds<'a>(&'a Findings);

impl fmt::Display for Kinds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { " " };
            write!(f, "{gap}{}={}", finding.kind, finding.count)?;
        }
        Ok(())
    }
}
