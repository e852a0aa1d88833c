//! The findings of a scan: the kinds of suspicious content, and how often each occurred.

use std::fmt;

/// A kind of suspicious content. Its name ([`Suspicion::name`]) is stable: it appears in logs and
/// results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Suspicion {
    /// A look-alike of the boundary around external text. It was defused.
    SpoofedMarker,
    /// A control token of a chat template. It was removed.
    ControlToken,
    /// "Ignore all previous instructions", "disregard the above".
    InstructionOverride,
    /// "New instructions:", "follow these instructions".
    NewInstructions,
    /// "You are now", "pretend to be".
    RoleChange,
    /// A mention of the system prompt.
    SystemPrompt,
    /// `<system>` tags, or a line that begins with `system:`.
    RoleMarkup,
    /// Markup with which models call tools.
    ToolCallMarkup,
    /// "rm -rf", "delete all emails".
    DestructiveCommand,
    /// "Send the API key", "exfiltrate".
    Exfiltration,
    /// "Do not tell the user".
    Concealment,
    /// A Markdown image whose URL has a query, the usual way to leak data by rendering.
    ImageLeak,
    /// Text in Unicode tag characters, which are invisible to users but read by models.
    HiddenText,
}

impl Suspicion {
    /// All kinds, in declaration order.
    pub const ALL: [Self; 13] = [
        Self::SpoofedMarker,
        Self::ControlToken,
        Self::InstructionOverride,
        Self::NewInstructions,
        Self::RoleChange,
        Self::SystemPrompt,
        Self::RoleMarkup,
        Self::ToolCallMarkup,
        Self::DestructiveCommand,
        Self::Exfiltration,
        Self::Concealment,
        Self::ImageLeak,
        Self::HiddenText,
    ];

    /// Returns the stable name that logs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SpoofedMarker => "spoofed-marker",
            Self::ControlToken => "control-token",
            Self::InstructionOverride => "instruction-override",
            Self::NewInstructions => "new-instructions",
            Self::RoleChange => "role-change",
            Self::SystemPrompt => "system-prompt",
            Self::RoleMarkup => "role-markup",
            Self::ToolCallMarkup => "tool-call-markup",
            Self::DestructiveCommand => "destructive-command",
            Self::Exfiltration => "exfiltration",
            Self::Concealment => "concealment",
            Self::ImageLeak => "image-leak",
            Self::HiddenText => "hidden-text",
        }
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One kind of suspicious content in one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: Suspicion,
    /// The number of occurrences.
    pub count: usize,
    /// The byte offset of the first occurrence in the original text.
    pub first: usize,
}

/// The findings of one text, at most one for each kind.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Findings {
    by_kind: [Option<(usize, usize)>; Suspicion::ALL.len()],
}

impl Findings {
    /// Returns the findings in the order of [`Suspicion::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Finding> + '_ {
        Suspicion::ALL.into_iter().filter_map(|kind| self.get(kind))
    }

    /// Returns the finding of this kind, if there is one.
    #[must_use]
    pub fn get(&self, kind: Suspicion) -> Option<Finding> {
        self.by_kind[kind as usize].map(|(count, first)| Finding { kind, count, first })
    }

    /// Returns whether nothing suspicious was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_kind.iter().all(Option::is_none)
    }

    /// Returns the number of defused markers and removed tokens.
    #[must_use]
    pub fn defused(&self) -> usize {
        [Suspicion::SpoofedMarker, Suspicion::ControlToken]
            .into_iter()
            .filter_map(|kind| self.get(kind))
            .map(|finding| finding.count)
            .sum()
    }

    pub(crate) fn note(&mut self, kind: Suspicion, at: usize) {
        let (count, _) = self.by_kind[kind as usize].get_or_insert((0, at));
        *count += 1;
    }
}

impl fmt::Debug for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_name_and_place() {
        for (at, kind) in Suspicion::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            assert_eq!(
                Suspicion::ALL.iter().filter(|other| other.name() == kind.name()).count(),
                1
            );
        }
    }

    #[test]
    fn a_finding_counts_and_keeps_the_first_offset() {
        let mut findings = Findings::default();
        assert!(findings.is_empty());
        findings.note(Suspicion::RoleChange, 7);
        findings.note(Suspicion::RoleChange, 3);
        let expected = Finding { kind: Suspicion::RoleChange, count: 2, first: 7 };
        assert_eq!(findings.iter().collect::<Vec<_>>(), [expected]);
    }
}
