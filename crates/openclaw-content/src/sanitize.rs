//! A text made harmless, without a boundary yet.

use std::borrow::Cow;

use crate::finding::Findings;
use crate::scan::Scan;

/// A text without spoofed markers and control tokens. It is still data from outside: it belongs
/// inside a [`Boundary`](crate::Boundary).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanitized<'t> {
    text: Cow<'t, str>,
    findings: Findings,
}

impl<'t> Sanitized<'t> {
    /// The text; borrowed if nothing had to be changed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text; borrowed if nothing had to be changed.
    #[must_use]
    pub fn into_text(self) -> Cow<'t, str> {
        self.text
    }

    /// Whether the text is as it came.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        matches!(self.text, Cow::Borrowed(_))
    }

    /// What was noticed.
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

/// Makes a text harmless: what looks like our boundary, or is a control token, is replaced by words
/// that say so. All else stays as it is, to the byte.
///
/// For those who put the boundary around the text themselves; the others call
/// [`wrap`](crate::wrap).
///
/// ```
/// use openclaw_content::sanitize;
///
/// assert!(sanitize("if a << b { vec![1] }").is_unchanged());
/// assert_eq!(sanitize("a [INST] b").text(), "a [removed token] b");
/// ```
#[must_use]
pub fn sanitize(text: &str) -> Sanitized<'_> {
    let scan = Scan::run(text, String::new());
    if scan.has_cut() {
        let (cleaned, findings) = scan.finish();
        Sanitized { text: Cow::Owned(cleaned), findings }
    } else {
        Sanitized { text: Cow::Borrowed(text), findings: scan.into_findings() }
    }
}
