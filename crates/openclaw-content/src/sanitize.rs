//! A text made harmless, without a boundary yet.

use std::borrow::Cow;

use crate::finding::Findings;
use crate::scan::Scan;
use crate::untrusted::Untrusted;

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
/// The result is good for those who put the boundary ([`Boundary::header`](crate::Boundary::header)
/// and [`footer`](crate::Boundary::footer)) around the text themselves, and for looking at the
/// findings: they are returned and not logged. It is not fit for a model as it is: it says what it
/// said before, and nothing shows where it ends. All others make a [`Text`](crate::Text) of it.
///
/// ```
/// use openclaw_content::{Untrusted, sanitize};
///
/// assert!(sanitize(Untrusted::new("if a << b { vec![1] }")).is_unchanged());
/// assert_eq!(sanitize(Untrusted::new("a [INST] b")).text(), "a [removed token] b");
/// ```
///
/// ```compile_fail
/// openclaw_content::sanitize("a [INST] b");
/// ```
#[must_use]
pub fn sanitize(text: Untrusted<&str>) -> Sanitized<'_> {
    let text = text.expose();
    let scan = Scan::run(text, String::new());
    if scan.has_cut() {
        let (cleaned, findings) = scan.finish();
        Sanitized { text: Cow::Owned(cleaned), findings }
    } else {
        Sanitized { text: Cow::Borrowed(text), findings: scan.into_findings() }
    }
}
