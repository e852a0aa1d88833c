//! Removes spoofed markers and control tokens from a text, without adding a boundary.

use std::borrow::Cow;

use crate::finding::Findings;
use crate::scan::Scan;
use crate::untrusted::Untrusted;

/// A text without spoofed markers and control tokens. It is still external data: it belongs inside a
/// [`Boundary`](crate::Boundary).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanitized<'t> {
    text: Cow<'t, str>,
    findings: Findings,
}

impl<'t> Sanitized<'t> {
    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text; borrowed if nothing had to be changed.
    #[must_use]
    pub fn into_text(self) -> Cow<'t, str> {
        self.text
    }

    /// Returns whether the text equals the original.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        matches!(self.text, Cow::Borrowed(_))
    }

    /// Returns the findings.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Returns the number of defused markers and removed tokens.
    #[must_use]
    pub fn defused(&self) -> usize {
        self.findings.defused()
    }
}

/// Sanitizes a text: look-alikes of our boundary and control tokens are replaced by a note. The rest
/// is unchanged, to the byte.
///
/// Use this to add the boundary ([`Boundary::header`](crate::Boundary::header) and
/// [`footer`](crate::Boundary::footer)) separately, or to get the findings: they are returned, not
/// logged. The result must not be sent to a model as it is: it still says what it said, and nothing
/// shows where it ends. In all other cases, make it a [`Text`](crate::Text).
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
