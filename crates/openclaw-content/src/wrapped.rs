//! A text inside its boundary: the only form in which outside text goes on towards a model.

use std::fmt;

use crate::boundary::{Boundary, FOOTER, HEADER, NoRandomness};
use crate::finding::Findings;
use crate::report::report;
use crate::scan::Scan;
use crate::source::Source;
use crate::untrusted::Untrusted;

/// A text from outside, made harmless and put inside a boundary. Only wrapping makes one.
#[derive(Clone, PartialEq, Eq)]
pub struct Wrapped {
    text: String,
    id: String,
    findings: Findings,
}

impl Wrapped {
    /// Notice, boundary and text, as a model may read them.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Notice, boundary and text, as a model may read them.
    #[must_use]
    pub fn into_string(self) -> String {
        self.text
    }

    /// The id of the boundary.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What was noticed in the text.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// How many markers and tokens were made harmless.
    #[must_use]
    pub fn defused(&self) -> usize {
        self.findings.defused()
    }
}

impl fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wrapped")
            .field("bytes", &self.text.len())
            .field("id", &self.id)
            .field("findings", &self.findings)
            .finish()
    }
}

/// Wraps a text in a fresh boundary. What is suspicious in it is logged: one event at `warn` for a
/// text, none for a text in which nothing is.
///
/// ```
/// use openclaw_content::{Source, Untrusted, wrap};
///
/// let page = Untrusted::new("<p>Hello</p>");
/// let wrapped = wrap(page, &Source::WebFetch { url: "https://example.org/" })?;
/// let end = format!("<p>Hello</p>\n<<<END_EXTERNAL_UNTRUSTED_CONTENT id=\"{}\">>>", wrapped.id());
/// assert!(wrapped.as_str().ends_with(&end));
/// # Ok::<(), openclaw_content::NoRandomness>(())
/// ```
///
/// # Errors
///
/// If the operating system gives no random bytes.
pub fn wrap(text: Untrusted<&str>, source: &Source<'_>) -> Result<Wrapped, NoRandomness> {
    Ok(Boundary::fresh()?.wrap(text, source))
}

/// Wraps several texts as one, joined by line breaks, so that a marker which is spread over them is
/// seen.
///
/// # Errors
///
/// If the operating system gives no random bytes.
pub fn wrap_parts(parts: &[Untrusted<&str>], source: &Source<'_>) -> Result<Wrapped, NoRandomness> {
    Ok(Boundary::fresh()?.wrap_parts(parts, source))
}

impl Boundary {
    /// Wraps a text in this boundary, which serves for one text only. What is suspicious is logged.
    #[must_use]
    pub fn wrap(self, text: Untrusted<&str>, source: &Source<'_>) -> Wrapped {
        let text = text.expose();
        let mut wrapped = String::with_capacity(HEADER + text.len() + FOOTER);
        self.write_header(&mut wrapped, source);
        let (mut wrapped, findings) = Scan::run(text, wrapped).finish();
        self.write_footer(&mut wrapped);
        if !findings.is_empty() {
            report(source, &findings);
        }
        Wrapped { text: wrapped, id: self.into_id(), findings }
    }

    /// Wraps several texts as one, joined by line breaks, in this boundary.
    #[must_use]
    pub fn wrap_parts(self, parts: &[Untrusted<&str>], source: &Source<'_>) -> Wrapped {
        match parts {
            [only] => self.wrap(*only, source),
            _ => {
                let texts: Vec<&str> = parts.iter().map(|part| part.expose()).collect();
                self.wrap(Untrusted::new(&texts.join("\n")), source)
            }
        }
    }
}
